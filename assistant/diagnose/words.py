"""What a person wrote in a log, and what it tells: things by a lexicon, and messages that people retell."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from assistant.catalog.identity import patterns
from assistant.diagnose.rules import NO_NAMES, Sign, compiled, plain_table

if TYPE_CHECKING:
    from assistant.diagnose.log import Log

FEW = 4  # chosen: lines of a text without any program's line that are somebody's notes
LEAST_CHINESE = 4  # chosen: characters; a program's own messages in Chinese are translated before they are searched
# How programs alone begin a line: with a time, a level, an error's name, a place in a file, a bar of progress.
#   2026-11-21 10:20:30,123 INFO …   [81234.1] …   Traceback (most recent call last):   RuntimeError: …
#   /usr/lib/x.py:12: UserWarning: …   100%|████████| 7/7 [00:02<00:00,  3.10it/s]
_PROGRAM = re.compile(
    r"\s*(?:\[?\d{4}-\d\d-\d\d|\[? ?\d{1,9}\.\d|\d\d:\d\d[:.]\d\d|File \"|Traceback|[IWEF]\d{4} "
    r"|\w+ \d+[:/]\d+ |(?:\w+\.)*\w*(?:Error|Exception|Warning)\b(?! [a-z])"
    r"|(?:INFO|WARN(?:ING)?|DEBUG|ERROR|FATAL|CRITICAL)\b|warnings\.warn"
    r"|(?:[A-Za-z]:)?[\\/~.][\w ./\\-]{2,200}:\d)|.{0,80}\b\d{1,3}%\|"
)
# How programs mostly begin one, and people at times: a prompt, a mark, a path, a name and its value, a statement.
#   >>> import torch   + torch==2.15.0   ├── …   C:\Users\…   Is CUDA available: False   Collecting torch
_PRINTED = re.compile(
    r"\s*(?:[\[>$#]|PS |[A-Za-z]:\\|[~./]+/?\w[\w./-]*/|[-=*+~_|│├└─━✓✗→•·]+(?:\s|$)|[-=*+~_]{3}"
    r"|(?:error|warning|fatal)\b|\w[\w ./()-]{0,50}[:=]\s|[\w.-]+==\S"
    r"|import [\w.]+(?: as \w+)?\s*(?:[;#,]|$)|from [\w.]+ import|(?:def|class|return|at) \w"
    r"|(?:Successfully|Collecting|Downloading|Installing|Requirement|Looking|Using|Building|Preparing|Found|Attempting"
    r"|Uninstalling|Resolved|Prepared|Audited|Loading|Loaded|Saving|Epoch|Step|Total|Device|Set|Got|User provided) )"
)
# Words that people use of themselves, of one another and of their trouble, and programs do not.
_PERSON = re.compile(
    r"(?<![\w/\\.\[-])(?:i|i'?m|i'?ve|i'?d|my|mine|me|our|anyone|anybody|somebody|pls|plz|thanks|thx|hi|hello|hey|btw|idk"
    r"|why (?:is|does|do|can|won)|how (?:do|can) i|what (?:did|should|am|can) i|(?:did|am|should) i|no idea|any ideas?"
    r"|got (?:a|an|this|the)|bought|doesn'?t|isn'?t|won'?t|can'?t|didn'?t|it (?:says|said|worked|works"
    r"|was|gets|wants|dies|takes|needs|crashes|stops|fails|hangs)"
    r"|says that"
    r"|complains|yesterday|somehow|weird|seems|apparently)(?![\w/\\-])",
    re.IGNORECASE,
)
_CHINESE = re.compile("[\u4e00-\u9fff]")
APART_IN_A_SENTENCE = 60  # chosen: characters between words that belong together
LONGEST_SENTENCE = 400  # chosen: nobody tells what is wrong in a longer line
APART_IN_A_TEXT = 160  # chosen: characters between words of one thought, some two sentences
LONGEST_TEXT = 4000  # chosen: characters that a person writes of one problem
# Ends of sentences; a full stop ends one where a blank follows, since versions and file names hold stops, too.
_ENDS = re.compile(r"[!?;。！？；\n]|\.(?=\s|$)|(?<=\w),(?=\s)")


def written_by_person(lines: Sequence[str]) -> list[bool]:
    """Return for each line whether a person wrote it; False for an empty one."""
    printed = [bool(_PROGRAM.match(line) or _PRINTED.match(line)) for line in lines]
    is_a_note = sum(1 for line in lines if line.strip()) <= FEW and not any(printed)
    return [
        bool(line.strip() and not _PROGRAM.match(line))
        and (is_a_note or bool(_PERSON.search(line)) or (not mark and len(_CHINESE.findall(line)) >= LEAST_CHINESE))
        for line, mark in zip(lines, printed, strict=True)
    ]


class Prose:
    """What a person wrote in a log: its text in lower case, and what it tells (`told`, see `_told_lines`)."""

    def __init__(self, log: Log) -> None:
        self.told = _told_lines(log)
        lines = [(index, line.lower()) for index, (_number, line) in enumerate(log.lines) if log.written[index]]
        self.text = "\n".join(line for _index, line in lines)
        self._indexes = [index for index, _line in lines]
        self._starts = [match.end() for match in re.finditer(r"^", self.text, re.MULTILINE)]
        # Whether it tells how a problem was solved, and no line of it was printed by a program.
        self.is_solved = "solved" in self.told and all(
            mine or not line.strip() for (_number, line), mine in zip(log.lines, log.written, strict=True)
        )

    @cached_property
    def asks_for_nothing(self) -> bool:
        """Whether a text tells of no trouble: of a wish, of what is solved, or only of what works.

        Who has trouble often says as well what works: another program, another machine, the processor; and who tells
        what was tried asks for more than a plan.
        """
        told = self.told
        wishes = "wish" in told and "tried" not in told
        return "solved" in told or wishes or ("fine" in told and not {"trouble", "wants-nvidia"} & {*told})

    @property
    def symptoms(self) -> list[dict[str, Any]]:
        """The rows of the symptoms that are told, in the order of their table."""
        return [row for row in _table("symptom") if row["key"] in self.told]

    def find(self, sign: Sign) -> tuple[tuple[int, ...], Mapping[str, str]] | None:
        """Return the indexes of the lines that tell a sign of prose.toml, and what it names; None if it is not told.

        What is named stands under the key `sign.named`, with hyphens; empty if the sign names nothing.
        """
        if self.asks_for_nothing or not {*sign.told} <= {*self.told} or {*sign.silent} & {*self.told}:
            return None
        lines, names = [self.told[key] for key in sign.told], NO_NAMES
        if sign.near:
            if len(self.text) > LONGEST_TEXT or any(compiled(pattern).search(self.text) for pattern in sign.without):
                return None
            matches = [list(compiled(pattern).finditer(self.text)) for pattern in sign.near]
            match = _first_near_all(matches, APART_IN_A_TEXT)
            if match is None:
                return None
            lines.append(self._indexes[bisect_right(self._starts, match.start()) - 1])
            names = {sign.named: re.sub(r"[ _]", "-", match[0])} if sign.named else NO_NAMES
        return tuple(dict.fromkeys(lines)), names


def _told_lines(log: Log) -> dict[str, int]:
    """Return the index of the first line that tells each thing of symptoms.toml, by its key, such as "trouble".

    A sentence of a person tells it if it has a word of each list in `near`, near one of the first list's, and none of
    `none`; `printed` are patterns of what programs print in its place.
    """
    rows = _table("told")
    printed = {row["key"]: compiled("|".join(row.get("printed", ["(?!)"]))).search(log.text) for row in rows}
    lines = {key: log.index_at(match.start()) for key, match in printed.items() if match}
    for start, sentence in _sentences(log.text):
        if not log.written[log.index_at(start)]:
            continue
        words = {name: list(pattern.finditer(sentence)) for name, pattern in _word_patterns().items()}
        for row in rows:
            if row["key"] not in lines and any(
                not any(words[name] for name in way.get("none", ()))
                and _first_near_all([words[name] for name in way["near"]], APART_IN_A_SENTENCE)
                for way in row["sign"]
            ):
                lines[row["key"]] = log.index_at(start)
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
    lists = _table("words")
    lists = {**lists, "gpu": [*lists["gpu"], *(pattern.pattern for pattern in patterns("mentions").values())]}
    return {name: compiled("|".join(words)) for name, words in lists.items()}


def _table(name: str) -> Any:  # noqa: ANN401 - rows of several shapes, only looked up
    """Return the words, or the rows of a kind, of the shipped lexicon."""
    return plain_table("symptoms.toml")[name]
