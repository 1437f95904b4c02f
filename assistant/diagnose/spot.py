"""Finds the few lines of a huge text that hold one of many short texts, without looking for each in all of it."""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["Spotter"]

SHORTEST, BEGINNING, WINDOW = 3, 4, 8  # bytes of a text that all have, that are looked at everywhere, and then
BITS = 20  # of the hash of a beginning
BLOCK = 1 << 18  # places looked at in one go: what is computed from them stays in a processor's cache
MOST_LINES = 200  # with the same text that are looked at in one piece
ENOUGH = 60  # lines of different shapes after which a text is no longer looked for
NEAR = 150  # bytes before and after a text that make the shape of its line
Array = Any  # NumPy is loaded for a long log only


class Spotter:
    """Knows the texts to look for, each of three bytes or more."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._room = {text.encode(): ENOUGH for text in sorted(set(texts))}
        self._shapes: set[bytes] = set()

    def lines(self, low: str) -> set[int]:
        """Give the indexes of lines that hold a text and whose shape, digits aside, was not seen before."""
        import numpy as np  # noqa: PLC0415 - see Array

        data = f"{low}\n".encode("utf-8", "replace")
        ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n")).tolist()
        lines: set[int] = set()
        for text, places in self._present(data):
            lines.update(bisect(ends, at) for at in self._fresh(data, text, places))
        self._room = {text: room for text, room in self._room.items() if room > 0}
        return lines

    def _present(self, data: bytes) -> Iterator[tuple[bytes, list[int]]]:
        """Give the texts that occur, each with the places where at least its first bytes stand."""
        texts = defaultdict(list)
        for text in self._room:
            texts[text[:SHORTEST]].append(text)
        places, windows = _candidates(data, self._room)
        seen = {
            text
            for window in _different(windows)
            for text in texts.get(window[:SHORTEST], ())
            if window.startswith(text[:WINDOW])
        }
        for text in self._room:
            if text in seen and (len(text) <= WINDOW or text in data):
                first = int.from_bytes(text[:WINDOW], "little")
                mask = (1 << 8 * min(len(text), WINDOW)) - 1
                yield text, places[(windows & mask) == first].tolist()

    def _fresh(self, data: bytes, text: bytes, places: list[int]) -> Iterator[int]:
        """Give the places, one in each line at most, that hold the text in a line of a new shape."""
        end, looked_at = -1, 0
        for at in places:
            if at < end or not data.startswith(text, at):
                continue
            end = data.find(b"\n", at)
            start = max(at - NEAR, data.rfind(b"\n", max(0, at - NEAR), at) + 1)
            shape = data[start : min(end, at + NEAR)].translate(None, b"0123456789")
            if shape not in self._shapes:
                self._shapes.add(shape)
                self._room[text] -= 1
                yield at
            looked_at += 1
            if looked_at == MOST_LINES or self._room[text] <= 0:
                return


def _candidates(data: bytes, texts: Iterable[bytes]) -> tuple[Array, Array]:
    """Give the places where the hash of a text's beginning stands, and the bytes from each on as a number."""
    import numpy as np  # noqa: PLC0415 - see Array

    def hashed(starts: Array) -> Array:
        return starts * np.uint32(2654435761) >> np.uint32(32 - BITS)

    size, data = len(data), data + bytes(WINDOW)
    starts, windows = (np.ndarray(size, kind, data, strides=(1,)) for kind in ("<u4", "<u8"))  # one from each byte on
    wanted = np.zeros(1 << BITS, bool)
    wanted[hashed(np.frombuffer(b"".join(_beginnings(texts)), "<u4"))] = True
    blocks = [slice(at, at + BLOCK) for at in range(0, size, BLOCK)]
    found = [block.start + np.flatnonzero(wanted[hashed(starts[block])]) for block in blocks]
    places = np.concatenate([np.empty(0, int), *found])
    return places, windows[places]


def _beginnings(texts: Iterable[bytes]) -> Iterator[bytes]:
    """Give the first bytes of each text; of one that is shorter, whatever follows it."""
    for text in texts:
        if len(text) < BEGINNING:
            yield from (text + bytes([after]) for after in range(256))
        else:
            yield text[:BEGINNING]


def _different(windows: Array) -> Iterator[bytes]:
    import numpy as np  # noqa: PLC0415 - see Array

    packed = np.unique(windows).tobytes()
    return (packed[at : at + WINDOW] for at in range(0, len(packed), WINDOW))
