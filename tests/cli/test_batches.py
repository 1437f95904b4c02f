"""Files with a line for each machine are read as a stream, whatever has written them."""

from __future__ import annotations

import io

import pytest
from tables import each

from assistant import parsers
from assistant.model.errors import BadInput
from assistant.parsers import text_lines

TEXT = '{"a": "显卡"}\n\n{"b": "x\u2028y"}\n  \n{"c": 1}'
LINES = ['{"a": "显卡"}', '{"b": "x\u2028y"}', '{"c": 1}']


class Trickle(io.RawIOBase):
    """A file whose bytes come a few at a time, as from a slow pipe."""

    def __init__(self, data: bytes, step: int) -> None:
        self._pieces = (data[start : start + step] for start in range(0, len(data), step))

    def readable(self) -> bool:
        """As a pipe can."""
        return True

    def readinto(self, buffer: bytearray) -> int:
        """Give the next few bytes."""
        piece = next(self._pieces, b"")
        buffer[: len(piece)] = piece
        return len(piece)


@each("encoding", ["utf-8", "utf-8-sig", "utf-16", "gbk"])
@each("step", [5, 7, 1000])
def test_lines_come_whole(encoding: str, step: int) -> None:
    """However the bytes are cut, and whichever program wrote them; only line feeds end a line."""
    text = TEXT if encoding != "gbk" else TEXT.replace("\u2028", "——")
    data = (text if step == 1000 else text.replace("显", "显" * 40)).encode(encoding)
    found = list(text_lines(io.BufferedReader(Trickle(data, max(step, 4)))))
    expected = [line.replace("\u2028", "——") if encoding == "gbk" else line for line in LINES]
    assert found == [line if step == 1000 else line.replace("显", "显" * 40) for line in expected]


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of one endless line would fill the memory; a binary one is no text."""
    monkeypatch.setattr(parsers, "LONGEST_LINE", 10_000)
    endless = Trickle(b"x" * 100_000, 1000)
    with pytest.raises(BadInput, match="longer"):
        list(text_lines(io.BufferedReader(endless)))
    with pytest.raises(BadInput, match="binary"):
        list(text_lines(io.BufferedReader(Trickle(b"\x7fELF" + bytes(100), 1000))))
