"""The verification: every check with its result, and how fast the device is."""

from __future__ import annotations

from assistant.i18n import Text, render, say
from assistant.markup import Markup, tag
from assistant.model.checks import check_kind, check_title
from assistant.model.finding import Severity
from assistant.model.report import Report, Status, status_word, verdict
from assistant.views import CHECK_HEADINGS, CheckRow, check_rows, folded, speed_lines
from assistant.wizard import html

SIGNS = {Status.PASSED: "✓", Status.SLOW: "!", Status.SKIPPED: "–"}
ICONS = {Status.PASSED: "ok", Status.SLOW: "warning", Status.SKIPPED: "info", Status.UNSUPPORTED: "no"}


def draw_checks(report: Report) -> Markup:
    """Show the verdict, each check with its result, the times, and the speeds that were measured."""
    severity = Severity.OK if report.passed else Severity.WARNING if report.usable else Severity.ERROR
    judged, report = verdict(report), folded(report)
    signed = (
        row._replace(result=f"{SIGNS.get(check.status, '✗')} {render(row.result)}")
        for check, row in zip(report.checks, check_rows(report), strict=True)
    )
    every = html.table(map(_cells, signed), _cells(CHECK_HEADINGS))
    speeds = html.section(say("How fast it is"), html.bullets(speed_lines(report)))
    return html.note(severity, judged) + _matrix(report) + speeds + html.details(say("Times and errors"), every)


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


def _cells(row: CheckRow) -> tuple[Text, ...]:
    return (row.title, row.result, row.first, row.later, row.error, row.detail)
