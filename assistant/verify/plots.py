"""Pictures of a verification, as SVG for pages and PNG for files; matplotlib is loaded when the first one is drawn."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from assistant.i18n import _
from assistant.model.report import Check, Report, Status, duration

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["GREY", "png", "svg", "timing_figure", "timing_png", "warm_up"]

# Read on white and on black: contrast 4.4 and 4.7 to 1. In JupyterLab the theme's own colour of text takes its place.
GREY = "#787878"
_THEMED = f"var(--jp-ui-font-color1, {GREY})"
_BARS: Mapping[Status, str] = {
    Status.PASSED: "#2a8f82",
    Status.UNSUPPORTED: "#c27a00",
    Status.WRONG: "#d1495b",
    Status.FAILED: "#d1495b",
    Status.TIMEOUT: "#d1495b",
    Status.SLOW: "#c27a00",
}
SHORTEST = 1e-6
_drawing = threading.Lock()  # matplotlib's caches of fonts and glyphs are shared by all threads


def warm_up() -> None:
    """Load matplotlib ahead of the first picture, while another process works."""
    import matplotlib.backends.backend_svg  # noqa: PLC0415
    import matplotlib.figure  # noqa: F401, PLC0415


def timing_figure(report: Report) -> str:
    """Draw the seconds of each check, first and later runs, as an SVG element that fits light and dark pages."""
    return svg(lambda: _figure(report), _title(report), _description(report))


def timing_png(report: Report) -> bytes:
    """Draw the same picture as a PNG with a transparent background."""
    return png(lambda: _figure(report))


def svg(make: Callable[[], Figure], title: str, description: str) -> str:
    """Give a figure as an SVG element that has a name, words for those who cannot see it, and the page's colours."""
    text = _drawn(make, format="svg", metadata={"Date": None}).decode()
    body = text[text.index(">", text.index("<svg")) + 1 :].replace(f"{GREY}", _THEMED)
    opening = text[text.index("<svg") : text.index(">", text.index("<svg"))]
    title, description = escape(title), escape(description)
    named = f'{opening} role="img" aria-label="{title}"><title>{title}</title><desc>{description}</desc>'
    return f"{named}{body}"


def png(make: Callable[[], Figure]) -> bytes:
    """Give a figure as a PNG with a transparent background."""
    return _drawn(make, format="png")


def _drawn(make: Callable[[], Figure], **options: Any) -> bytes:  # noqa: ANN401 - as `savefig` takes them
    file = io.BytesIO()
    with _drawing:
        make().savefig(file, dpi=150, transparent=True, **options)
    return file.getvalue()


def _figure(report: Report) -> Figure:
    """Lay out one row per check; its words are keys and units, which the font has in every language."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - 0.3 s, needed only when something is drawn

    checks = report.checks
    figure = Figure(figsize=(7.2, 0.6 + 0.32 * max(len(checks), 1)), layout="constrained")
    axes = figure.add_subplot()
    axes.set_xscale("log")
    axes.set_xlim(SHORTEST, 100.0)
    axes.set_yticks(range(len(checks)), [check.key for check in checks])
    axes.set_ylim(len(checks) - 0.4, -0.6)
    axes.set_xticks([1e-6, 1e-3, 1.0], ["1 µs", "1 ms", "1 s"])
    axes.set_xticks([], minor=True)
    axes.tick_params(which="both", length=0, labelcolor=GREY)
    for side in axes.spines.values():
        side.set_visible(False)
    for row, check in enumerate(checks):
        _draw_row(axes, row, check)
    return figure


def _draw_row(axes: Any, row: int, check: Check) -> None:  # noqa: ANN401 - matplotlib has no types
    colour = _BARS.get(check.status, GREY)
    for seconds, alpha, height in ((check.first_seconds, 0.35, 0.7), (check.seconds, 1.0, 0.34)):
        if seconds is not None and seconds > SHORTEST:
            axes.barh(row, seconds - SHORTEST, height, SHORTEST, color=colour, alpha=alpha, clip_on=False, linewidth=0)
    known = [seconds for seconds in (check.seconds, check.first_seconds) if seconds is not None]
    words = [duration(seconds) for seconds in dict.fromkeys(reversed(known))]
    label = " → ".join(words) if check.status is Status.PASSED else "  ".join([check.status.value, *words])
    axes.text(max([*known, SHORTEST]) * 1.25, row, label, va="center", color=GREY, fontsize=9)


def _title(report: Report) -> str:
    return _("Seconds of each check on {device}").format(device=report.device)


def _description(report: Report) -> str:
    """Say in words what the bars show."""
    rows = [
        f"{check.key}: {check.status.value}" + ("" if check.seconds is None else f", {duration(check.seconds)}")
        for check in report.checks
    ]
    sentence = _("Pale bars are first runs, which may compile; full bars are later runs; the scale is logarithmic.")
    return sentence + " " + "; ".join(rows) + "."
