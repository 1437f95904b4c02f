"""What people tell in their own words: symptoms with the causes that facts give them, and messages that they retell."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from itertools import pairwise
from typing import Literal

from assistant.catalog import load_catalog
from assistant.catalog.names import patterns
from assistant.diagnose.log import Log
from assistant.diagnose.predicates import ask, check_facts
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
    """One way to tell something: words of each of these lists stand near one another in a sentence, in any order.

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
    """Yield the causes that explain what a text tells: those that the machine's facts give, then its own."""
    yield from _replaced(log, machine)
    said = told(log)
    if not said or asks_for_nothing(log):
        return
    wrong = {finding.key: finding for finding in check_up(machine) if finding.wrong}
    for symptom in (one for one in _tables().symptom if one.key in said):
        explained = [key for key in symptom.explained_by if key in wrong]
        for key in explained:
            basis = "symptom-and-fact" if key == explained[0] else "another-fact"
            yield Cause(key, basis, (said[symptom.key],))
    for row in _tables().explanation:
        if not all(key in said for key in row.told) or any(key in said for key in row.silent):
            continue
        likely = ask(machine, row.likely)
        if all(ask(machine, row.facts).values()) and False not in likely.values():
            if any(ask(machine, row.unless).values()):
                continue
            unknown = tuple(name for name, verdict in likely.items() if verdict is None)
            known = (*row.facts, *(name for name in likely if name not in unknown))
            lines = tuple(dict.fromkeys(said[key] for key in row.told))
            yield Cause(row.key, row.basis, lines, known=known, unknown=unknown)


def fact_causes(log: Log, machine: Machine) -> Iterator[Cause]:
    """Yield what is wrong with a machine by its facts alone, where a text about GPUs tells trouble and no more.

    A program's own error has a cause of its own.
    """
    said = told(log)
    trouble = said.get("trouble", said.get("how-long"))
    if trouble is None or "about-a-gpu" not in said or asks_for_nothing(log) or _ERROR.search(log.text):
        return
    wrong = {finding.key for finding in check_up(machine) if finding.wrong}
    known = dict.fromkeys(key for symptom in _tables().symptom for key in symptom.explained_by if key in wrong)
    for key in known:
        yield Cause(key, "fact-alone" if key == next(iter(known)) else "another-fact", (trouble,))


def _replaced(log: Log, machine: Machine) -> Iterator[Cause]:
    """Yield that a GPU build was removed for another one, where that one is no GPU build or something went wrong."""
    removed, present = replaced_torch(log.text) or ("", "")
    plain_is_cpu = "+" not in present and machine.os in {"windows", "macos"}
    if not removed or not (present.endswith("+cpu") or plain_is_cpu or _NO_LONGER.search(log.text)):
        return
    index = load_catalog().index_url(removed.partition("+")[2])
    beside = "".join(f" {name}" for name in ("torchvision", "torchaudio") if name in log.text)
    restore = f'python -m pip install "torch=={removed}"{beside}' + (f" --index-url {index}" if index else "")
    names = {"removed": removed, "present": present, "restore": restore}
    sure = not present.endswith("+cpu") and "+" in present  # a build for another maker's GPU tells the rest
    yield Cause(
        "torch-replaced", "library-sure" if sure else "installer", (log.index_at(log.text.find(removed)),), names
    )


@lru_cache(maxsize=1)  # several ask what one text tells
def told(log: Log) -> dict[str, int]:
    """Return what a text tells, by key, each with the index of the first line that tells it."""
    shown = ((one.key, _printed(one.key).search(log.text)) for one in _tables().told if one.printed)
    found = {key: log.index_at(match.start()) for key, match in shown if match}
    for start, sentence in _sentences(log.text):
        if not log.written[log.index_at(start)]:
            continue
        words = {name: list(pattern.finditer(sentence)) for name, pattern in _words().items()}
        for one in _tables().told:
            if one.key not in found and any(_is_told(sign, words) for sign in one.sign):
                found[one.key] = log.index_at(start)
    return found


def asks_for_nothing(log: Log) -> bool:
    """Return whether a person tells of no trouble: of a wish, of what is solved, or of what works and of nothing else.

    Who has trouble often says as well what works: another program, another machine, the processor.
    """
    said = told(log)
    return "solved" in said or "wish" in said or ("fine" in said and "trouble" not in said)


def is_solved(log: Log) -> bool:
    """Return whether a person tells how a problem was solved, and nothing that a program printed stands beside it."""
    return all(log.written) and "solved" in told(log)


def symptoms(log: Log) -> tuple[Symptom, ...]:
    """Return the symptoms that a text tells."""
    said = told(log)
    return tuple(symptom for symptom in _tables().symptom if symptom.key in said)


def _sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield sentences with their positions, and each with the one after it, which may hold the rest of a thought."""
    ends = [0, *(found.end() for found in _ENDS.finditer(text)), len(text)]
    parts = [(start, text[start:end]) for start, end in pairwise(ends) if text[start:end].strip()]
    yield from ((start, part) for start, part in parts if len(part) <= LONGEST_SENTENCE)
    for (start, part), (_start, following) in pairwise(parts):
        if len(part) + len(following) <= LONGEST_SENTENCE and "\n" not in part:
            yield start, part + following


def _is_told(sign: Sign, words: dict[str, list[re.Match[str]]]) -> bool:
    if any(words[name] for name in sign.none):
        return False
    places = [[found.span() for found in words[name]] for name in sign.near]
    return all(places) and any(_all_near(first, places[1:]) for first in places[0])


def _all_near(first: tuple[int, int], others: Iterable[list[tuple[int, int]]]) -> bool:
    """Return whether each of the other lists has a word that stands near a first one."""
    return all(
        any(end + APART_IN_A_SENTENCE >= first[0] and start <= first[1] + APART_IN_A_SENTENCE for start, end in spans)
        for spans in others
    )


@cache
def _printed(key: str) -> re.Pattern[str]:
    return re.compile("|".join(next(one.printed for one in _tables().told if one.key == key)), re.ASCII)


@cache
def _words() -> dict[str, re.Pattern[str]]:
    """Compile the lists; names of cards are words for a GPU, and a Chinese character ends an English word."""
    lists = dict(_tables().words)
    lists["gpu"] += tuple(pattern.pattern for pattern in patterns("mentions").values())
    return {name: re.compile("|".join(words), re.ASCII) for name, words in lists.items()}


@cache
def _tables() -> _SymptomsFile:
    """Read the shipped lexicon, once; raise `BadInput`, `ValueError` or `TypeError` naming what is wrong in it."""
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
    """Yield the causes of messages that a person retells; nothing where the person says that all is well."""
    lines = [
        (index, line.lower())
        for index, ((_number, line), own) in enumerate(zip(log.lines, log.written, strict=True))
        if own
    ]
    text = "\n".join(line for _index, line in lines)
    if not text or len(text) > LONGEST_TEXT or asks_for_nothing(log):
        return
    starts = [0]
    for _index, line in lines:
        starts.append(starts[-1] + len(line) + 1)
    found: set[str] = set()
    for row in retold():
        place = _place(row, text)
        fits = all(ask(machine, row.facts).values()) and not any(ask(machine, row.unless).values())
        if place is None or row.key in found or not fits:
            continue
        basis = "another-message-retold" if found else "message-retold"
        found.add(row.key)
        names = {row.names: re.sub(r"[ _]", "-", place[0])} if row.names else {}
        index, _line = lines[bisect_right(starts, place.start()) - 1]
        yield Cause(row.key, basis, (index,), names, tuple(row.facts))


def _place(row: Retold, text: str) -> re.Match[str] | None:
    """Return where a text retells a message; None where it does not."""
    if any(_compiled(pattern).search(text) for pattern in row.none):
        return None
    first, *others = [list(_compiled(pattern).finditer(text)) for pattern in row.all]
    for place in first:
        if all(any(_is_near(place, other) for other in matches) for matches in others):
            return place
    return None


def _is_near(first: re.Match[str], second: re.Match[str]) -> bool:
    return second.end() + APART_IN_A_TEXT >= first.start() and second.start() <= first.end() + APART_IN_A_TEXT


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)  # a Chinese character ends an English word


@cache
def retold() -> tuple[Retold, ...]:
    """Read the shipped rows, once; raise `BadInput`, `ValueError` or `TypeError` naming what is wrong in them."""
    rows = table("retold.toml", _RetoldFile).retold
    for row in rows:
        for facts in (row.facts, row.unless):
            check_facts(facts, f"retold.toml, {row.key}")
    return rows
