"""How fast a device did some work."""

from __future__ import annotations

from assistant.model.record import Record


class Speed(Record, frozen=True):
    """How fast some work ran: `rate` in `unit`, the median of its runs; `cpu_rate` is this machine's CPU's."""

    rate: float
    unit: str
    cpu_rate: float | None = None


def figure(value: float) -> str:
    """Format a number with three digits, or without decimals where it has more."""
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"  # noqa: PLR2004 - what three digits can write
