"""A log as rules search it: its lines normalised, a long one cut down to those that matter, and how its run ended."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property, lru_cache
from importlib.util import find_spec
from itertools import accumulate
from typing import Any

from assistant.diagnose.rules import compiled, literals, load_rules, plain_table
from assistant.diagnose.words import Prose, written_by_person
from assistant.model.machine import Machine
from assistant.parsers import decode_entities, normalize_text, text_pieces
from assistant.parsers.mentioned import read_mentioned

# Chosen: a pasted log has a few kilobytes, and one of some days of training has tens of megabytes.
MESSAGES = "localized_messages.toml"  # other wordings and languages, by the message that rules know
SHORT = 10**6  # characters up to which a log is kept whole
LONGEST_WORD = 500  # characters without a blank of which the ends are kept: an image as text, a dump of memory
LINE_END = 2000  # characters kept of each end of a line
AROUND = 3  # lines kept before and after one that matters
ENDS = 200  # lines kept from the beginning and the end
LONG = 400  # characters of a line above which its neighbours are not kept with it


class Log:
    """Lines with their numbers in the file; `text` is what rules search, with broken lines joined at its end.

    It is in lower case, and a system's messages are in English.
    """

    def __init__(self, lines: Iterable[tuple[int, str]]) -> None:
        self.lines = tuple(lines)
        texts = normalized_text("\n".join(line for _number, line in self.lines)).split("\n")
        joined = list(rejoined_lines(texts))
        self._origins = [*range(len(texts)), *(index for index, _text in joined)]
        texts.extend(text for _index, text in joined)
        self.text = "\n".join(texts)
        self._starts = list(accumulate((len(text) + 1 for text in texts[:-1]), initial=0))
        self._first_lines: dict[str, int | None] = {}

    @cached_property
    def facts(self) -> Machine:
        """The facts of the machine that the log mentions; what it does not mention is unknown."""
        return read_mentioned(self.text)

    @cached_property
    def written(self) -> list[bool]:
        """Whether a person wrote it (and no program), for each of `lines`."""
        return written_by_person([line for _number, line in self.lines])

    @cached_property
    def prose(self) -> Prose:
        """What a person wrote, and what it tells."""
        return Prose(self)

    def first_line(self, pattern: str) -> int | None:
        """Return the index in `lines` of the first line in which a rule's pattern matches; None if none does.

        Each pattern is searched once, and only where one of its literals is in the text.
        """
        if pattern not in self._first_lines:
            is_likely = any(literal in self.text for literal in literals(pattern))
            match = compiled(pattern).search(self.text) if is_likely else None
            self._first_lines[pattern] = self.index_at(match.start()) if match else None
        return self._first_lines[pattern]

    def holds(self, pattern: str) -> bool:
        """Return whether a rule's pattern matches in the log."""
        return self.first_line(pattern) is not None

    def index_at(self, position: int) -> int:
        """Return the index in `lines` of the line at a position in `text`."""
        return int(self._origins[bisect_right(self._starts, position) - 1])

    def start_of(self, index: int) -> int:
        """Return the position in `text` at which the line at an index begins."""
        return self._starts[index]

    def around(self, index: int, count: int) -> tuple[tuple[int, str], ...]:
        """Return the line at an index with up to `count` lines on each side, each with its number in the file."""
        return self.lines[max(0, index - count) : index + count + 1]

    def near(self, index: int | None, pattern: re.Pattern[str]) -> Iterator[str]:
        """Yield what a pattern's group matches in lines with "site-packages": from an index upwards, then below it.

        Without an index all lines are read from the last one upwards.
        """
        start = len(self.lines) if index is None else index + 1
        for _number, text in (*reversed(self.lines[:start]), *self.lines[start:]):
            if "site-packages" in text and (match := pattern.search(text)):
                yield match[1]


def is_said(row: Mapping[str, Any], log: Log) -> bool:
    """Return whether each pattern of a row's `all` matches in a log, and none of its `none`."""
    found = {name: [bool(compiled(each).search(log.text)) for each in row.get(name, ())] for name in ("all", "none")}
    return all(found["all"]) and not any(found["none"])


_WORD = re.compile(rf"[!-~]{{{LONGEST_WORD + 1},}}")


def _shortened(line: str) -> str:
    """Return a line, of too long words and of a line that is too long only the ends."""
    if len(line) > LONGEST_WORD:
        line = _WORD.sub(lambda word: f"{word[0][: LONGEST_WORD // 2]} {word[0][-LONGEST_WORD // 2 :]}", line)
    return line if len(line) <= 2 * LINE_END else f"{line[:LINE_END]} {line[-LINE_END:]}"


def read_log(data: bytes | str) -> Log:
    """Return what a program printed as a log; raise `BadInput` for a binary file.

    Of a long one the first and last lines are kept, and those around a rule's literals, each with its number in the
    file; lines that differ only in digits near the same literal are taken once.
    """
    pieces = iter([normalize_text(data)]) if isinstance(data, str) else text_pieces(data)
    if len(data) <= SHORT:
        return Log(enumerate(map(_shortened, "".join(pieces).split("\n")), 1))
    lines_kept: dict[int, str] = {}
    last_lines: list[tuple[int, str]] = []
    installers, libraries = plain_table("installers.toml"), plain_table("libraries.toml")
    literal = [mark for message in installers["message"] for mark in literals(message["pattern"])]
    prefilter = Prefilter([*translations(), *load_rules().marks, *installers["marks"], *literal, *libraries["marks"]])
    number = 1
    for piece in pieces:
        if piece.isspace():
            number += piece.count("\n")
            continue
        lines = [*map(_shortened, piece.split("\n"))]
        indexes = set(range(min(ENDS, len(lines)))) if number == 1 else set()
        for index in prefilter.lines("\n".join(lines).lower()):
            margin = AROUND if len(lines[index]) <= LONG else 0
            indexes.update(range(max(0, index - margin), min(len(lines), index + margin + 1)))
        lines_kept.update((number + i, lines[i]) for i in indexes)
        tail_start = max(0, len(lines) - ENDS)
        last_lines = [*last_lines, *enumerate(lines[tail_start:], number + tail_start)][-ENDS:]
        number += len(lines) - 1
    return Log(sorted({**lines_kept, **dict(last_lines)}.items()))


NARROWEST, WIDEST = 30, 160  # characters of a line that a terminal or an editor may have broken
NEIGHBOURS = 3  # lines around one among which the widest tells where lines were broken
LONGEST_JOINED = 2000
TERMINALS = frozenset({80, 100, 120, 132})  # usual widths: one line that ends there may have been cut
_INSIDE = re.compile(r"[a-z0-9._-]")  # what a name may go on with
# Typographic signs and those of Chinese input methods, which forums and chats put in place of ASCII.
_MARKS = str.maketrans(
    {
        **dict.fromkeys("\u00a0\u2007\u202f\u3000", " "),
        **dict.fromkeys("\u200b\u200c\u200d\u2060", ""),
        **dict.fromkeys("‘’‛′", "'"),
        **dict.fromkeys("“”„″«»", '"'),
        **dict(zip("：，（）；", ":,();", strict=True)),
    }
)
# What stands around a line and is not the program's: rich's boxes, a quoting mail's ">", a container's name, a time.
#   │   RuntimeError: HIP out of memory    │
#   > RuntimeError: …
#   comfyui-1  | RuntimeError: …
#   2026-11-21T10:20:30.123Z RuntimeError: …
_FRAME = re.compile(
    r"^(?:[ \t│┃|]+|[─━╭╰╮╯┌└]{3,}|>(?!>)|[\w.-]{1,40}-\d{1,3} {1,20}\|"
    r"|\d{4}-\d\d-\d\d[t ]\d\d:\d\d:\d\d[.,\d]{0,10}z?(?:[ \t]|$))+|(?<![ \t│┃|])[ \t│┃|]+$",
    re.MULTILINE,
)
# A line that begins so is not the rest of the one before it.
_BEGINS = re.compile(
    r"(?:file \"|traceback|error:|warning:|info\b|debug\b|\[|\(|>>>|\$ |\d{2}:\d{2}|[-+*#=~^]{2}|[-+] )"
)


def normalized_text(text: str) -> str:
    """Return a text as rules search it: in lower case and English, with plain signs, without frames, as many lines."""
    lower = text.lower()
    lower = lower if lower.isascii() else lower.translate(_MARKS)
    lower = _FRAME.sub("", decode_entities(lower))
    for translated, english in translations().items():
        lower = lower.replace(translated, english) if translated in lower else lower
    for usual, forms in plain_table(MESSAGES)["manners"].items():
        for form in forms:
            lower = compiled(form).sub(usual, lower)
    return lower


def rejoined_lines(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield each group of lines that a terminal or an editor may have broken, joined, with the index of its first line.

    If a terminal may have cut a word, the group is yielded twice: joined with blanks, and without.
    """
    index = 0
    while index < len(lines):
        end = index
        while end + 1 < len(lines) and _continues(lines, end):
            end += 1
        if end > index:
            parts = [line.strip() for line in lines[index : end + 1]]
            yield index, " ".join(parts)[:LONGEST_JOINED]
            lengths = [len(line) for line in lines[index:end]]
            if len({*lengths}) == 1 and (len(lengths) > 1 or lengths[0] in TERMINALS):
                yield index, "".join(lines[index : end + 1])[:LONGEST_JOINED]
        index = end + 1


def may_be_cut(line: str, following: str, length: int) -> bool:
    """Return whether a terminal may have cut a word in two, at the end of `line` and the beginning of `following`.

    `length` is the line's in the log, with frame and indentation that `normalized_text` removes from both.
    """
    in_a_word = bool(_INSIDE.match(line[-1:]) and _INSIDE.match(following))
    is_a_whole_line = line.endswith("incompatible.")  # how pip ends a line for each package
    return in_a_word and NARROWEST <= length <= WIDEST and not is_a_whole_line and not _BEGINS.match(following)


def _continues(lines: list[str], index: int) -> bool:
    """Return whether a terminal or an editor may have broken one line in two, at an index and the one after it.

    It may have if the first word of the second had no room at the end of the first, by the widest line nearby; not if
    the second is blank or begins something new, or the first is too narrow or too wide. There has to be a second line.
    """
    line, following = lines[index], lines[index + 1].strip()
    if not NARROWEST <= len(line) <= WIDEST or not following or _BEGINS.match(following):
        return False
    lengths = [len(neighbour) for neighbour in lines[max(0, index - NEIGHBOURS) : index + NEIGHBOURS + 1]]
    widest = max(length for length in lengths if length <= WIDEST)
    return len(line) + 1 + len(following.split(maxsplit=1)[0]) > widest


@cache
def translations() -> dict[str, str]:
    """Return the English for each message of a system in another language, both in lower case."""
    return {message: english for english, foreign in plain_table(MESSAGES)["translated"].items() for message in foreign}


# All chosen; tests/benchmarks/diagnose_speed.py shows what they cost on logs that repeat a line for megabytes.
MOST_LINES = 2000  # with the same literal, after which it is no longer looked for: it stands in every other line
AROUND_LITERAL = 150  # bytes before and after a literal that make the shape of its line
BRIEF = 4  # letters of a literal that stands in random letters by chance, unless it has to begin a word
ENDING = 3  # letters that a word may have more than a brief literal: fail, failed, failure
DIGITS = b"0123456789"
LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyz")


class Prefilter:
    """Finds the lines of a huge log that hold a literal of some rule, in one pass (Aho-Corasick) over its pieces.

    It counts across pieces how many lines of each literal it has found, and looks no longer for one that it has often.
    """

    def __init__(self, literals: Iterable[str]) -> None:
        self._left = {literal.encode(): MOST_LINES for literal in sorted(set(literals))}
        self._shapes: set[bytes] = set()

    def lines(self, text: str) -> set[int]:
        """Return the indexes of the lines that hold a literal in a shape not seen before; `text` is in lower case.

        A line's shape is the text near the literal without its digits, which lines of a progress bar differ in.
        """
        data = text.encode("utf-8", "replace")
        literals = [text for text, left in self._left.items() if left > 0]
        ends = [0] * len(literals)  # of the line in which each literal was last found
        starts = set()
        for number, at in _literal_positions(literals, data):
            literal = literals[number]
            if at < ends[number] or (len(literal) <= BRIEF and not _begins_a_word(literal, at, data)):
                continue
            end = data.find(b"\n", at)
            end = len(data) if end < 0 else end
            start = max(at - AROUND_LITERAL, data.rfind(b"\n", max(0, at - AROUND_LITERAL), at) + 1)
            after = data[at + len(literal) : min(end, at + AROUND_LITERAL)]
            # The literal keeps its digits: 0x80070057 and 0x80004005 are two errors.
            shape = b"".join((data[start:at].translate(None, DIGITS), literal, after.translate(None, DIGITS)))
            if shape not in self._shapes:
                self._shapes.add(shape)
                starts.add(at)
            self._left[literal] -= 1
            ends[number] = end if self._left[literal] > 0 else len(data)
        indexes, counted_to, index = set(), 0, 0
        for at in sorted(starts):
            index, counted_to = index + data.count(b"\n", counted_to, at), at
            indexes.add(index)
        return indexes


def _begins_a_word(literal: bytes, at: int, data: bytes) -> bool:
    """Return whether a literal begins a word, or follows no letter, and ends it but for a few letters."""
    if literal[0] in LETTERS and at and data[at - 1] in LETTERS:
        return False
    rest = data[at + len(literal) : at + len(literal) + ENDING + 1]
    return literal[-1] not in LETTERS or len(rest) <= ENDING or not LETTERS.issuperset(rest)


def _literal_positions(literals: list[bytes], data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the index of a literal and its position in the data, in the order of the lines."""
    if find_spec("ahocorasick_rs"):  # the core goes without, and it has no wheel for Windows on Arm or musl
        from ahocorasick_rs import BytesAhoCorasick  # noqa: PLC0415 - only a long log needs it

        # In the order of their ends; as no literal spans lines, the lines come in order too.
        occurrences = BytesAhoCorasick(literals).find_matches_as_indexes(data, overlapping=True)
        yield from ((number, at) for number, at, _end in occurrences)
        return
    hits = []
    for number, literal in enumerate(literals):
        at = data.find(literal)
        for _line in range(MOST_LINES):
            if at < 0:
                break
            hits.append((at, number))
            end = data.find(b"\n", at)
            at = data.find(literal, end) if end >= 0 else -1
    yield from ((number, at) for at, number in sorted(hits))


LAST = 12  # chosen: lines at the end that tell how a run ended
# Epoch 3/3 …    100%|████| 30/30 [00:02<00:00]    Prompt executed in 12.3 seconds
# Training complete    saved to out.png    wrote lecture04.srt    12.4 tokens/s    to see the gui go to: http://127.0.0.1:8188
_ENDED_WELL = re.compile(
    r"epoch \[?(\d{1,5}) ?/ ?\1\b|\b(\d{1,7})/\2 \[|prompt executed in \d"
    r"|(?:training|inference|generation|processing|conversion|export) (?:is )?(?:complete|done|finished|succeeded)"
    r"|\bsaved (?:to|as|in)\b|\bwritten(?: to)?: \S|^wrote \S{1,200}\.\w{2,5}$|\d tokens/s"
    r"|to see the gui go to|running on local url|\b\d{1,5} passed\b|all done"
)
_FAILED = re.compile(
    r"traceback \(most recent|\b\w{0,40}(?:error|exception)\b ?:|\bfatal\b|\bcore dumped\b|\bkilled\b|\baborted?\b"
    r"|\bcould not (?:locate|load|open|find)\b|segmentation fault|\bfailed\b|exit (?:code|status):? ?[1-9]"
    r"|\bexited with\b|^error \w+ing\b|\berror #\d|\bnot compiled with\b"
)
# RuntimeError: …     error: subprocess-exited-with-error
ERROR = re.compile(r"\w(?:error|exception)\b ?:|^error:", re.MULTILINE)
# Failed to create CUDAExecutionProvider. …     Error running sage attention: …, using pytorch attention instead.
# !!! Exception during processing !!! …     (of ComfyUI, which says "Prompt executed" even then)
_WITHOUT_IT = re.compile(
    r"failed to create (?:cuda|tensorrt|dml|rocm|openvino|qnn|coreml|migraphx)executionprovider"
    r"|failed to load library \S{0,40}onnxruntime_providers_"
    r"|error running sage attention|exception during processing"
)
# Traceback (most recent call last):
#   File "/content/Real-ESRGAN/inference_realesrgan_video.py", line 10, in <module>
_UNCAUGHT = re.compile(
    r"traceback \(most recent call last\):\nfile \"[^\n]{0,200}, in <module>\n(?:(?!traceback )[^\n]{0,400}\n){0,60}?"
    r"[\w.]{0,60}(?:error|exception)(?:: [^\n]*)?(?:\n|$)"
)
_COMFY_FAILED = re.compile(
    r"exception during processing|\w(?:error|exception): [^\n]{1,300}\n{1,3}[^\n]{0,40}prompt executed"
)
# me@pc:~/my demo$ ls     [root@node1 ~]# ls     ~/demo$ ls     (.venv) PS D:\my demo> dir     (base) demo$ ls
# >>> print(1)     In [3]: print(1)     ❯ ls
_PROMPT = re.compile(
    r"^(?:\([\w.-]{1,30}\) ?\S{0,60}[$>]|(?:\([\w.-]{1,30}\) ?)?(?:\[?[\w.-]{1,40}@[\w.-]{1,60}[^\n$#%]{0,80}[$#%]"
    r"|[~/]\S{0,60}[$#%]|(?:ps )?[a-z]:\\[^\n>]{0,80}>)|>>>|in \[\d{1,4}\]:|[$>%❯➜➤»])",
    re.MULTILINE,
)


@lru_cache(maxsize=1)  # several ask for one text
def died_at(text: str) -> int:
    """Return the position after the last uncaught Python error; -1 if there is none or a prompt follows it.

    What is printed then is another program's, such as a script's that goes on regardless.
    """
    failures = [match.end() for match in _UNCAUGHT.finditer(text)]
    return failures[-1] if failures and not _PROMPT.search(text, failures[-1]) else -1


def ended_well(log: Log) -> bool:
    """Return whether a log is that of a run that ended well, so that no cause is to be looked for in it.

    One of its last lines tells success, such as "Epoch 3/3" or "saved to out.png", and none after it a failure.
    That an installation succeeded does not count: what it put in place may be the trouble. Nor does success where a
    process died, a node of ComfyUI failed, or the run says that it went on without something.
    """
    lines = [line.strip() for line in log.text.split("\n")[: len(log.lines)] if line.strip()][-LAST:]
    # "Prompt executed" says ComfyUI after a failure, too.
    if _COMFY_FAILED.search(log.text) or _WITHOUT_IT.search(log.text) or died_at(log.text) >= 0:
        return False
    success = next((number for number, line in reversed([*enumerate(lines)]) if _ENDED_WELL.search(line)), None)
    return success is not None and not any(_FAILED.search(line) for line in lines[success:])
