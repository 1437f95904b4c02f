"""What people tell in their own words: things by a lexicon, messages that they retell, and what to look at next."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from itertools import pairwise
from typing import Literal

from assistant.catalog import load_catalog
from assistant.catalog.names import patterns
from assistant.diagnose.log import Log
from assistant.diagnose.rules import NO_NAMES, Cause, Sign, load_rules, table
from assistant.i18n import _
from assistant.model.finding import Remedy
from assistant.model.machine import Machine
from assistant.model.record import Record
from assistant.parsers.mentioned import replaced_torch

APART_IN_A_SENTENCE = 60  # chosen: characters between words that belong together
LONGEST_SENTENCE = 400  # chosen: nobody tells what is wrong in a longer line
APART_IN_A_TEXT = 160  # chosen: characters between words of one thought, some two sentences
LONGEST_TEXT = 4000  # chosen: characters that a person writes of one problem
# Ends of sentences; a full stop ends one where a blank follows, since versions and file names hold stops, too.
_ENDS = re.compile(r"[!?;。！？；\n]|\.(?=\s|$)|(?<=\w),(?=\s)")
# RuntimeError: …     error: subprocess-exited-with-error
_ERROR = re.compile(r"\w(?:error|exception)\b ?:|^error:", re.MULTILINE)
# What goes wrong once another build is there.
_NO_LONGER = re.compile(
    r"not compiled with cuda|not able to use gpu|\bfalse\b|is none|\bnone\b|no longer|error:"
    r"|stopped working|不能用|用不了|没有gpu|变成|失效|报错"
)
# (as wanted, the bare one stays CPU)     a change from one extra of a project to another, told as such
_AS_WANTED = re.compile(r"(?<!not )\bas (?:wanted|intended|designed)\b|符合预期")


class Near(Record, frozen=True):
    """One way to tell something: a sentence has a word of each list in `near`, each near one of the first list's.

    A sentence with a word of one of the lists in `none` does not tell it.
    """

    near: tuple[str, ...]
    none: tuple[str, ...] = ()


class Told(Record, frozen=True):
    """Something that people tell in one of several ways; `printed` are patterns of what programs print in its place."""

    key: str
    sign: tuple[Near, ...]
    printed: tuple[str, ...] = ()


class Symptom(Record, frozen=True):
    """What goes wrong, in a sentence; `asks` are the facts that tell its causes apart, the most decisive first."""

    key: str
    text: str
    asks: tuple[Literal["gpu", "packages", "driver", "os", "python"], ...] = ()


class _SymptomsFile(Record, frozen=True):
    as_of: str
    words: dict[str, tuple[str, ...]]
    told: tuple[Told, ...]
    symptom: tuple[Symptom, ...]


class Prose:
    """What a person wrote in a log: its text in lower case, and what it tells (`told`, see `told_lines`)."""

    def __init__(self, log: Log) -> None:
        self.told = told_lines(log)
        written = zip(log.lines, log.written, strict=True)
        lines = [(index, line.lower()) for index, ((_number, line), mine) in enumerate(written) if mine]
        self.text = "\n".join(line for _index, line in lines)
        self._indexes = [index for index, _line in lines]
        self._starts = [match.end() for match in re.finditer(r"^", self.text, re.MULTILINE)]
        both = zip(log.lines, log.written, strict=True)
        self._printed = [line for (_number, line), mine in both if not mine and line.strip()]

    @cached_property
    def asks_for_nothing(self) -> bool:
        """Whether a text tells of no trouble: of a wish, of what is solved, or only of what works.

        Who has trouble often says as well what works: another program, another machine, the processor.
        """
        told = self.told
        return "solved" in told or "wish" in told or ("fine" in told and "trouble" not in told)

    @property
    def is_solved(self) -> bool:
        """Whether a text tells how a problem was solved, and no line of it was printed by a program."""
        return "solved" in self.told and not self._printed

    def find(self, sign: Sign) -> tuple[tuple[int, ...], Mapping[str, str]] | None:
        """Return the indexes of the lines that tell a sign of prose.toml, and its name; None if it is not told."""
        if self.asks_for_nothing or not {*sign.told} <= {*self.told} or {*sign.silent} & {*self.told}:
            return None
        lines, names = [self.told[key] for key in sign.told], NO_NAMES
        if sign.near:
            if len(self.text) > LONGEST_TEXT or any(_compiled(pattern).search(self.text) for pattern in sign.without):
                return None
            matches = [list(_compiled(pattern).finditer(self.text)) for pattern in sign.near]
            match = _first_near_all(matches, APART_IN_A_TEXT)
            if match is None:
                return None
            lines.append(self._indexes[bisect_right(self._starts, match.start()) - 1])
            names = {sign.named: re.sub(r"[ _]", "-", match[0])} if sign.named else NO_NAMES
        return tuple(dict.fromkeys(lines)), names


prose_of = lru_cache(maxsize=1)(Prose)  # one log is judged for several machines in a row


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
                not any(words[name] for name in way.none)
                and _first_near_all([words[name] for name in way.near], APART_IN_A_SENTENCE)
                for way in row.sign
            ):
                lines[row.key] = log.index_at(start)
    return lines


def _sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield each short sentence of a text with its position, then each pair of neighbours in a line as one.

    A thought may end in the sentence after the one that begins it.
    """
    ends = [0, *(match.end() for match in _ENDS.finditer(text)), len(text)]
    parts = [(start, text[start:end]) for start, end in pairwise(ends) if text[start:end].strip()]
    pairs = [(start, part + following) for (start, part), (_start, following) in pairwise(parts) if "\n" not in part]
    yield from ((start, part) for start, part in (*parts, *pairs) if len(part) <= LONGEST_SENTENCE)


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
    """Return the pattern of each list of words, by the list's name; names of cards are words for a GPU."""
    lists = dict(_tables().words)
    lists["gpu"] += tuple(pattern.pattern for pattern in patterns("mentions").values())
    return {name: _compiled("|".join(words)) for name, words in lists.items()}


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Return the pattern compiled; a Chinese character ends an English word."""
    return re.compile(pattern, re.ASCII)


def _tables() -> _SymptomsFile:
    """Return the shipped lexicon."""
    return table("symptoms.toml", _SymptomsFile)


def symptoms(log: Log) -> tuple[Symptom, ...]:
    """Return the symptoms that a text tells, in the order of their table."""
    return tuple(symptom for symptom in _tables().symptom if symptom.key in prose_of(log).told)


def is_for_another(log: Log) -> bool:
    """Return whether a person says that the text comes from somebody else's computer."""
    return "for-another" in prose_of(log).told


def fact_causes(log: Log, machine: Machine) -> Iterator[Cause]:
    """Yield what a machine's facts alone show to be wrong, if a text without errors tells of trouble with a GPU.

    An error that a program printed has a cause of its own.
    """
    prose = prose_of(log)
    trouble = prose.told.get("trouble", prose.told.get("how-long"))
    if trouble is None or "about-a-gpu" not in prose.told or prose.asks_for_nothing or _ERROR.search(log.text):
        return
    problems = {finding.key for finding in load_rules().check_up(machine) if finding.wrong}
    for rule in load_rules().rules:
        if rule.key in problems and any(sign.found for sign in rule.sign):
            yield Cause(rule.key, "fact-alone", (trouble,))


def replaced_build_causes(log: Log, machine: Machine) -> Iterator[Cause]:
    """Yield a cause if a GPU build of torch was removed for a CPU build, or for any other one and something fails."""
    removed, present = replaced_torch(log.text) or ("", "")
    plain_is_cpu = "+" not in present and machine.os in {"windows", "macos"}
    fails = present.endswith("+cpu") or plain_is_cpu or _NO_LONGER.search(log.text)
    if not removed or not fails or _AS_WANTED.search(log.text):
        return
    index = load_catalog().index_url(removed.partition("+")[2])
    beside = "".join(f" {name}" for name in ("torchvision", "torchaudio") if name in log.text)
    restore = f'python -m pip install "torch=={removed}"{beside}' + (f" --index-url {index}" if index else "")
    for_other_gpu = not present.endswith("+cpu") and "+" in present  # a build for another maker's GPU tells the rest
    yield Cause(
        "torch-replaced",
        "library-sure" if for_other_gpu or "but you have torch " in log.text else "installer",
        (log.index_at(log.text.find(removed)),),
        {"removed": removed, "present": present, "restore": restore},
    )


class Hint(Record, frozen=True):
    """What to do next, for a text in which one of the patterns `any` matches, or a machine with a GPU of a maker.

    Each of the patterns `all` must match as well. A hint about a `program` goes before those about errors. One by
    `vendor` is for the systems `os` ("linux", "windows", "macos"), or for all if that is empty.
    """

    key: str
    text: str
    source: str
    any: tuple[str, ...] = ()
    all: tuple[str, ...] = ()
    program: bool = False
    vendor: str = ""
    os: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


class _HintsFile(Record, frozen=True):
    as_of: str
    hint: tuple[Hint, ...]


def hint_for(log: Log, machine: Machine, *, about_a_gpu: bool) -> Remedy | None:
    """Return what to look at next for a text without a known cause; None if nothing can be said.

    The error that stands last in the text goes before those above it, and any of them before the check of the GPU,
    which is given if the text is `about_a_gpu` and all GPUs are of one maker.
    """
    rows = table("hints.toml", _HintsFile).hint
    vendors = {gpu.vendor.value for gpu in machine.gpus}
    ranked = [
        (row.program, found[-1].start() if not row.program else 0, row)
        for row in rows
        if row.any
        and (found := [*_compiled("|".join(row.any)).finditer(log.text)])
        and all(_compiled(pattern).search(log.text) for pattern in row.all)
    ]
    hints = [row for _program, _at, row in sorted(ranked, key=lambda entry: entry[:2], reverse=True)]
    if about_a_gpu:
        hints += [row for row in rows if {row.vendor} == vendors and (not row.os or machine.os in row.os)]
    return Remedy(text=_(hints[0].text), commands=hints[0].commands) if hints else None
