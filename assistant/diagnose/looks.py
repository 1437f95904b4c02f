"""What to look at next where no cause is known: the line that says most, and a look that tells the causes apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from assistant.diagnose.engine import is_beyond_pip, is_said, quoted, tells_no_trouble
from assistant.diagnose.environments import lacking_names, project_names
from assistant.diagnose.facts import LogContext
from assistant.diagnose.log import ERROR, Log, typed_lines
from assistant.diagnose.remedies import runs_on, typed_names
from assistant.diagnose.rules import PLACEHOLDER, compiled, holds, plain_table
from assistant.i18n import _
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.machine import Machine
from assistant.privacy import redact

# What a command is recognised by in a text: its words without options, paths, addresses and who runs it, or its names.
_OF_COMMAND = re.compile(r"(?<!\S)(?!(?:sudo|python|all|ubuntu)\s)[a-z][\w-]+(?!\S)")
_OF_CODE = re.compile(r"[a-z]\w*(?:\.\w+)+")

# A row of hints.toml or looks.toml, and the last match of each of its patterns in a log, in their order.
_Fitting = tuple[Mapping[str, Any], list[re.Match[str]]]


def next_step(log: Log, machine: Machine) -> tuple[tuple[Finding, ...], Remedy | None]:
    """Return what a log without a known cause tells, and the one thing to look at next; None if nothing tells more.

    `machine` holds all facts, those of the log included. What the log tells are symptoms and, last, the program's line
    that says most. A mistake of the program itself, whose key begins with "own-", is told alone, without a look.
    """
    context = LogContext(log, machine)
    has_error = bool(ERROR.search(log.text))
    in_trouble = not tells_no_trouble(log) and (has_error or not log.prose.asks_for_nothing)
    fitting = _fitting_rows(context, looks=in_trouble)
    advice = ((row, remedy) for row, found in fitting if (remedy := _as_remedy(row, found, context)))
    row, step = next(advice, ({}, None))
    if step and row.get("key", "").startswith("own-"):
        return (Finding(key=row["key"], severity=Severity.INFO, text=step.text),), None
    seen = [] if log.prose.asks_for_nothing else log.prose.symptoms
    findings = [Finding(key=symptom["key"], severity=Severity.INFO, text=_(symptom["text"])) for symptom in seen]
    # Without an error, a line that says much is mostly a warning that the program went on from.
    if (step or (in_trouble and has_error)) and (line := _telling_line(log)):
        text = _("The line that says most: {line}", line=line)
        findings.append(Finding(key="telling-line", severity=Severity.INFO, text=text))
    return tuple(findings), step


def _telling_line(log: Log) -> str:
    """Return the line of a program that says most of why something fails, as it is shown; "" if none does.

    Each list of looks.toml's `line` that has a pattern in it counts as much as its row says; of two alike the last one
    counts, as a program explains a failure next to where it ends.
    """
    rows = plain_table("looks.toml")["line"]
    best, most = "", 1
    for line in log.printed:
        lower = line.lower()
        weight = sum(row["weight"] for row in rows if any(compiled(each).search(lower) for each in row["any"]))
        if weight >= most:
            best, most = line, weight
    return quoted(best)


def _fitting_rows(context: LogContext, *, looks: bool) -> Iterator[_Fitting]:
    """Yield the hints that fit, of errors the one that stands last in the text first, then the `looks` if asked for."""
    hints = plain_table("hints.toml")
    yield from _fitting(hints["first"], context)
    yield from sorted(_fitting(hints["hint"], context), key=lambda hint: hint[1][-1].start(), reverse=True)
    if looks:
        yield from _fitting(plain_table("looks.toml")["look"], context)


def _fitting(rows: Iterable[Mapping[str, Any]], context: LogContext) -> Iterator[_Fitting]:
    """Yield the rows that fit a log and its machine."""
    log = context.log
    for row in rows:
        last = (match for pattern in row.get("any", ()) for match in [*compiled(pattern).finditer(log.text)][-1:])
        found = sorted(last, key=lambda match: match.start())
        is_told = (found or "any" not in row) and {*row.get("told", ())} <= {*log.prose.told}
        if is_told and is_said(row, log) and holds(context.machine, row.get("facts", {})):
            yield row, found


def _as_remedy(row: Mapping[str, Any], found: Iterable[re.Match[str]], context: LogContext) -> Remedy | None:
    """Return a row as a remedy, its placeholders filled by what its patterns found, redacted; None if one is not.

    A hint, which has a key, mends, and is typed whole, as it mostly ends with the user's own command. A look leaves out
    commands that tell nothing more; it is None if that leaves nothing of its commands, and no variable.
    """
    commands = [command for command in row.get("commands", ()) if runs_on(command, context.machine)]
    if "key" not in row:
        commands = [command for command in commands if _tells_more(command, context.log)]
        if row.get("commands") and not commands and "env" not in row:
            return None
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


def _tells_more(command: str, log: Log) -> bool:
    """Return whether a command can tell more than a log does; Python's cannot for a program that pip does not reach.

    Nor can one that was typed: its words, or the names of its code, stand behind a prompt in their order. Podman takes
    what docker takes, and what python -m starts is also started by its name.
    """
    if command.startswith(("python", "conda")) and is_beyond_pip(log):
        return False
    is_code = " -c " in command
    words = (_OF_CODE if is_code else _OF_COMMAND).findall(command.partition("|")[0])
    begin = "[^\n]*?" if is_code else r"(?:\S{1,60} ){0,3}?"  # sudo …     .venv/bin/python -m …
    typed = begin + "[^\n]*?".join(rf"(?<![\w-]){re.escape(word)}(?![\w-])" for word in words)
    return not (words and any(re.match(typed, line.replace("podman", "docker")) for line in typed_lines(log.text)))
