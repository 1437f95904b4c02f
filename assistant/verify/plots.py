"""Pictures of a verification, as SVG for pages and PNG for files; matplotlib is loaded when the first one is drawn.

Their words are keys and units, which the font has in every language.
"""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Callable, Mapping
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

from assistant.i18n import _, render
from assistant.model.report import Check, Report, Status, duration
from assistant.model.speed import Limit, Speed, figure, speed_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["figures", "pictures", "warm_up"]

# Read on white and on black: contrast 4.4 and 4.7 to 1. In the wizard its own colour of text takes its place.
GREY = "#787878"
_THEMED = f"var(--ptsa-text, {GREY})"
DEVICE, CPU, WRONG = "#2a8f82", "#c27a00", "#d1495b"
_BARS: Mapping[Status, str] = {
    Status.PASSED: DEVICE,
    Status.UNSUPPORTED: CPU,
    Status.WRONG: WRONG,
    Status.FAILED: WRONG,
    Status.TIMEOUT: WRONG,
    Status.SLOW: CPU,
}
_FINER = re.compile(r"(?<=\.\d)\d{2,}(?=[^<]*>)")  # places in tags beyond a tenth of a pixel only make it longer
_BETWEEN = re.compile(r">\s+<")
SHORTEST = 1e-6
HEIGHT = 0.36
FLOPS_PER_BYTE = 0.1, 1e5  # from copying to multiplying the largest matrices
Axes = Any  # matplotlib has no types
_drawing = threading.Lock()  # matplotlib's caches of fonts and glyphs are shared by all threads


def warm_up() -> None:
    """Load matplotlib ahead of the first picture, while another process works."""
    import matplotlib.backends.backend_svg  # noqa: PLC0415
    import matplotlib.figure  # noqa: F401, PLC0415


def figures(report: Report) -> dict[str, str]:
    """Draw every picture as an SVG element that fits light and dark pages, by file name."""
    return {f"{name}.svg": _svg(partial(draw, report), title, said) for name, draw, title, said in _wanted(report)}


def pictures(report: Report, software: str) -> dict[str, bytes]:
    """Draw the same as PNG files with a transparent background that name the `software` that wrote them."""
    options = {"format": "png", "metadata": {"Software": software}}
    return {f"{name}.png": _drawn(partial(draw, report), **options) for name, draw, *_words in _wanted(report)}


def _wanted(report: Report) -> list[tuple[str, Callable[[Report], Figure], str, str]]:
    """Name the pictures of a report, with a title and words for those who cannot see them."""
    checks = [
        " ".join(filter(None, (f"{check.key}: {check.status.value}", duration(check.seconds))))
        for check in report.checks
    ]
    speeds = [" ".join(filter(None, map(render, row))) for row in speed_rows(report.speeds, report.limits)]
    pale = _("Pale bars are first runs, which may compile; full bars are later runs; the scale is logarithmic.")
    solid = _("Solid lines are published limits, dashed ones the best of this run.")
    wanted = (
        ("verification", _timing, _("Seconds of each check on {device}"), pale, checks),
        ("speed", _bars, _("Speed of {device} beside the CPU"), _("Each rate is the median of its runs."), speeds),
        ("roofline", _roofline, _("Roofline of {device}"), solid, speeds),
    )
    return [
        (name, draw, render(title.format(device=report.device)), f"{render(said)} {'; '.join(rows)}.")
        for name, draw, title, said, rows in wanted[: 3 if speeds else 1]
    ]


def _svg(make: Callable[[], Figure], title: str, description: str) -> str:
    """Give a figure as an SVG element that has a name, words for those who cannot see it, and the page's colours."""
    unsaid = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    text = _BETWEEN.sub("><", _FINER.sub("", _drawn(make, format="svg", metadata=unsaid).decode()))
    body = text[text.index(">", text.index("<svg")) + 1 :].replace(GREY, _THEMED)
    opening = text[text.index("<svg") : text.index(">", text.index("<svg"))]
    title, description = escape(title), escape(description)
    return f'{opening} role="img" aria-label="{title}"><title>{title}</title><desc>{description}</desc>{body}'


def _drawn(make: Callable[[], Figure], **options: Any) -> bytes:  # noqa: ANN401 - as `savefig` takes them
    file = io.BytesIO()
    with _drawing:
        make().savefig(file, dpi=150, transparent=True, **options)
    return file.getvalue()


def _canvas(height: float, rows: tuple[str, ...] = ()) -> tuple[Figure, Axes]:
    """Make a figure without frame and ticks, in the colour that reads on light and dark, with a row for each key."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - 0.3 s, needed only when something is drawn

    drawn = Figure(figsize=(7.2, height), layout="constrained")
    axes = drawn.add_subplot()
    axes.tick_params(which="both", length=0, labelcolor=GREY)
    for side in axes.spines.values():
        side.set_visible(False)
    if rows:
        axes.set_yticks(range(len(rows)), rows)
        axes.set_ylim(len(rows) - 0.4, -0.6)
    return drawn, axes


def _timing(report: Report) -> Figure:
    """Lay out one row per check: its first run pale, later runs full."""
    drawn, axes = _canvas(0.6 + 0.32 * max(len(report.checks), 1), tuple(check.key for check in report.checks))
    axes.set_xscale("log")
    axes.set_xlim(SHORTEST, 100.0)
    axes.set_xticks([1e-6, 1e-3, 1.0], ["1 µs", "1 ms", "1 s"])
    axes.set_xticks([], minor=True)
    for row, check in enumerate(report.checks):
        _draw_row(axes, row, check)
    return drawn


def _draw_row(axes: Axes, row: int, check: Check) -> None:
    colour = _BARS.get(check.status, GREY)
    for seconds, alpha, height in ((check.first_seconds, 0.35, 0.7), (check.seconds, 1.0, 0.34)):
        if seconds is not None and seconds > SHORTEST:
            axes.barh(row, seconds - SHORTEST, height, SHORTEST, color=colour, alpha=alpha, clip_on=False, linewidth=0)
    known = [seconds for seconds in (check.seconds, check.first_seconds) if seconds is not None]
    words = [duration(seconds) for seconds in dict.fromkeys(reversed(known))]
    label = " → ".join(words) if check.status is Status.PASSED else "  ".join([check.status.value, *words])
    axes.text(max([*known, SHORTEST]) * 1.25, row, label, va="center", color=GREY, fontsize=9)


def _bars(report: Report) -> Figure:
    """Lay out one row per work, each on its own scale: the device's bar is one, or the CPU's where that is longer."""
    drawn, axes = _canvas(0.6 + 0.42 * len(report.speeds), tuple(report.speeds))
    for row, speed in enumerate(report.speeds.values()):
        longest = max(speed.rate, speed.cpu_rate or 0.0)
        _bar(axes, row - HEIGHT / 2, speed.rate / longest, _label(speed), DEVICE)
        if speed.cpu_rate:
            _bar(axes, row + HEIGHT / 2, speed.cpu_rate / longest, f"CPU {figure(speed.cpu_rate)}", CPU)
    axes.set_xlim(0.0, 1.6)
    axes.set_xticks([])
    return drawn


def _bar(axes: Axes, row: float, length: float, label: str, colour: str) -> None:
    axes.barh(row, length, HEIGHT, color=colour, linewidth=0)
    axes.text(length + 0.02, row, label, va="center", color=GREY, fontsize=9)


def _label(speed: Speed) -> str:
    return f"{figure(speed.rate)} {speed.unit}" + (" (noisy)" if speed.noisy else "")


def _roofline(report: Report) -> Figure:
    """Place each work by its FLOP per byte, under what memory and each type's arithmetic can reach."""
    drawn, axes = _canvas(4.4)
    axes.set_xscale("log")
    axes.set_yscale("log")
    _draw_roofs(axes, report)
    for key, speed in report.speeds.items():
        if speed.flops and speed.bytes:
            place = speed.flops / speed.bytes, speed.flops / speed.seconds / 1e9
            axes.plot(*place, "o", color=DEVICE, markersize=6)
            name = key.removeprefix("speed.")
            axes.annotate(name, place, (7, 0), textcoords="offset points", va="center", color=GREY, fontsize=8)
    axes.set_xlabel("FLOP / byte", color=GREY)
    axes.set_ylabel("GFLOP/s", color=GREY)
    return drawn


def _draw_roofs(axes: Axes, report: Report) -> None:
    """Draw the slope of the memory and, for the types, the level of their arithmetic; dashed where only measured."""
    memory = report.limits.get("bandwidth")
    peaks = {name: limit for name, limit in report.limits.items() if name != "bandwidth"}
    if memory is None or not peaks:
        return
    (first, last), slope = FLOPS_PER_BYTE, memory.value
    corner = max(limit.value for limit in peaks.values()) / slope
    _line(axes, (first, corner), (first * slope, corner * slope), memory)
    axes.text(1.7 * first, first * slope, f"{figure(slope)} GB/s", color=GREY, fontsize=8, va="center")
    for limit in dict.fromkeys(peaks.values()):
        _line(axes, (max(first, limit.value / slope), last), (limit.value, limit.value), limit)
        names = ", ".join(name for name, other in peaks.items() if other == limit)
        text = f"{names} {figure(limit.value)} GFLOP/s"
        axes.text(last, 1.05 * limit.value, text, color=GREY, fontsize=8, va="bottom", ha="right")


def _line(axes: Axes, across: tuple[float, float], up: tuple[float, float], limit: Limit) -> None:
    axes.plot(across, up, color=GREY, linewidth=1.2, linestyle="-" if limit.source else "--")
