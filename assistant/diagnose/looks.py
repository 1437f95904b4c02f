"""What to look at next where no cause is known: the line that says most, and a look that tells the causes apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from assistant.diagnose.engine import is_beyond_pip, is_said, quoted, tells_no_trouble
from assistant.diagnose.environments import lacking_names, project_names
from assistant.diagnose.facts import LogContext
from assistant.diagnose.log import ERROR, Log
from assistant.diagnose.remedies import runs_on, typed_names
from assistant.diagnose.rules import PLACEHOLDER, compiled, holds, plain_table
from assistant.i18n import _
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.machine import Machine
from assistant.privacy import redact

# What a command is recognised by in a text: its program and its words without options, paths and addresses.
_PLAIN_WORD = re.compile(r"[A-Za-z][\w-]+")
_OF_CODE = re.compile(r"[a-z]\w*(?:\.\w+)+")
# What stands before a command that was typed, one sample each:
#   me@pc:~$ nvidia-smi     (.venv) PS D:\demo> pip check     >>> print(torch.__version__)     In [3]: torch.__version__
_PROMPT = re.compile(r"[^\n]{0,80}?(?:[$#%>➤❯➜»]|in \[\d{1,4}\]:) {0,3}(?=\S)")
_IS_PYTHON = ("python", "conda")  # begins the commands that help no program beyond pip

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
    looks = plain_table("looks.toml")["look"] if in_trouble else ()
    fitting = chain(_hints(context), _fitting(looks, context))
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


def _hints(context: LogContext) -> Iterable[_Fitting]:
    """Return the hints that fit: those that go before errors, then the error that stands last in the text first."""

    def rank(hint: _Fitting) -> tuple[bool, int]:
        row, found = hint
        is_first = row.get("first", False)
        return is_first, 0 if is_first else found[-1].start()

    return sorted(_fitting(plain_table("hints.toml")["hint"], context), key=rank, reverse=True)


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
    commands that the log shows as typed, and Python's for a program that pip does not reach; it is None if that leaves
    nothing of its commands, and no variable.
    """
    commands = [command for command in row.get("commands", ()) if runs_on(command, context.machine)]
    needed = {*PLACEHOLDER.findall(" ".join((row["text"], *commands)))}
    names = {
        name: redact(context.as_spelt(match.start(name), value))
        for match in found
        for name, value in match.groupdict().items()
        if value
    }
    if not needed <= {*names}:
        finders = (typed_names, project_names, lacking_names)
        names = {name: value for find in finders for name, value in find(context).items()} | names
    if not needed <= {*names}:
        return None
    commands = [PLACEHOLDER.sub(lambda match: names[match[1]], command) for command in commands]
    if "key" not in row:
        no_python = is_beyond_pip(context.log)
        commands = [
            command
            for command in commands
            if not (no_python and command.startswith(_IS_PYTHON)) and not _was_typed(command, context.log)
        ]
        if row.get("commands") and not commands and "env" not in row:
            return None
    return Remedy(text=_(row["text"], **names), commands=tuple(commands), env=row.get("env", {}))


def _was_typed(command: str, log: Log) -> bool:
    """Return whether a log has a command behind a prompt: its plain words in their order, or all names of its code.

    Podman takes what docker takes, and what python -m starts is also started by its name.
    """
    prompts = ((line, _PROMPT.match(line)) for line in log.text.split("\n"))
    typed = [line[prompt.end() :].replace("podman", "docker") for line, prompt in prompts if prompt]
    if " -c " in command:
        words = {*_OF_CODE.findall(command)}
        return bool(words) and any(all(word in line for word in words) for line in typed)
    plain = [rf"(?<![\w-]){re.escape(word)}(?![\w-])" for word in _plain_words(command)]
    begins = re.compile(r"(?:\S{1,60} ){0,3}?" + "[^\n]*?".join(plain))  # sudo …     .venv/bin/python -m …
    return bool(plain) and any(map(begins.match, typed))


def _plain_words(command: str) -> Iterator[str]:
    """Yield the words of a command that name what it does: no options, paths, addresses, and not who runs it."""
    for word in command.partition("|")[0].split():
        if _PLAIN_WORD.fullmatch(word) and word not in {"sudo", "python", "all", "ubuntu"}:
            yield word.lower()
