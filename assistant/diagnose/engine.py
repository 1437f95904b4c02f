"""Matches the rules against a log and the facts of a machine, and ranks what fits."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from assistant.diagnose.facts import merged
from assistant.diagnose.log import Log, read_log
from assistant.diagnose.patterns import compiled
from assistant.diagnose.predicates import ask
from assistant.diagnose.questions import question
from assistant.diagnose.rules import Rule, Rules, Sign, Way, load_rules
from assistant.i18n import _
from assistant.model.finding import Diagnosis, Remedy
from assistant.model.machine import Machine
from assistant.model.record import replace
from assistant.privacy import redact

UNKNOWN_COSTS = 0.1  # confidence lost for each fact that could not be told
CLOSE = 0.3  # share of a rule's words that a log must hold to come near it
READ = 4000  # of it that is looked through for secrets
SHOWN = 300  # characters of a line that is shown as evidence


class Match(NamedTuple):
    """One cause that fits: its diagnosis, the index of the failing line in the log, and each remedy's rule, if any."""

    diagnosis: Diagnosis
    line: int | None
    ways: tuple[Way | None, ...]


class Fit(NamedTuple):
    """How one sign of a rule fits: its confidence, the lines that show it, the facts that nobody knows."""

    confidence: float
    lines: tuple[int, ...]
    unknown: tuple[str, ...]
    known: tuple[str, ...]


def diagnose(log: Log | bytes | str, machine: Machine | None = None) -> tuple[Diagnosis, ...]:
    """Give the causes that a log and the facts of its machine point to, best first; none for a log without trouble.

    Facts that the log itself states fill what `machine` leaves open. Remedies hold no plans yet (see `matches`).
    """
    read = log if isinstance(log, Log) else read_log(log)
    return tuple(match.diagnosis for match in matches(read, merged(machine or Machine(), read.facts)))


def matches(log: Log, machine: Machine) -> tuple[Match, ...]:
    """Do as `diagnose` does with all facts in `machine`; tell each failing line and what remedies wish for, too."""
    rules = load_rules()
    search = _Search(log, rules)
    fitting = [(rule, fit) for rule in rules.rules if (fit := _best(rule, search, machine))]
    fitting.sort(key=lambda pair: -pair[1].confidence)
    return tuple(_match(rule, fit, log, machine) for rule, fit in fitting)


def nearest(log: Log | bytes | str, count: int = 3) -> tuple[Rule, ...]:
    """Give the rules that come closest to a log that fits none: most of the words of one of their patterns."""
    read = log if isinstance(log, Log) else read_log(log)
    words = set(read.text.split())
    rules = load_rules()

    def closeness(rule: Rule) -> float:
        phrases = [text.split() for sign in rule.sign for form in sign.any for text in rules.literals[form]]
        shared = [(len(words.intersection(phrase)), len(phrase)) for phrase in phrases]
        return max((count / (total + 1) for count, total in shared if count > 1), default=0.0)

    ranked = sorted(rules.rules, key=closeness, reverse=True)[:count]
    return tuple(rule for rule in ranked if closeness(rule) >= CLOSE)


class _Search:
    """Finds patterns in a log, each once."""

    def __init__(self, log: Log, rules: Rules) -> None:
        self._log, self._rules = log, rules
        self._found: dict[str, int | None] = {}

    def line(self, pattern: str) -> int | None:
        """Give the first line that a pattern matches in."""
        if pattern not in self._found:
            found = None
            if any(text in self._log.text for text in self._rules.literals[pattern]):
                found = compiled(pattern).search(self._log.text)
            self._found[pattern] = self._log.index_at(found.start()) if found else None
        return self._found[pattern]


def _best(rule: Rule, search: _Search, machine: Machine) -> Fit | None:
    fits = [fit for sign in rule.sign if (fit := _fit(sign, search, machine))]
    return max(fits, key=lambda fit: fit.confidence, default=None)


def _fit(sign: Sign, search: _Search, machine: Machine) -> Fit | None:
    found = [line for text in sign.any if (line := search.line(text)) is not None]
    needed = [search.line(text) for text in sign.all]
    if (sign.any and not found) or None in needed or any(search.line(text) is not None for text in sign.none):
        return None
    facts, likely = ask(machine, sign.facts), ask(machine, sign.likely)
    if not all(facts.values()) or False in likely.values() or any(ask(machine, sign.unless).values()):
        return None
    unknown = tuple(name for name, verdict in likely.items() if verdict is None)
    known = (*facts, *(name for name, verdict in likely.items() if verdict))
    lines = (*found[:2], *(line for line in needed if line is not None))
    return Fit(sign.confidence - UNKNOWN_COSTS * len(unknown), tuple(dict.fromkeys(lines)), unknown, known)


def _match(rule: Rule, fit: Fit, log: Log, machine: Machine) -> Match:
    ways = ways_out(rule, machine)
    asked = [question(name) for name in fit.unknown]
    diagnosis = Diagnosis(
        key=rule.key,
        title=_(rule.title),
        cause=_(rule.cause),
        evidence=(
            *(redact(log.lines[line][1].strip()[:READ])[:SHOWN] for line in fit.lines),
            *_facts_told(fit, machine),
        ),
        remedies=(*asked, *map(remedy, ways)),
        confidence=round(fit.confidence, 2),
        sources=rule.sources,
        severity=rule.severity,
    )
    return Match(diagnosis, fit.lines[0] if fit.lines else None, (*(None for _asked in asked), *ways))


def ways_out(rule: Rule, machine: Machine) -> tuple[Way, ...]:
    """Give the remedies of a rule that can work on a machine, each that does something with a check."""
    able = [
        replace(
            way,
            commands=tuple(command for command in way.commands if not _lacking(command, machine)),
            check=tuple(check for check in way.check if _typed(check, machine)),
        )
        for way in rule.remedy
        if False not in ask(machine, way.facts).values()
        and not any(ask(machine, way.unless).values())
        and all(_typed(command, machine) for command in way.commands)
    ]
    usual = next((way.check for way in able if way.check), ())
    told = tuple(replace(way, commands=(), check=()) for way in rule.remedy[:1])
    return tuple(_checked(way, usual) for way in able) or told


def _typed(command: str, machine: Machine) -> bool:
    """Tell whether a command is of a system that this machine may be."""
    known = {program: systems for systems, row in _programs()["systems"].items() for program in row}
    systems = known.get(_program(command), "linux" if command.startswith("sudo ") else None)
    return systems is None or ask(machine, {"os": systems.split()})["os"] is not False


def _lacking(command: str, machine: Machine) -> bool:
    """Tell whether a command's program is known to be absent from this machine's distribution."""
    rows = (row for row in _programs()["lacking"] if _program(command) in row["programs"])
    system = (machine.os_version or "").lower()
    return any(re.search("|".join(row["distributions"]), system) for row in rows)


def _program(command: str) -> str:
    return command.removeprefix("sudo ").partition(" ")[0]


@cache
def _programs() -> dict[str, Any]:
    return tomllib.loads(files("assistant.diagnose").joinpath("programs.toml").read_text("utf-8"))


def _checked(way: Way, usual: tuple[str, ...]) -> Way:
    """Give a way that does something a check: the usual one of its rule, or that its variables are set."""
    if way.check or not (way.commands or way.env or way.plan or way.launch):
        return way
    told = (f"""python -c "import os; assert os.environ['{name}'] == '{value}'\"""" for name, value in way.env.items())
    return replace(way, check=usual or tuple(told))


def remedy(way: Way) -> Remedy:
    """Turn a rule's way out into a remedy, its plan still a wish."""
    return Remedy(text=_(way.text), commands=way.commands, env=way.env, check=way.check)


def _facts_told(fit: Fit, machine: Machine) -> tuple[str, ...]:
    """Say which facts of the machine the cause rests on, as `os: windows`."""
    told: dict[str, Any] = {
        "os": " ".join(filter(None, (machine.os, "WSL" if machine.wsl else None))),
        "gpu": ", ".join(gpu.name or gpu.gfx or gpu.vendor.value for gpu in machine.gpus),
        "packages": ", ".join(f"{name} {version}" for name, version in sorted(machine.packages.items())[:8]),
        "python": machine.python,
    }
    names = dict.fromkeys({"vendor": "gpu", "integrated": "gpu", "gpus": "gpu"}.get(name, name) for name in fit.known)
    return tuple(f"{name}: {told[name]}" for name in names if told.get(name))
