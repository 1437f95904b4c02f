"""What a full verification measured: a table of device against CPU, bars, and a roofline under measured limits."""

from __future__ import annotations

from typing import Any

from assistant.i18n import _
from assistant.model.report import Check, Report, Speed
from assistant.verify.plots import GREY, png, svg, timing_figure

__all__ = ["figures", "performance_rows", "roofline_figure", "roofline_png", "speed_figure", "speed_png"]

DEVICE, CPU = "#2a8f82", "#c27a00"
HEIGHT = 0.36


def performance_rows(report: Report) -> tuple[tuple[str, ...], ...]:
    """Give one row per measured check: its key, rate, times the CPU's, spread and repeats, memory, and a remark."""
    return tuple(_row(check.key, speed) for check, speed in _measured(report))


def _row(key: str, speed: Speed) -> tuple[str, ...]:
    return (
        key,
        f"{_number(speed.rate)} {speed.unit}",
        f"{speed.rate / speed.cpu_rate:.3g} ×" if speed.cpu_rate else "",
        f"±{50 * speed.spread:.0f} % ({speed.repeats})",
        f"{speed.peak_bytes / 2**20:.0f} MiB" if speed.peak_bytes else "",
        _("noisy") if speed.noisy else "",
    )


def _number(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"  # noqa: PLR2004 - what three digits can write


def _measured(report: Report) -> list[tuple[Check, Speed]]:
    return [(check, check.speed) for check in report.checks if check.speed is not None]


def figures(report: Report) -> dict[str, str]:
    """Draw every picture of a verification, by file name; a full one adds the speeds and their limits."""
    drawn = {"verification.svg": timing_figure(report)}
    if performance_rows(report):
        drawn |= {"speed.svg": speed_figure(report), "roofline.svg": roofline_figure(report)}
    return drawn


def speed_figure(report: Report) -> str:
    """Draw each measured rate beside the CPU's as an SVG element that fits light and dark pages."""
    return svg(lambda: _bars(report), _("Speed of {device} beside the CPU").format(device=report.device), _said(report))


def speed_png(report: Report) -> bytes:
    """Draw the same picture as a PNG with a transparent background."""
    return png(lambda: _bars(report))


def roofline_figure(report: Report) -> str:
    """Draw the work done per second over the work per byte, under what memory and arithmetic were seen to reach."""
    title = _("Roofline of {device}").format(device=report.device)
    return svg(lambda: _roofline(report), title, _said(report))


def roofline_png(report: Report) -> bytes:
    """Draw the same picture as a PNG with a transparent background."""
    return png(lambda: _roofline(report))


def _said(report: Report) -> str:
    """Say in words what the pictures show."""
    rows = (" ".join(part for part in row if part) for row in performance_rows(report))
    return _("Each rate is the median of its runs.") + " " + "; ".join(rows) + "."


def _bars(report: Report) -> Any:  # noqa: ANN401 - a matplotlib figure
    """Lay out one row per check, each on its own scale: the device's bar is one, or the CPU's where that is longer."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - 0.3 s, needed only when something is drawn

    rows = _measured(report)
    figure = Figure(figsize=(7.2, 0.6 + 0.42 * max(len(rows), 1)), layout="constrained")
    axes = figure.add_subplot()
    for row, (_check, speed) in enumerate(rows):
        longest = max(speed.rate, speed.cpu_rate or 0.0)
        _bar(axes, row - HEIGHT / 2, speed.rate / longest, _label(speed), DEVICE)
        if speed.cpu_rate:
            _bar(axes, row + HEIGHT / 2, speed.cpu_rate / longest, f"CPU {_number(speed.cpu_rate)}", CPU)
    axes.set_yticks(range(len(rows)), [check.key for check, _speed in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(0.0, 1.6)
    axes.set_xticks([])
    _quiet(axes)
    return figure


def _bar(axes: Any, row: float, length: float, label: str, colour: str) -> None:  # noqa: ANN401 - matplotlib has no types
    axes.barh(row, length, HEIGHT, color=colour, linewidth=0)
    axes.text(length + 0.02, row, label, va="center", color=GREY, fontsize=9)


def _label(speed: Speed) -> str:
    return f"{_number(speed.rate)} {speed.unit}" + (" (noisy)" if speed.noisy else "")


def _roofline(report: Report) -> Any:  # noqa: ANN401 - a matplotlib figure
    """Place each work by its FLOP per byte; the roof is the quickest copy and each type's quickest multiplication."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - as above

    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.add_subplot()
    axes.set_xscale("log")
    axes.set_yscale("log")
    for name, bandwidth, peak in _roofs(report):
        corner = peak / bandwidth
        axes.plot([0.1, corner, 1e4], [0.1 * bandwidth, peak, peak], color=GREY, linewidth=1.2)
        axes.text(1e4, peak, f" {name} {_number(peak)} GFLOP/s", color=GREY, fontsize=8, va="bottom", ha="right")
    for check, speed in _measured(report):
        if speed.flops and speed.bytes:
            place = speed.flops / speed.bytes, speed.flops / speed.seconds / 1e9
            axes.plot(*place, "o", color=DEVICE, markersize=6)
            axes.annotate(check.key, place, (5, -9), textcoords="offset points", color=GREY, fontsize=8)
    axes.set_xlabel("FLOP / byte", color=GREY)
    axes.set_ylabel("GFLOP/s", color=GREY)
    _quiet(axes)
    return figure


def _roofs(report: Report) -> list[tuple[str, float, float]]:
    """Give each floating-point type with the quickest copy in GB/s and its quickest multiplication in GFLOP/s."""
    speeds = {check.key: speed for check, speed in _measured(report)}
    copying = speeds.get("speed.bandwidth")
    if copying is None:
        return []
    bandwidth = copying.bytes / copying.best / 1e9
    products = ((key.rpartition(".")[2], speed) for key, speed in speeds.items() if key.startswith("speed.matmul."))
    return [(name, bandwidth, speed.flops / speed.best / 1e9) for name, speed in products]


def _quiet(axes: Any) -> None:  # noqa: ANN401 - matplotlib has no types
    """Leave out frame and ticks; write in the colour that reads on light and dark."""
    axes.tick_params(which="both", length=0, labelcolor=GREY)
    for side in axes.spines.values():
        side.set_visible(False)
