"""What people tell in their own words: symptoms with the causes that facts give them, and messages that they retell."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import Literal

from assistant.catalog import load_catalog
from assistant.catalog.names import patterns
from assistant.diagnose.log import Log
from assistant.diagnose.predicates import check_facts, evaluate
from assistant.diagnose.rules import Cause, check_up, table
from assistant.model.machine import Machine
from assistant.model.record import Record
from assistant.parsers.mentioned import replaced_torch

APART_IN_A_SENTENCE = 60  # chosen: characters between words that belong together
LONGEST_SENTENCE = 400  # chosen: nobody tells what is wrong in a longer line
# Ends of sentences; a full stop ends one where a blank follows, since versions and file names hold stops, too.
_ENDS = re.compile(r"[!?;。！？；\n]|\.(?=\s|$)|(?<=\w),(?=\s)")

# What goes wrong once another build is there.
_NO_LONGER = re.compile(
    r"not compiled with cuda|not able to use gpu|\bfalse\b|is none|\bnone\b|no longer|error:"
    r"|stopped working|不能用|用不了|没有gpu|变成|失效|报错"
)

# RuntimeError: …     error: subprocess-exited-with-error
_ERROR = re.compile(r"\w(?:error|exception)\b ?:|^error:", re.MULTILINE)


class Sign(Record, frozen=True):
    """One way to tell something: a sentence has a word of each list in `near`, each near one of the first list's.

    A sentence with a word of one of the lists in `none` does not tell it.
    """

    near: tuple[str, ...]
    none: tuple[str, ...] = ()


class Told(Record, frozen=True):
    """Something that people tell in one of several ways; `printed` are patterns of what programs print in its place."""

    key: str
    sign: tuple[Sign, ...]
    printed: tuple[str, ...] = ()


class Symptom(Record, frozen=True):
    """What goes wrong, in a sentence; a finding of the machine with a key in `explained_by` is a cause of it.

    `asks` are the facts that tell its causes apart, the one that decides most often first.
    """

    key: str
    text: str
    asks: tuple[Literal["gpu", "packages", "driver", "os", "python"], ...] = ()
    explained_by: tuple[str, ...] = ()


class Explanation(Record, frozen=True):
    """A cause that is told: all of `told`, none of `silent`; the facts as in the signs of rules."""

    key: str
    told: tuple[str, ...]
    silent: tuple[str, ...] = ()
    basis: str = "symptom-told"
    facts: dict[str, object] = {}
    unless: dict[str, object] = {}
    likely: dict[str, object] = {}


class _SymptomsFile(Record, frozen=True):
    as_of: str
    words: dict[str, tuple[str, ...]]
    told: tuple[Told, ...]
    symptom: tuple[Symptom, ...]
    explanation: tuple[Explanation, ...]


def symptom_causes(log: Log, machine: Machine) -> Iterator[Cause]:
    """Yield a cause for a replaced build, then those that findings and the table of explanations give for a text.

    If the text tells nothing, or tells of no trouble, only the first may be yielded.
    """
    yield from _replaced_build_causes(log, machine)
    line_of = told_lines(log)
    if not line_of or asks_for_nothing(log):
        return
    problems = {finding.key: finding for finding in check_up(machine) if finding.wrong}
    for symptom in (row for row in _tables().symptom if row.key in line_of):
        present_keys = [key for key in symptom.explained_by if key in problems]
        for key in present_keys:
            basis = "symptom-and-fact" if key == present_keys[0] else "another-fact"
            yield Cause(key, basis, (line_of[symptom.key],))
    for row in _tables().explanation:
        if not all(key in line_of for key in row.told) or any(key in line_of for key in row.silent):
            continue
        likely = evaluate(machine, row.likely)
        if all(evaluate(machine, row.facts).values()) and False not in likely.values():
            if any(evaluate(machine, row.unless).values()):
                continue
            unknown = tuple(name for name, verdict in likely.items() if verdict is None)
            decisive = (*row.facts, *(name for name in likely if name not in unknown))
            lines = tuple(dict.fromkeys(line_of[key] for key in row.told))
            yield Cause(row.key, row.basis, lines, known=decisive, unknown=unknown)


def fact_causes(log: Log, machine: Machine) -> Iterator[Cause]:
    """Yield what a machine's facts alone show to be wrong, if a text without errors tells of trouble with a GPU.

    An error that a program printed has a cause of its own.
    """
    line_of = told_lines(log)
    trouble = line_of.get("trouble", line_of.get("how-long"))
    if trouble is None or "about-a-gpu" not in line_of or asks_for_nothing(log) or _ERROR.search(log.text):
        return
    problems = {finding.key for finding in check_up(machine) if finding.wrong}
    causes = dict.fromkeys(key for symptom in _tables().symptom for key in symptom.explained_by if key in problems)
    for key in causes:
        yield Cause(key, "fact-alone" if key == next(iter(causes)) else "another-fact", (trouble,))


# (as wanted, the bare one stays CPU)     a change from one extra of a project to another, told as such
_AS_WANTED = re.compile(r"(?<!not )\bas (?:wanted|intended|designed)\b|符合预期")


def _replaced_build_causes(log: Log, machine: Machine) -> Iterator[Cause]:
    """Yield a cause if a GPU build of torch was removed for a CPU build, or for any other one and something fails."""
    removed, present = replaced_torch(log.text) or ("", "")
    plain_is_cpu = "+" not in present and machine.os in {"windows", "macos"}
    if not removed or not (present.endswith("+cpu") or plain_is_cpu or _NO_LONGER.search(log.text)):
        return
    if _AS_WANTED.search(log.text):
        return
    index = load_catalog().index_url(removed.partition("+")[2])
    beside = "".join(f" {name}" for name in ("torchvision", "torchaudio") if name in log.text)
    restore = f'python -m pip install "torch=={removed}"{beside}' + (f" --index-url {index}" if index else "")
    names = {"removed": removed, "present": present, "restore": restore}
    for_other_gpu = not present.endswith("+cpu") and "+" in present  # a build for another maker's GPU tells the rest
    yield Cause(
        "torch-replaced",
        "library-sure" if for_other_gpu or "but you have torch " in log.text else "installer",
        (log.index_at(log.text.find(removed)),),
        names,
    )


@lru_cache(maxsize=1)  # several ask what one text tells
def told_lines(log: Log) -> dict[str, int]:
    """Return the index of the first line that tells each thing of symptoms.toml, by its key, such as "trouble"."""
    printed = ((row.key, re.search("|".join(row.printed), log.text, re.ASCII)) for row in _tables().told if row.printed)
    lines = {key: log.index_at(match.start()) for key, match in printed if match}
    for start, sentence in _sentences(log.text):
        if not log.written[log.index_at(start)]:
            continue
        words = {name: list(pattern.finditer(sentence)) for name, pattern in _word_patterns().items()}
        for row in _tables().told:
            if row.key not in lines and any(
                not any(words[name] for name in sign.none)
                and _first_near_all([words[name] for name in sign.near], APART_IN_A_SENTENCE)
                for sign in row.sign
            ):
                lines[row.key] = log.index_at(start)
    return lines


def asks_for_nothing(log: Log) -> bool:
    """Return whether a text tells of no trouble: of a wish, of what is solved, or only of what works.

    Who has trouble often says as well what works: another program, another machine, the processor.
    """
    line_of = told_lines(log)
    return "solved" in line_of or "wish" in line_of or ("fine" in line_of and "trouble" not in line_of)


def is_for_another(log: Log) -> bool:
    """Return whether a person says that the text comes from somebody else's computer."""
    return "for-another" in told_lines(log)


def is_solved(log: Log) -> bool:
    """Return whether a text tells how a problem was solved, and no line of it was printed by a program."""
    blank_or_written = (
        written or not line.strip() for (_number, line), written in zip(log.lines, log.written, strict=True)
    )
    return "solved" in told_lines(log) and all(blank_or_written)


def symptoms(log: Log) -> tuple[Symptom, ...]:
    """Return the symptoms that a text tells, in the order of their table."""
    line_of = told_lines(log)
    return tuple(symptom for symptom in _tables().symptom if symptom.key in line_of)


def _sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield each short sentence of a text with its position, then each pair of neighbours in a line as one.

    A thought may end in the sentence after the one that begins it.
    """
    ends = [0, *(match.end() for match in _ENDS.finditer(text)), len(text)]
    parts = [(start, text[start:end]) for start, end in pairwise(ends) if text[start:end].strip()]
    yield from ((start, part) for start, part in parts if len(part) <= LONGEST_SENTENCE)
    for (start, part), (_start, following) in pairwise(parts):
        if len(part) + len(following) <= LONGEST_SENTENCE and "\n" not in part:
            yield start, part + following


def _first_near_all(lists: Sequence[Sequence[re.Match[str]]], apart: int) -> re.Match[str] | None:
    """Return the first list's first match that each other list has one near, `apart` characters at most; else None."""
    first, *others = lists
    for match in first:
        begin, end = match.start() - apart, match.end() + apart
        if all(any(other.end() >= begin and other.start() <= end for other in matches) for matches in others):
            return match
    return None


@cache
def _word_patterns() -> dict[str, re.Pattern[str]]:
    """Return the pattern of each list of words, by the list's name; names of cards are words for a GPU.

    A Chinese character ends an English word.
    """
    lists = dict(_tables().words)
    lists["gpu"] += tuple(pattern.pattern for pattern in patterns("mentions").values())
    return {name: re.compile("|".join(words), re.ASCII) for name, words in lists.items()}


@cache
def _tables() -> _SymptomsFile:
    """Return the shipped lexicon, read once; raise `BadInput`, `ValueError` or `TypeError` if it is wrong."""
    tables = table("symptoms.toml", _SymptomsFile)
    for row in tables.explanation:
        for facts in (row.facts, row.unless, row.likely):
            check_facts(facts, f"symptoms.toml, {row.key}")
    return tables


APART_IN_A_TEXT = 160  # chosen: characters between words of one thought, some two sentences
LONGEST_TEXT = 4000  # chosen: characters that a person writes of one problem


class Retold(Record, frozen=True):
    """A message retold: each pattern in `all` has a match near one of the first's, and none in `none` has any.

    Where `names` is set, what the first pattern matches is the value of that placeholder of the rule.
    """

    key: str
    all: tuple[str, ...]
    none: tuple[str, ...] = ()
    names: str = ""
    facts: dict[str, object] = {}
    unless: dict[str, object] = {}


class _RetoldFile(Record, frozen=True):
    as_of: str
    retold: tuple[Retold, ...]


def retold_causes(log: Log, machine: Machine) -> Iterator[Cause]:
    """Yield a cause for each message that a person retells; nothing for a long text or one that tells of no trouble."""
    lines = [
        (index, line.lower())
        for index, ((_number, line), is_written) in enumerate(zip(log.lines, log.written, strict=True))
        if is_written
    ]
    text = "\n".join(line for _index, line in lines)
    if not text or len(text) > LONGEST_TEXT or asks_for_nothing(log):
        return
    starts = [0]
    for _index, line in lines:
        starts.append(starts[-1] + len(line) + 1)
    keys: set[str] = set()
    for row in retold_rows():
        match = _find_retold(row, text)
        fits = all(evaluate(machine, row.facts).values()) and not any(evaluate(machine, row.unless).values())
        if match is None or row.key in keys or not fits:
            continue
        basis = "another-message-retold" if keys else "message-retold"
        keys.add(row.key)
        names = {row.names: re.sub(r"[ _]", "-", match[0])} if row.names else {}
        index, _line = lines[bisect_right(starts, match.start()) - 1]
        yield Cause(row.key, basis, (index,), names, tuple(row.facts))


def _find_retold(row: Retold, text: str) -> re.Match[str] | None:
    """Return the match of the first pattern of a retold message that has all others near it; None if none has.

    None, too, if one of the patterns that exclude the message is in the text.
    """
    if any(_compiled(pattern).search(text) for pattern in row.none):
        return None
    return _first_near_all([list(_compiled(pattern).finditer(text)) for pattern in row.all], APART_IN_A_TEXT)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Return the pattern compiled; a Chinese character ends an English word."""
    return re.compile(pattern, re.ASCII)


@cache
def retold_rows() -> tuple[Retold, ...]:
    """Return the shipped rows of retold messages, read once; raise `BadInput` and others if one is wrong."""
    rows = table("retold.toml", _RetoldFile).retold
    for row in rows:
        for facts in (row.facts, row.unless):
            check_facts(facts, f"retold.toml, {row.key}")
    return rows
