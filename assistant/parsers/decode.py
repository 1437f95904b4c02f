"""Bytes of any origin to text, piece by piece: PowerShell's UTF-16, Chinese code pages, mixtures, colours, binary."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

from assistant.i18n import _
from assistant.model.errors import BadInput

PIECE = 4 * 2**20  # bytes decoded at a time (chosen), so that a log of 100 MB is not held twice
SAMPLE = 65536  # bytes by which a binary file is told from a text (chosen)
# How files begin that are no text: https://en.wikipedia.org/wiki/List_of_file_signatures
MAGIC = (b"\x7fELF", b"MZ", b"PK\x03\x04", b"\x89PNG", b"\x1f\x8b", b"SQLite format 3", b"%PDF", b"\xff\xd8\xff")
_ODD_BYTES = bytes(set(range(32)) - {0, 7, 8, 9, 10, 11, 12, 13, 27})
_COLOURS = re.compile(r"\x1b\[[0-9;?]{0,40}[ -/]?[@-~]|\x1b\][^\x07\x1b\n]{0,300}(?:\x07|\x1b\\)|\x1b[@-_]?")
_MOST_ODD = 0.02  # a text has next to no control characters; a compressed or compiled file has about 8 %


def text_pieces(data: bytes) -> Iterator[str]:
    """Yield the text in pieces of whole lines, colours removed; raise `BadInput` for a binary file."""
    encoding, sample = _wide_encoding(data), data[:SAMPLE]
    odd = len(sample) - len(sample.translate(None, _ODD_BYTES))
    if encoding is None and (sample.startswith(MAGIC) or odd > _MOST_ODD * len(sample)):
        raise BadInput(_("This is a binary file, not a log."), hint=_("Give the text that the program printed."))
    for piece in _wide(data, encoding) if encoding else _narrow(data):
        yield tidied(piece)


def tidied(text: str) -> str:
    """Return a text without colours and with one kind of line ends."""
    return without_colours(text).replace("\r\n", "\n").replace("\r", "\n").replace("\0", "").replace("\ufeff", "")


def without_colours(text: str) -> str:
    """Cut what a terminal would take for colours, titles and moves."""
    return _COLOURS.sub("", text) if "\x1b" in text else text


def _wide_encoding(data: bytes) -> str | None:
    """Recognise UTF-16 by its mark, or by every other byte of the beginning being zero."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16-le" if data.startswith(codecs.BOM_UTF16_LE) else "utf-16-be"
    head = data[:2000]
    half = len(head) // 2 or 1
    if head[1::2].count(0) > 0.6 * half and head[::2].count(0) < 0.1 * half:
        return "utf-16-le"
    if head[::2].count(0) > 0.6 * half and head[1::2].count(0) < 0.1 * half:
        return "utf-16-be"
    return None


def _wide(data: bytes, encoding: str) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    rest = ""
    for start in range(0, len(data), PIECE):
        text = rest + decoder.decode(data[start : start + PIECE])
        cut = text.rfind("\n") + 1
        rest = text[cut:] if cut else text
        if cut:
            yield text[:cut]
    yield rest


def _narrow(data: bytes) -> Iterator[str]:
    start = 0
    while start < len(data):
        end = data.find(b"\n", start + PIECE, start + 2 * PIECE) + 1 or min(start + 2 * PIECE, len(data))
        piece = data[start:end]
        try:
            yield piece.decode()
        except UnicodeDecodeError:
            yield "\n".join(map(_line, piece.split(b"\n")))
        start = end


def _line(line: bytes) -> str:
    """Decode one line by itself, for a log may mix what several programs wrote."""
    # Measured 2026: charset-normalizer 3.5 read 20 of 44 Chinese system messages in GB18030 right, this reads all; of
    # 37 Western ones it read 22 and this 12, but there the words that rules look for are ASCII. It gives up mixed logs.
    for encoding in ("utf-8", "gb18030"):
        try:
            return line.decode(encoding)
        except UnicodeDecodeError:
            continue
    return line.decode("cp1252", "replace")
