"""What to do where no cause is known: errors that say all themselves, programs with a runtime of their own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from assistant.diagnose.engine import Match, tells_no_trouble
from assistant.diagnose.environments import lacking_names, project_names
from assistant.diagnose.facts import LogContext
from assistant.diagnose.likeness import possible_causes
from assistant.diagnose.log import ERROR, Log, is_said
from assistant.diagnose.remedies import runs_on, typed_names
from assistant.diagnose.rules import PLACEHOLDER, compiled, holds, plain_table
from assistant.i18n import _
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.machine import Machine
from assistant.privacy import redact

_MORE = Remedy(
    text=_("Paste the whole output, from the command that was typed to the last line; this command looks at the rest."),
    commands=("assistant doctor",),
)
# A row of hints.toml, and the last match of each of its patterns in a log, in their order.
_Fitting = tuple[Mapping[str, Any], list[re.Match[str]]]


class NextStep(NamedTuple):
    """What a log without a known cause tells, and what to do: what is advised, or else causes that are possible."""

    symptoms: tuple[Finding, ...] = ()
    advice: Remedy | None = None
    possible: tuple[Match, ...] = ()


def next_step(log: Log, machine: Machine, *, guessing: bool = True) -> NextStep:
    """Return what to do about a log without a sure cause; `machine` holds all facts, those of the log included.

    A hint goes before causes that are only possible, which are left out without `guessing`; without either the whole
    output is asked for. A mistake of the program itself is a symptom whose key begins with "own-", and nothing is to be
    done then.
    """
    context = LogContext(log, machine)
    advices = ((row, remedy) for row, found in _fitting_rows(context) if (remedy := _as_remedy(row, found, context)))
    row, advice = next(advices, ({"key": ""}, None))
    if advice and row["key"].startswith("own-"):
        return NextStep((Finding(key=row["key"], severity=Severity.INFO, text=advice.text),))
    if tells_no_trouble(log) or (log.prose.asks_for_nothing and not ERROR.search(log.text)):
        return NextStep(advice=advice)
    symptoms = tuple(Finding(key=one["key"], severity=Severity.INFO, text=_(one["text"])) for one in log.prose.symptoms)
    possible = possible_causes(log, machine) if guessing and not advice else ()
    asks_more = not advice and not possible and (symptoms or "trouble" in log.prose.told or ERROR.search(log.text))
    return NextStep(symptoms, _MORE if asks_more else advice, possible)


def _fitting_rows(context: LogContext) -> Iterator[_Fitting]:
    """Yield the hints that fit, of errors the one that stands last in the text first."""
    hints = plain_table("hints.toml")
    yield from _fitting(hints["first"], context)
    yield from sorted(_fitting(hints["hint"], context), key=lambda hint: hint[1][-1].start(), reverse=True)


def _fitting(rows: Iterable[Mapping[str, Any]], context: LogContext) -> Iterator[_Fitting]:
    """Yield the rows that fit a log and its machine."""
    log = context.log
    for row in rows:
        last = (match for pattern in row["any"] for match in [*compiled(pattern).finditer(log.text)][-1:])
        found = sorted(last, key=lambda match: match.start())
        if found and is_said(row, log) and holds(context.machine, row.get("facts", {})):
            yield row, found


def _as_remedy(row: Mapping[str, Any], found: Iterable[re.Match[str]], context: LogContext) -> Remedy | None:
    """Return a row as a remedy, its placeholders filled by what its patterns found, redacted; None if one is not."""
    commands = [command for command in row.get("commands", ()) if runs_on(command, context.machine)]
    needed = {*PLACEHOLDER.findall(" ".join((row["text"], *commands)))}
    names = {
        name: redact(context.as_spelt(match.start(name), value))
        for match in found
        for name, value in match.groupdict().items()
        if value
    }
    for find in (lacking_names, project_names, typed_names):
        names = names if needed <= {*names} else {**find(context), **names}
    if not needed <= {*names}:
        return None
    filled = tuple(PLACEHOLDER.sub(lambda match: names[match[1]], command) for command in commands)
    return Remedy(text=_(row["text"], **names), commands=filled, env=row.get("env", {}))
