"""What to look at next where no cause is known: the line that says most, and a look that tells the causes apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from assistant.diagnose.engine import is_said, merged, tells_no_trouble
from assistant.diagnose.environments import lacking_names, project_names
from assistant.diagnose.facts import LogContext
from assistant.diagnose.log import ERROR, Log
from assistant.diagnose.remedies import runs_on, typed_names
from assistant.diagnose.rules import PLACEHOLDER, compiled, holds, plain_table
from assistant.i18n import _
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.machine import Machine
from assistant.privacy import redact

SHOWN = 300  # characters of a line that are quoted
# Where a long line of a person is cut into its sentences; a stop within a version or a file's name ends none.
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；])")
# What a command is recognised by in a text: its program and its words without options, paths and addresses.
_PLAIN_WORD = re.compile(r"[A-Za-z][\w-]+")
_OF_CODE = re.compile(r"[a-z]\w*(?:\.\w+)+")
# RuntimeError: Ninja is required to load C++ extensions (pip install ninja to get it)     a message is no run
_MESSAGE = re.compile(r"(?:error|exception|warning)(?::|\()")


def next_step(log: Log, machine: Machine) -> tuple[tuple[Finding, ...], Remedy | None]:
    """Return what a log without a known cause tells, and the one thing to look at next; None if it tells no trouble.

    What it tells are symptoms and, last, the line that says most. A symptom whose key begins with "own-" is a mistake
    of the program itself, and nothing is to be looked at then.
    """
    seen = [] if log.prose.asks_for_nothing else log.prose.symptoms
    findings = [Finding(key=row["key"], severity=Severity.INFO, text=_(row["text"])) for row in seen]
    step = _hint_for(log, machine)
    if step is None and not tells_no_trouble(log) and (ERROR.search(log.text) or not log.prose.asks_for_nothing):
        step = _first_advice(plain_table("looks.toml")["look"], log, machine)
    own = [row for row in plain_table("hints.toml")["hint"] if row["key"].startswith("own-")]
    if step and (said := [row for row in own if step.text == _(row["text"])]):
        own_mistake = (Finding(key=row["key"], severity=Severity.INFO, text=_(row["text"])) for row in said)
        return tuple(own_mistake), None
    if step and (line := telling_line(log)):
        text = _("The line that says most: {line}", line=line)
        findings.append(Finding(key="telling-line", severity=Severity.INFO, text=text))
    return tuple(findings), step


def telling_line(log: Log) -> str:
    """Return the line or sentence of a log that says most of why something fails, redacted and cut; "" if none does.

    Each list of looks.toml's `line` that has a pattern in it counts as much as its row says; of two alike the last one
    counts, as a program explains a failure next to where it ends.
    """
    rows = plain_table("looks.toml")["line"]
    best, most = "", 0
    for (_number, line), written in zip(log.lines, log.written, strict=True):
        for part in _SENTENCE.split(line) if written else [line]:
            lower = part.lower()
            weight = sum(row["weight"] for row in rows if any(compiled(each).search(lower) for each in row["any"]))
            if weight >= most and weight > 0:
                best, most = part, weight
    return redact(best.strip())[:SHOWN]


def _hint_for(log: Log, machine: Machine) -> Remedy | None:
    """Return what a hint says of a message that is complete, or of a program with a runtime of its own; else None.

    Programs go before errors, and the error that stands last in the text before those above it.
    """
    ranked = [
        (row.get("program", False), 0 if row.get("program") else found[-1].start(), row)
        for row in plain_table("hints.toml")["hint"]
        if (found := _found(row.get("any", ()), log))
    ]
    ranked.sort(key=lambda entry: entry[:2], reverse=True)
    return _first_advice((row for _program, _at, row in ranked), log, machine)


def _found(patterns: Iterable[str], log: Log) -> list[re.Match[str]]:
    """Return the last match of each pattern that a log has, the one that stands last at the end."""
    found = [[*compiled(pattern).finditer(log.text)][-1:] for pattern in patterns]
    return sorted((match for matches in found for match in matches), key=lambda match: match.start())


def _first_advice(rows: Iterable[Mapping[str, Any]], log: Log, machine: Machine) -> Remedy | None:
    """Return the first row that fits a log and its machine as a remedy; None if none does.

    A row with a placeholder that the log does not fill is left out, and so is one whose commands the log shows.
    """
    context = LogContext(log, merged(machine, log.facts))
    for row in rows:
        is_in_log = any(compiled(pattern).search(log.text) for pattern in row.get("any", ("",)))
        if not is_in_log or not {*row.get("told", ())} <= {*log.prose.told} or not is_said(row, log):
            continue
        if holds(context.machine, row.get("facts", {})) and (advice := _as_remedy(row, context)):
            return advice
    return None


def _as_remedy(row: Mapping[str, Any], context: LogContext) -> Remedy | None:
    """Return a row as a remedy, its placeholders filled by what its patterns find; None if one is not.

    A look leaves out commands that the log shows as run, and is None without others; a hint, which has a key, mends,
    and is typed whole, as it mostly ends with the user's own command. What was found is redacted.
    """
    commands = tuple(command for command in row.get("commands", ()) if runs_on(command, context.machine))
    needed = {*PLACEHOLDER.findall(" ".join((row["text"], *commands)))}
    names = {
        name: redact(context.as_spelt(match.start(name), value))
        for match in _found((*row.get("any", ()), *row.get("all", ())), context.log)
        for name, value in match.groupdict().items()
        if value
    }
    if not needed <= {*names}:
        finders = (typed_names, project_names, lacking_names)
        names = {name: value for find in finders for name, value in find(context).items()} | names
    if not needed <= {*names}:
        return None
    filled = [PLACEHOLDER.sub(lambda match: names[match[1]], command) for command in commands]
    new = [command for command in filled if "key" in row or not _was_run(command, context.log)]
    if filled and not new:
        return None
    no_python = is_said(plain_table("programs.toml")["not_python"], context.log)
    fitting = tuple(command for command in new if not (no_python and command.startswith("python")))
    return Remedy(text=_(row["text"], **names), commands=fitting, env=row.get("env", {}))


def _was_run(command: str, log: Log) -> bool:
    """Return whether a log shows a command as run: its plain words in their order, or all names of its code, in a line.

    Podman takes what docker takes, and what python -m starts is also started by its name. What an error's message
    names was not run.
    """
    lines = (line.replace("podman", "docker") for line in log.text.split("\n") if not _MESSAGE.search(line))
    if " -c " in command:
        words = {*_OF_CODE.findall(command)}
        return bool(words) and any(all(word in line for word in words) for line in lines)
    typed = [rf"(?<![\w-]){re.escape(word)}(?![\w-])" for word in _plain_words(command)]
    return bool(typed) and any(re.search("[^\n]*?".join(typed), line) for line in lines)


def _plain_words(command: str) -> Iterator[str]:
    """Yield the words of a command that name what it does: no options, paths, addresses, and not who runs it."""
    for word in command.partition("|")[0].split():
        if _PLAIN_WORD.fullmatch(word) and word not in {"sudo", "python", "all", "ubuntu"}:
            yield word.lower()
