"""Reads a few small files of a wheel that lies on a server, by HTTP ranges: a megabyte of two gigabytes at most.

A wheel is a zip file: its table of contents stands at its end and says where each file lies
(https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT). torch's table alone is larger than a megabyte, so it is
read piece by piece, from its beginning or from its end, and only as far as somebody asks.
"""

from __future__ import annotations

import io
import re
import struct
import time
import zipfile
import zlib
from typing import TYPE_CHECKING, Literal

from assistant.host.index import local_path, reason_of
from assistant.i18n import Text, _

if TYPE_CHECKING:
    import httpx2

BUDGET = 1_000_000  # bytes of one wheel
PIECE = 1 << 16
MEMBER = 1 << 20  # bytes of one file, unpacked: torch's METADATA has 36 kB
TABLE = 1 << 26  # bytes of a table of contents: torch 2.15.0 has 13,000 files in 1.2 MB
_SLACK = 256  # bytes for what may stand between the name of a file and its content

# The end of a zip file: PK\5\6, disks, files here, files, bytes of the table, where it begins, bytes of the comment.
_END = struct.Struct("<4s4H2LH")
# The same for more than 4 GB: PK\6\6, …, files, bytes of the table, where it begins; PK\6\7 says where that stands.
_END64, _LOCATOR = struct.Struct("<4sQ2H2L4Q"), struct.Struct("<4sLQL")
_LENGTHS, _ENTRY, _LOCAL = struct.Struct("<3H"), 46, 30  # lengths of name, extra and comment, from byte 28 of an entry
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")  # Content-Range: bytes 0-499/1234
_PARTIAL, _OK = 206, 200
_BROKEN = (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error, zlib.error, EOFError)


class Unreadable(Exception):
    """A wheel cannot be read by ranges, or is not what a wheel is; `reason` says why."""

    def __init__(self, reason: Text) -> None:
        super().__init__(str(reason))
        self.reason = reason


class RemoteWheel:
    """A wheel on a server, or on disk for a `file:` address.

    `files` are those of its table of contents that were read so far, in its order. Raises `Unreadable` in all that it
    does, at the latest after `seconds`. Nothing of it is written, imported or run.
    """

    def __init__(self, client: httpx2.Client, url: str, *, seconds: float, budget: int = BUDGET) -> None:
        self._client, self._url = client, url
        self._left, self._deadline = budget, time.monotonic() + seconds
        self.size, self.bytes_read = 0, 0
        self._head: dict[str, zipfile.ZipInfo] = {}
        self._tail: dict[str, zipfile.ZipInfo] = {}
        self._whole = b""  # where a server gave a small file as a whole
        self._start, self._end = self._table()

    @property
    def files(self) -> tuple[str, ...]:
        """The names of the files that were met so far."""
        return tuple(self._head | self._tail)

    @property
    def last(self) -> tuple[str, ...]:
        """The names of the files that were met from the end."""
        return tuple(self._tail)

    @property
    def listed(self) -> bool:
        """Whether the table of contents was read to its end."""
        return self._start >= self._end

    def more(self, side: Literal["head", "tail"]) -> bool:
        """Read on in the table of contents, from its beginning or its end; False where there is no more to read."""
        if self.listed or self._left < PIECE:
            return False
        if side == "head":
            piece = self._part(self._start, min(self._start + PIECE, self._end))
            used = _whole_entries(piece)
            self._head |= _entries(piece[:used])
            self._start += used
        else:
            piece = self._part(max(self._start, self._end - PIECE), self._end)
            self._take_tail(piece)
        return True

    def read(self, name: str) -> bytes | None:
        """Return the content of a file that was met, None for any other."""
        entry = self._head.get(name) or self._tail.get(name)
        if entry is None:
            return None
        if entry.flag_bits & 1 or entry.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
            raise Unreadable(_("it is packed in a way that wheels are not"))
        if entry.file_size > MEMBER or entry.compress_size > MEMBER:
            raise Unreadable(_("{file} in it is too large to be true", file=name))
        begin = entry.header_offset
        if begin + _LOCAL + entry.compress_size > self.size:
            raise Unreadable(_("it is damaged"))
        packed = self._part(begin, min(begin + _LOCAL + len(name) + _SLACK + entry.compress_size, self.size))
        if packed[:4] != b"PK\3\4" or len(packed) < _LOCAL:
            raise Unreadable(_("it is damaged"))
        begins = _LOCAL + sum(struct.unpack_from("<2H", packed, 26))
        packed = packed[begins : begins + entry.compress_size]
        if len(packed) < entry.compress_size:
            packed = self._part(begin + begins, begin + begins + entry.compress_size)
        return _unpacked(entry, packed)

    def _table(self) -> tuple[int, int]:
        """Return where the table of contents begins and ends; what the first piece holds of it is taken at once."""
        last = self._part(-PIECE, 0)
        place = last.rfind(b"PK\5\6")
        if place < 0 or len(last) - place < _END.size:
            raise Unreadable(_("it is no wheel"))
        *_disks, count, length, start, _comment = _END.unpack_from(last, place)
        end = self.size - len(last) + place
        locator = place - _LOCATOR.size
        if locator >= 0 and last[locator : locator + 4] == b"PK\6\7":
            end = _LOCATOR.unpack_from(last, locator)[2]
            record = end - (self.size - len(last))
            if not 0 <= record <= locator - _END64.size:
                raise Unreadable(_("it is damaged"))
            *_disks, count, length, start = _END64.unpack_from(last, record)
        if start + length != end or length > TABLE or count * _ENTRY > length:
            raise Unreadable(_("its table of contents cannot be true"))
        self._start, self._end = start, end
        before = self.size - len(last)
        if length:
            self._take_tail(last[max(0, start - before) : end - before])
        return self._start, self._end

    def _take_tail(self, piece: bytes) -> None:
        """Keep the last entries of the table: those from the first place from which they reach exactly to its end."""
        whole = len(piece) == self._end - self._start
        place = 0 if whole else piece.find(b"PK\1\2")
        while place >= 0 and place + _whole_entries(piece[place:]) != len(piece):
            place = -1 if whole else piece.find(b"PK\1\2", place + 1)
        if place < 0 or place == len(piece):
            raise Unreadable(_("its table of contents cannot be true"))
        self._tail = _entries(piece[place:]) | self._tail
        self._end -= len(piece) - place

    def _part(self, begin: int, end: int) -> bytes:
        """Return the bytes from `begin` up to `end`; a negative `begin` counts from the end of the file."""
        length = -begin if begin < 0 else end - begin
        if length > self._left or length < 0:
            raise Unreadable(_("more than {count} kB of it would have to be read", count=BUDGET // 1000))
        if path := local_path(self._url):
            try:
                self._whole = self._whole or path.read_bytes()
            except OSError as error:
                raise Unreadable(error.strerror or str(error)) from error
            self.size = len(self._whole)
        got = self._whole[begin : end or None] if self._whole else self._asked(begin, end)
        self._left -= len(got)
        self.bytes_read += len(got)
        return got

    def _asked(self, begin: int, end: int) -> bytes:
        import httpx2  # noqa: PLC0415 - the client's library, imported with it

        wanted = f"bytes={begin}" if begin < 0 else f"bytes={begin}-{end - 1}"
        headers = {"Range": wanted, "Accept-Encoding": "identity"}
        try:
            with self._client.stream("GET", self._url, headers=headers) as answer:
                return self._answered(answer, begin, end)
        except httpx2.HTTPError as error:
            raise Unreadable(reason_of(error)) from error

    def _answered(self, answer: httpx2.Response, begin: int, end: int) -> bytes:
        """Return the body of an answer, where it is the part that was asked for, or a small file as a whole."""
        if answer.headers.get("Content-Encoding", "identity") != "identity":
            raise Unreadable(_("its server packs what it sends, though it was asked not to"))
        if answer.status_code == _OK:
            self._whole = self._body(answer, self._left)
            self.size = len(self._whole)
            return self._whole[begin : end or None]
        if answer.status_code != _PARTIAL:
            raise Unreadable(f"HTTP {answer.status_code}")
        told = _RANGE.fullmatch(answer.headers.get("Content-Range", "").strip())
        first, last, size = map(int, told.groups()) if told else (0, -1, 0)
        self.size = self.size or size
        begin, end = (max(0, size + begin), size) if begin < 0 else (begin, end)
        if (first, last + 1, size) != (begin, end, self.size):
            raise Unreadable(_("its server sends another part than was asked for"))
        body = self._body(answer, end - begin)
        if len(body) != end - begin:
            raise Unreadable(_("its server sends another part than was asked for"))
        return body

    def _body(self, answer: httpx2.Response, most: int) -> bytes:
        """Read what a server sends, as long as it is not more than was asked for and comes in time."""
        got = bytearray()
        for piece in answer.iter_raw(PIECE):
            got += piece
            if len(got) > most:
                raise Unreadable(_("its server sends more than was asked for: it does not serve parts of files"))
            if time.monotonic() > self._deadline:
                raise Unreadable(_("its server was too slow"))
        return bytes(got)


def _whole_entries(piece: bytes) -> int:
    """Return how many bytes of a piece of a table are whole entries, from its beginning."""
    place = 0
    while piece[place : place + 4] == b"PK\1\2" and place + _ENTRY <= len(piece):
        behind = place + _ENTRY + sum(_LENGTHS.unpack_from(piece, place + 28))
        if behind > len(piece):
            break
        place = behind
    return place


def _entries(piece: bytes) -> dict[str, zipfile.ZipInfo]:
    """Read whole entries of a table of contents, by name."""
    end = _END.pack(b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, len(piece), 0, 0)
    try:
        with zipfile.ZipFile(io.BytesIO(piece + end)) as table:
            return {entry.filename: entry for entry in table.infolist()}
    except _BROKEN as error:
        raise Unreadable(_("its table of contents cannot be true")) from error


def _unpacked(entry: zipfile.ZipInfo, packed: bytes) -> bytes:
    """Unpack a file, never more of it than its entry tells; refuse one that is not what the entry tells."""
    try:
        stored = entry.compress_type == zipfile.ZIP_STORED
        content = packed if stored else zlib.decompressobj(-15).decompress(packed, entry.file_size + 1)
    except zlib.error as error:
        raise Unreadable(_("it is damaged")) from error
    if len(content) != entry.file_size or zlib.crc32(content) != entry.CRC:
        raise Unreadable(_("it is damaged"))
    return content
