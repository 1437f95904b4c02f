"""How fast a device worked, the most that it can reach, and both as a table."""

from __future__ import annotations

from collections.abc import Mapping

from assistant.i18n import Message, Text, _
from assistant.model.record import Record

__all__ = ["Limit", "Speed", "figure", "limit_rows", "speed_headings", "speed_rows"]

NOISY = 0.2
BANDWIDTH = "bandwidth"


class Limit(Record, frozen=True):
    """The most that a device can reach: GB/s of its memory or GFLOP/s in a type.

    `source` names where it is published; "" means that it is the best seen in this very run.
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
        """Tell whether the runs differ too much for their median to be trusted."""
        return self.spread > NOISY

    def share(self, limits: Mapping[str, Limit]) -> tuple[float, Limit] | None:
        """Give the part reached of the limit that holds this work up, memory or arithmetic, and that limit."""
        loads = ((BANDWIDTH, self.bytes), (self.dtype, self.flops))
        least = [(load / limits[name].value / 1e9, limits[name]) for name, load in loads if load and name in limits]
        if not (self.bytes and least):
            return None
        seconds, limit = max(least, key=lambda pair: pair[0])
        return seconds / self.seconds, limit


def speed_headings() -> tuple[Message, ...]:
    """Name the columns of `speed_rows`."""
    return (_("Work"), _("Rate"), _("Beside the CPU"), _("Of the limit"), _("Spread"), _("Memory"), _("Remark"))


def speed_rows(speeds: Mapping[str, Speed], limits: Mapping[str, Limit]) -> tuple[tuple[str, *tuple[Text, ...]], ...]:
    """Give one row per measured work: key, rate, times the CPU's, share of the limit, spread, memory, remark."""
    return tuple(
        (
            key,
            f"{figure(speed.rate)} {speed.unit}",
            f"{figure(speed.rate / speed.cpu_rate)} ×" if speed.cpu_rate else "",
            _share(speed.share(limits)),
            f"±{50 * speed.spread:.0f} % ({speed.repeats})",
            f"{speed.peak_bytes / 2**20:.0f} MiB" if speed.peak_bytes else "",
            _("noisy") if speed.noisy else "",
        )
        for key, speed in speeds.items()
    )


def _share(found: tuple[float, Limit] | None) -> Text:
    if found is None:
        return ""
    text = _("{percent:.0f} %, published") if found[1].source else _("{percent:.0f} %, measured")
    return text.format(percent=100 * found[0])


def limit_rows(limits: Mapping[str, Limit]) -> tuple[tuple[Text, Text], ...]:
    """Give one row per source: the limits that it names, and the source."""
    found: dict[Text, tuple[Message, ...]] = {}
    for name, limit in limits.items():
        named = _("memory {rate} GB/s") if name == BANDWIDTH else _("{type} {rate} GFLOP/s")
        told = named.format(type=name, rate=figure(limit.value))
        source = limit.source or _("the best of this run")
        found[source] = (*found.get(source, ()), told)
    return tuple((Message("{limits}").format(limits=limits), source) for source, limits in found.items())


def figure(value: float) -> str:
    """Write a number with three digits, or whole where it has more."""
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"  # noqa: PLR2004 - what three digits can write
