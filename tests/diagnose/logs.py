"""Tables of logs in this folder, and what a user is answered to each of them."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from assistant.diagnose import Log, load_rules, read_log
from assistant.diagnose.environments import distributions_in, listed_distributions
from assistant.diagnose.rules import PLACEHOLDER
from assistant.i18n import render
from assistant.model.finding import Diagnosis, Remedy
from assistant.model.machine import Machine
from assistant.model.record import from_plain
from assistant.session.diagnosis import causes_for_log_python, find_causes_and_lines, log_origin, machine_of_log

Row = dict[str, Any]
FOLDER = Path(__file__).parent


@cache
def rows(name: str) -> tuple[Row, ...]:
    """Return the rows of a table; a host name that is none of a link is written in capitals in it."""
    text = (FOLDER / f"{name}.jsonl").read_text("utf-8").replace("pypi.ORG", "pypi.ORG".lower())
    return tuple(json.loads(line) for line in text.splitlines())


def read(row: Row) -> tuple[Log, Machine]:
    """Return a row's log and machine; the row's own is the one at hand where `whose` says whose the log is."""
    log, machine = read_log(row["log"]), from_plain(row.get("machine", {}), Machine, row["log"][:80])
    return log, machine_of_log(log, machine, log_origin(log, machine)) if "whose" in row else machine


def causes(row: Row) -> tuple[Diagnosis, ...]:
    """Return the causes that the command and the wizard tell of a row, the best first."""
    log, machine = read(row)
    return tuple(cause for cause, _line in causes_for_log_python(find_causes_and_lines(log, machine), log, machine))


@cache
def answers(name: str, every: int = 1) -> tuple[tuple[Row, tuple[Diagnosis, ...]], ...]:
    """Return the rows of a table, or one in `every`, each with its causes."""
    return tuple((row, causes(row)) for row in rows(name)[::every])


def first_key(found: tuple[Diagnosis, ...]) -> str:
    """Return the key of the first cause, "" for none."""
    return found[0].key if found else ""


def shown(remedy: Remedy) -> str:
    """Return all that a remedy says and has typed."""
    variables = (f"{name}={value}" for name, value in remedy.env.items())
    launches = (f"{one.app}: {one.file}: {one.line} {' '.join(one.add)}" for one in remedy.launch)
    return "\n".join((render(remedy.text), *variables, *remedy.commands, *launches))


# What the rules write themselves, with nothing to fill in.
WRITTEN = frozenset(
    name
    for rule in load_rules().rules
    for remedy in rule.remedy
    for command in remedy.commands
    for name in distributions_in(PLACEHOLDER.sub("", command))
)


_SOURCE = re.compile(r"poetry source add .*|--source \S+")  # that Poetry is told: no distribution


def invented(found: tuple[Diagnosis, ...], text: str) -> set[str]:
    """Return the distributions in commands that are neither a whole word of a text nor listed."""
    commands = (command for cause in found for remedy in cause.remedies for command in remedy.commands)
    named = {name.strip("-") for command in commands for name in distributions_in(_SOURCE.sub("", command))}
    words = {canonicalize_name(word.strip(".-_")) for word in re.findall(r"[\w.-]+", text.lower())}
    words |= {canonicalize_name(word) for word in re.findall(r"([a-z][\w.]*)-\d[\w.+]*(?:-|\.tar)", text.lower())}
    return named - listed_distributions() - words - WRITTEN
