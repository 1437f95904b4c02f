"""The verification: every check with its result, and a picture of the times."""

from __future__ import annotations

import math
from functools import lru_cache

from assistant.i18n import Text, language, render, say
from assistant.markup import Markup, joined, tag
from assistant.model.checks import check_kind, check_title
from assistant.model.finding import Severity
from assistant.model.record import from_json, to_json
from assistant.model.report import Check, Report, Status, duration, status_word, verdict
from assistant.session.state import State
from assistant.verify import figures
from assistant.views import CHECK_HEADINGS, SPEED_HEADINGS, CheckRow, check_rows, folded, limit_rows, speed_rows
from assistant.wizard import html

SIGNS = {Status.PASSED: "✓", Status.SLOW: "!", Status.SKIPPED: "–"}
ICONS = {Status.PASSED: "ok", Status.SLOW: "warning", Status.SKIPPED: "info", Status.UNSUPPORTED: "no"}
TIMES = "verification.svg"  # a picture for files; in the panel the same is drawn as bars


def draw_checks(report: Report) -> Markup:
    """Show the verdict, each check with its result and times, and the speeds that were measured."""
    severity = Severity.OK if report.passed else Severity.WARNING if report.usable else Severity.ERROR
    judged, report = verdict(report), folded(report)
    signed = (
        row._replace(result=f"{SIGNS.get(check.status, '✗')} {render(row.result)}")
        for check, row in zip(report.checks, check_rows(report), strict=True)
    )
    every = html.table(map(_cells, signed), _cells(CHECK_HEADINGS))
    found = html.note(severity, judged) + _matrix(report) + _times(report)
    return found + html.details(say("Times and errors"), every) + _speeds(report)


def plots(state: State) -> Markup:
    """Show the pictures of speeds; a narrow window scrolls them, by the keyboard, too."""
    if state.report is None or not state.report.speeds:
        return html.NOTHING
    pictures = _drawn(to_json(state.report), language())
    return joined(tag("div", svg, class_="ptsa-plot", tabindex=0) for name, svg in pictures.items() if name != TIMES)


@lru_cache(maxsize=1)
def _drawn(report: str, _language: str) -> dict[str, str]:
    return figures(from_json(report, Report, "report"))


def _matrix(report: Report) -> Markup:
    """Draw a row per kind of check, with a field for each that says how it ended by sign and word."""
    rows: dict[Text, list[Markup]] = {}
    for check in report.checks:
        status, title = status_word(check.status), check_title(check.key)
        result = "; ".join(filter(None, map(render, (status, check.detail))))
        text = title if check.status is Status.PASSED else f"{render(title)}: {result}"
        sign = html.icon(ICONS.get(check.status, "error"), status)
        field = tag("li", sign, text, class_=f"ptsa-check-{check.status.value}")
        rows.setdefault(check_kind(check.key), []).append(field)
    body = [tag("tr", tag("th", kind, scope="row"), tag("td", tag("ul", *row))) for kind, row in rows.items()]
    return tag("table", tag("tbody", "", *body), class_="ptsa-table ptsa-matrix")


def _times(report: Report) -> Markup:
    """Draw each check's time as a bar: its first run pale, later runs full, on one logarithmic scale."""
    rows = [_bar(check) for check in report.checks if check.seconds]
    if not rows:
        return html.NOTHING
    pale = say("Pale bars are first runs, which may compile; full bars are later runs; the scale is logarithmic.")
    return html.lead_line(pale) + tag("table", tag("tbody", *rows), class_="ptsa-table ptsa-bars")


def _bar(check: Check) -> Markup:
    runs = [(name, seconds) for name, seconds in (("first", check.first_seconds), ("later", check.seconds)) if seconds]
    bars = [tag("span", "", class_=f"ptsa-bar-{name}", style=f"width:{_share(seconds):.1f}%") for name, seconds in runs]
    words = " → ".join(dict.fromkeys(duration(seconds) for _name, seconds in runs))
    title = tag("th", check_title(check.key), scope="row")
    return tag("tr", title, tag("td", tag("div", *bars, class_="ptsa-bar")), tag("td", words))


def _share(seconds: float) -> float:
    """Return how many percent of the scale, from a microsecond to 100 seconds, a time fills."""
    return 100 * min(1.0, max(0.01, (math.log10(seconds) + 6) / 8))


def _speeds(report: Report) -> Markup:
    """Show what was measured, beside this machine's CPU and what the device can reach; nothing after a quick look."""
    rows = speed_rows(report)
    limits = html.bullets(": ".join(map(render, row)) for row in limit_rows(report))
    measured = html.table(rows, SPEED_HEADINGS) + html.details(say("The limits"), limits)
    return html.section(say("How fast it is"), measured) if rows else html.NOTHING


def _cells(row: CheckRow) -> tuple[Text, ...]:
    return (row.title, row.result, row.first, row.later, row.error, row.detail)
