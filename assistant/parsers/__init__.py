"""Readers of what other programs print: text in, value or None out, in time proportional to the text.

Above each reader in the modules stands a real sample of what it reads, shortened. Here is what they share: bytes
decoded to text, the records of a GPU and of a report, and a few fields.
"""

from __future__ import annotations

import codecs
import io
import locale
import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain

from assistant.i18n import _
from assistant.model.errors import BadInput
from assistant.model.machine import Gpu
from assistant.model.record import Record
from assistant.model.visible import remove_colours


class Device(Record, frozen=True):
    """One GPU as a tool reports it, with its address on the bus (`0000:03:00.0`) and the tool's own number."""

    gpu: Gpu
    bus: str | None = None
    index: int | None = None


class Reading(Record, frozen=True):
    """What a tool's report says of its machine: facts named as in `Machine`, and GPUs.

    `absence` is what it prints if the tool is missing or sees no GPU; else "".
    """

    facts: dict[str, object] = {}
    devices: tuple[Device, ...] = ()
    absence: str = ""


def field(block: str, name: str) -> str:
    """Return what follows a name (a pattern) on its line: `Name: X`, `Name = X` or `Name   X`; "" for nothing."""
    found = re.search(rf"^[ \t]{{0,40}}{name}[ \t]{{0,80}}[:=]?[ \t]{{1,80}}(\S[^\n]{{0,100}})$", block, re.MULTILINE)
    return found[1].strip() if found else ""


def gib(mib: str | float | None) -> float | None:
    """Return MiB as GiB, rounded to a tenth; None for None and zero, which say nothing."""
    return round(float(mib) / 1024, 1) if mib and float(mib) else None


def bus_address(text: str) -> str | None:
    """Return a PCI address as Linux spells it, `0000:01:00.0`; None for any other text.

    NVIDIA's tools write the domain with eight digits.
    """
    found = re.fullmatch(r"([0-9a-f]{4,8}):([0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])", text.lower())
    return f"{found[1][-4:]}:{found[2]}" if found else None


PIECE = 4 * 2**20  # bytes decoded at a time (chosen), so that a log of 100 MB is not held twice
SAMPLE = 65536  # bytes by which a binary file is told from a text (chosen)
# How files begin that are no text: https://en.wikipedia.org/wiki/List_of_file_signatures
MAGIC = (b"\x7fELF", b"MZ", b"PK\x03\x04", b"\x89PNG", b"\x1f\x8b", b"SQLite format 3", b"%PDF", b"\xff\xd8\xff")
_ODD_BYTES = bytes(set(range(32)) - {0, 7, 8, 9, 10, 11, 12, 13, 27})
# Upper halves of UTF-16's units in texts: Latin, Greek, Cyrillic, punctuation, Chinese, Japanese, Korean, emoji. Those
# of line ends (0x0A, 0x0D) are not among them, which tells ASCII with UTF-16 appended to it (`>>`) from UTF-16.
_IN_USE = bytes({0, 1, 2, 3, 4, *range(0x20, 0x28), *range(0x30, 0xA0), *range(0xAC, 0xE0), 0xF9, 0xFE, 0xFF})
# A code page in which letters have two bytes, so that what is not written in it seldom reads as if it were.
_TELLING = {"cp932", "shift_jis", "euc_jp", "cp949", "euc_kr", "johab", "cp950", "big5"}
LONGEST_LINE = 100 * 10**6  # chosen: bytes of a line, which is held in memory
_MOST_ODD = 0.02  # a text has next to no control characters; a compressed or compiled file has about 8 %


def text_pieces(data: bytes) -> Iterator[str]:
    """Yield a text in pieces of whole lines, without colours; raise `BadInput` as `text_lines` does."""
    return _pieces(io.BytesIO(data))


def text_lines(file: io.BufferedReader) -> Iterator[str]:
    """Yield the lines of a text of any length that are not blank, as they come; only one piece of it is held.

    Lines end at line feeds alone: what else breaks lines may stand in the texts of JSON. Raises `BadInput` for a binary
    file and for a line that is too long.
    """
    for piece in _pieces(file):
        yield from filter(str.strip, piece.split("\n"))


def _pieces(file: io.BufferedReader | io.BytesIO) -> Iterator[str]:
    """Yield a file's text, decoded and normalized, in pieces of whole lines; raise `BadInput` as `text_lines` does."""
    head = file.read1(PIECE)
    encoding, sample = _wide_encoding(head), head[:SAMPLE]
    odd = len(sample) - len(sample.translate(None, _ODD_BYTES))
    if encoding is None and (sample.startswith(MAGIC) or odd > _MOST_ODD * len(sample)):
        raise BadInput(_("This is a binary file, not a log."), hint=_("Give the text that the program printed."))
    pieces: Iterable[bytes] = chain([head], iter(lambda: file.read1(PIECE), b""))
    if encoding:
        decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        pieces = (decoder.decode(piece).encode() for piece in pieces)
    for lines in _whole_lines(pieces):
        try:
            text = lines.decode()
        except UnicodeDecodeError:  # perhaps of a few lines alone
            text = "\n".join(map(_line, lines.split(b"\n")))
        yield normalize_text(text)


def _whole_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the same bytes cut at line ends: each piece but the last ends with a whole line.

    Raises `BadInput` for a line of more than `LONGEST_LINE` bytes.
    """
    begun: list[bytes] = []
    for piece in pieces:
        cut = piece.rfind(b"\n") + 1
        if cut:
            yield b"".join((*begun, piece[:cut]))
            begun = []
        begun.append(piece[cut:])
        if sum(map(len, begun)) > LONGEST_LINE:
            text = _("A line is longer than {limit} MB.", limit=LONGEST_LINE // 10**6)
            raise BadInput(text, hint=_("Pass only the part that matters."))
    yield b"".join(begun)


def normalize_text(text: str) -> str:
    """Return a text without colours, zeros and byte order marks, with line feeds alone at line ends."""
    return remove_colours(text).replace("\r\n", "\n").replace("\r", "\n").replace("\0", "").replace("\ufeff", "")


def _wide_encoding(data: bytes) -> str | None:
    """Return "utf-16-le" or "utf-16-be" by the mark, or by zeros in every other byte of the beginning; else None."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16-le" if data.startswith(codecs.BOM_UTF16_LE) else "utf-16-be"
    head = data[:2000]
    if _is_utf16_half(head[1::2], head[::2]):
        return "utf-16-le"
    return "utf-16-be" if _is_utf16_half(head[::2], head[1::2]) else None


def _is_utf16_half(upper: bytes, lower: bytes) -> bool:
    """Return whether these are the upper and the lower halves of UTF-16's units: ASCII's upper halves are zeros."""
    half, zeros = len(lower) or 1, upper.count(0)
    written = zeros > 0.6 * half or (zeros > 0.1 * half and not upper.translate(None, _IN_USE))
    return written and lower.count(0) < 0.1 * half


def _line(line: bytes) -> str:
    """Return a line decoded by the first encoding that fits it, else as cp1252: a log may mix programs' output."""
    # Measured 2026: charset-normalizer 3.5 read 20 of 44 Chinese system messages in GB18030 right, this reads all; of
    # 37 Western ones it read 22 and this 12, but there the words that rules look for are ASCII. It gives up mixed logs.
    for encoding in _encodings(locale.getencoding()):
        try:
            return line.decode(encoding)
        except UnicodeDecodeError:
            continue
    return line.decode("cp1252", "replace")


@cache
def _encodings(own: str) -> tuple[str, ...]:
    """Return the encodings to try in order, none of which can read everything; `own` is the locale's.

    As a code page with one byte for each letter reads nearly any bytes, Chinese with its common characters alone
    (gb2312) goes before it: single accents among ASCII do not read as such. Raises `LookupError` for an unknown `own`.
    """
    name = codecs.lookup(own).name
    if name in {"utf-8", "ascii", "gbk", "gb2312", "gb18030"}:
        return ("utf-8", "gb18030")
    return ("utf-8", name, "gb18030") if name in _TELLING else ("utf-8", "gb2312", name, "gb18030")


_ENTITIES = {"quot": '"', "apos": "'", "amp": "&", "lt": "<", "gt": ">", "nbsp": " ", "#39": "'", "#x27": "'"}
_ENTITY = f"&({'|'.join(map(re.escape, _ENTITIES))});"


def decode_entities(text: str) -> str:
    """Return a text with `_ENTITIES` decoded; `html.unescape` would also change addresses (`?a=1&copy=2`)."""
    return re.sub(_ENTITY, lambda found: _ENTITIES[found[1]], text) if "&" in text else text
