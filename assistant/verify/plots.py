"""Charts of a verification as SVG: the times of its checks, its speeds beside the CPU's, and the roofline."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from assistant.i18n import Message, _, render
from assistant.markup import Markup, document, tag, text, width_of
from assistant.model.checks import check_title
from assistant.model.report import Check, Report, Status, duration, status_word
from assistant.model.speed import BANDWIDTH, Limit, Speed, figure
from assistant.views import check_rows, folded, speed_rows

DEVICE, CPU, WRONG = "#2a8f82", "#c27a00", "#d1495b"
_COLOURS = {
    Status.PASSED: DEVICE,
    Status.UNSUPPORTED: CPU,
    Status.SLOW: CPU,
    Status.WRONG: WRONG,
    Status.FAILED: WRONG,
    Status.TIMEOUT: WRONG,
}
BARS, SMALL, LINE = 360.0, 11, 15.0  # the longest bar, a small font, and the height of a line in it, in pixels
SHORTEST, LONGEST = 1e-6, 100.0  # seconds at both ends of the scale of times
Place = tuple[float, float]  # FLOP per byte and GFLOP/s
Drawing = tuple[float, float, list[Markup]]  # width, height, parts


def figures(report: Report) -> dict[str, str]:
    """Return every chart as an SVG element that fits light and dark pages, by file name."""
    report = folded(report)
    checks = (f"{row.title}: {render(row.result)} {row.later}".strip() for row in check_rows(report))
    speeds = [" ".join(filter(None, map(render, row))) for row in speed_rows(report)]
    pale = _("Pale bars are first runs, which may compile; full bars are later runs; the scale is logarithmic.")
    solid = _("Solid lines are published limits, dashed ones the best of this run.")
    wanted: dict[str, tuple[Callable[[Report], Drawing], Message, Message, Iterable[str]]] = {
        "verification.svg": (_times, _("Seconds of each check on {device}"), pale, checks),
    }
    if speeds:
        rates = _("Each rate is the median of its runs.")
        wanted["speed.svg"] = (_speeds, _("Speed of {device} compared with the CPU"), rates, speeds)
        wanted["roofline.svg"] = (_roofline, _("Roofline of {device}"), solid, speeds)
    return {
        name: document(*draw(report), render(title.format(device=report.device)), f"{render(note)} {'; '.join(rows)}.")
        for name, (draw, title, note, rows) in wanted.items()
    }


def _bar(x: float, y: float, width: float, height: float, fill: str, **more: object) -> Markup:
    return tag("rect", x=x, y=y, width=max(width, 0.0), height=height, fill=fill, **more)


def _times(report: Report) -> Drawing:
    """Draw one row per check: its first run pale, later runs full."""
    titles = [render(check_title(check.key)) for check in report.checks]
    left, row, bottom = _room(titles), 22.0, 22.0 * len(titles) + 8
    parts: list[Markup] = []
    right = left + BARS
    for number, (title, check) in enumerate(zip(titles, report.checks, strict=True)):
        middle = row * number + row / 2
        ends = {seconds: left + BARS * _share(seconds) for seconds in (check.first_seconds, check.seconds) if seconds}
        for seconds, opacity, height in ((check.first_seconds, 0.35, 14), (check.seconds, 1, 7)):
            if seconds:
                colour = _COLOURS.get(check.status, "currentColor")
                parts.append(_bar(left, middle - height / 2, ends[seconds] - left, height, colour, opacity=opacity))
        label, start = _time_label(check), max(ends.values(), default=left) + 6
        parts += [
            text(left - 8, middle + 4, title, text_anchor="end"),
            text(start, middle + 4, label, font_size=SMALL),
        ]
        right = max(right, start + width_of(label, SMALL))
    scale = ((1e-6, "1 µs"), (1e-3, "1 ms"), (1.0, "1 s"))
    parts += [text(left + BARS * _share(at), bottom + 10, words, text_anchor="middle") for at, words in scale]
    return right + 8, bottom + 18, parts


def _room(titles: Sequence[str]) -> float:
    """Return the width of the column of titles."""
    return max(map(width_of, titles), default=0) + 16


def _share(seconds: float) -> float:
    return math.log(min(max(seconds, SHORTEST), LONGEST) / SHORTEST) / math.log(LONGEST / SHORTEST)


def _time_label(check: Check) -> str:
    known = [seconds for seconds in (check.first_seconds, check.seconds) if seconds is not None]
    times = " → ".join(duration(seconds) for seconds in dict.fromkeys(known))
    return times if check.status is Status.PASSED else f"{render(status_word(check.status))}  {times}".rstrip()


def _speeds(report: Report) -> Drawing:
    """Draw two bars per work on a scale of its own: the longest is the device's, or the CPU's where that is faster."""
    titles = [render(check_title(key)) for key in report.speeds]
    left, row = _room(titles), 42.0
    right, parts = left + BARS, []
    for number, (title, speed) in enumerate(zip(titles, report.speeds.values(), strict=True)):
        top = row * number + 6
        noisy = render(_("noisy")) if speed.noisy else ""
        bars = [(speed.rate, f"{figure(speed.rate)} {speed.unit}  {noisy}".rstrip(), DEVICE)]
        if speed.cpu_rate:
            bars.append((speed.cpu_rate, f"CPU {figure(speed.cpu_rate)}", CPU))
        parts.append(text(left - 8, top + LINE * len(bars) / 2 + 4, title, text_anchor="end"))
        for place, (rate, label, colour) in enumerate(bars):
            width, y = BARS * rate / (max(bars)[0] or 1.0), top + LINE * place
            parts += [_bar(left, y, width, 13, colour), text(left + width + 6, y + 11, label, font_size=SMALL)]
            right = max(right, left + width + 6 + width_of(label, SMALL))
    return right + 8, row * len(titles) + 4, parts


def _roofline(report: Report) -> Drawing:
    """Place each work by its FLOP per byte, under what memory and each type's arithmetic can reach.

    The model: Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009, https://doi.org/10.1145/1498765.1498785.
    All names stand in a column beside the field, each with a thin line to what it names, so that none hides another.
    """
    points = {key: _place(speed) for key, speed in report.speeds.items() if speed.flops and speed.bytes}
    lines = list(_roofs(report))
    ends = [*points.values(), *(end for _name, _limit, *both in lines for end in both)] or [(1.0, 1.0)]
    (first, last), (low, high) = (_decades(axis) for axis in zip(*ends, strict=True))
    names = [render(name) for name in (*map(check_title, points), *(name for name, *_line in lines))]
    left, top, width = 60.0, 24.0, 420.0
    height = max(300.0, LINE * len(names))

    def at(place: Place) -> tuple[float, float]:
        across, up = math.log10(place[0] / first), math.log10(place[1] / low)
        return left + width * across / math.log10(last / first), top + height * (1 - up / math.log10(high / low))

    parts = [*_axes(at, (first, last), (low, high))]
    for _name, limit, start, end in lines:
        (x1, y1), (x2, y2) = at(start), at(end)
        dashes = {} if limit.source else {"stroke_dasharray": "5 3"}
        parts.append(tag("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke="currentColor", stroke_width=1.2, **dashes))
    named = [at(place) for place in points.values()] + [at(end) for *_start, end in lines]
    column = left + width + 30
    order = sorted(range(len(names)), key=lambda number: (named[number][1], -named[number][0]))
    for number, y in zip(order, _spread([named[number][1] for number in order], top, top + height), strict=True):
        (x, at_y), dot = named[number], number < len(points)
        parts.append(tag("path", d=f"M{x:.1f} {at_y:.1f}L{column - 14:.1f} {y:.1f}H{column - 4:.1f}", **_THIN))
        parts += [tag("circle", cx=x, cy=at_y, r=4.5, fill=DEVICE)] * dot
        parts.append(text(column, y + 4, names[number], font_size=SMALL))
    return column + max((width_of(name, SMALL) for name in names), default=0) + 8, top + height + 44, parts


_THIN = {"fill": "none", "stroke": "currentColor", "stroke_width": 0.6, "opacity": 0.6}


def _place(speed: Speed) -> Place:
    return speed.flops / speed.bytes, speed.flops / speed.seconds / 1e9


def _decades(values: Sequence[float]) -> tuple[float, float]:
    """Return the powers of ten around values."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return 10.0**low, 10.0 ** max(high, low + 1)


def _roofs(report: Report) -> Iterator[tuple[Message, Limit, Place, Place]]:
    """Yield the slope of the memory and the level of each type's arithmetic: name, limit and both ends."""
    memory = report.limits.get(BANDWIDTH)
    peaks = {name: limit for name, limit in report.limits.items() if name != BANDWIDTH}
    if memory is None or not peaks:
        return
    (first, last), slope = (0.1, 1e5), memory.value  # FLOP per byte, from copying to multiplying the largest matrices
    corner = max(limit.value for limit in peaks.values()) / slope
    yield _("memory {rate} GB/s", rate=figure(slope)), memory, (first, first * slope), (corner, corner * slope)
    for limit in dict.fromkeys(peaks.values()):
        names = ", ".join(name for name, other in peaks.items() if other == limit)
        level, start = _("{type} {rate} GFLOP/s", type=names, rate=figure(limit.value)), max(first, limit.value / slope)
        yield level, limit, (start, limit.value), (last, limit.value)


def _axes(
    at: Callable[[Place], tuple[float, float]], across: tuple[float, float], up: tuple[float, float]
) -> Iterator[Markup]:
    """Write the powers of ten below and beside the field, as many as have room, and what they count."""
    (left, bottom), (right, top) = at((across[0], up[0])), at((across[1], up[1]))
    for value in _powers(*across, most=8):
        yield text(at((value, up[0]))[0], bottom + 18, f"{value:g}", text_anchor="middle", font_size=SMALL)
    for value in _powers(*up, most=8):
        yield text(left - 6, at((across[0], value))[1] + 4, f"{value:g}", text_anchor="end", font_size=SMALL)
    yield text((left + right) / 2, bottom + 36, "FLOP / byte", text_anchor="middle")
    yield text(left - 6, top - 12, "GFLOP/s", text_anchor="middle")


def _powers(first: float, last: float, most: int) -> list[float]:
    low, high = round(math.log10(first)), round(math.log10(last))
    return [10.0**power for power in range(low, high + 1, math.ceil((high - low + 1) / most))]


def _spread(wanted: Sequence[float], top: float, bottom: float) -> list[float]:
    """Move ascending heights as little as need be for a line of text each, between `top` and `bottom`."""
    found: list[float] = []
    for height in wanted:
        found.append(max(height, found[-1] + LINE if found else top))
    for place in reversed(range(len(found))):
        found[place] = min(found[place], found[place + 1] - LINE if place + 1 < len(found) else bottom)
    return found
