"""How fast a device worked, and the most that it can reach."""

from __future__ import annotations

from collections.abc import Mapping

from assistant.model.record import Record

NOISY = 0.2  # the spread from which a median is not trusted; chosen
BANDWIDTH = "bandwidth"  # the key of the memory's limit; the other limits are named after types


class Limit(Record, frozen=True):
    """The most that a device can reach: GB/s of its memory or GFLOP/s in a type.

    `source` says where it is published; "" means the best rate seen in this run.
    """

    value: float
    source: str = ""


class Speed(Record, frozen=True):
    """How fast some work ran: `rate` in `unit`, from the median `seconds` of `repeats`; `cpu_rate` is the CPU's.

    `best` is the quickest run, `spread` the width of the middle half relative to the median, `flops` and `bytes` the
    work of one run in floating-point numbers of `dtype`, `peak_bytes` the most memory taken.
    """

    rate: float
    unit: str
    seconds: float
    best: float
    spread: float
    repeats: int
    cpu_rate: float | None = None
    flops: float = 0.0
    bytes: float = 0.0
    dtype: str = "float32"
    peak_bytes: int | None = None

    @property
    def noisy(self) -> bool:
        """Whether the runs differ too much for their median to be trusted."""
        return self.spread > NOISY

    def share(self, limits: Mapping[str, Limit]) -> tuple[float, Limit] | None:
        """Return the share reached of the limit that binds first, memory or arithmetic (roofline), and that limit."""
        loads = ((BANDWIDTH, self.bytes), (self.dtype, self.flops))
        least = [(load / limits[name].value / 1e9, limits[name]) for name, load in loads if load and name in limits]
        if not (self.bytes and least):
            return None
        seconds, limit = max(least, key=lambda pair: pair[0])
        return seconds / self.seconds, limit


def figure(value: float) -> str:
    """Format a number with three digits, or without decimals where it has more."""
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"  # noqa: PLR2004 - what three digits can write
