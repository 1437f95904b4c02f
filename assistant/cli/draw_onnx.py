"""How the terminal draws what runs where in an ONNX model."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from assistant.cli.draw import console, draw_findings
from assistant.i18n import _
from assistant.onnx.examine import Checked, operator_rows

__all__ = ["draw_check"]


def draw_check(answer: Checked) -> None:
    """Print the verdict, a row for each operator, and what to do."""
    console.print(Text(answer.verdict, style="bold"))
    if answer.npu:
        console.print(Text(answer.npu))
    table = Table(box=None, padding=(0, 2))
    device = {"dml": "DirectML", "cpu": "CPU"}[answer.provider]
    headings = [_("Operator"), device, *(["CPU"] if answer.provider != "cpu" else []), _("Nowhere"), _("Why")]
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if 0 < place < len(headings) - 1 else "left")
    for row in operator_rows(answer):
        counts = [row.device, *([row.cpu] if answer.provider != "cpu" else []), row.nowhere]
        style = "red" if row.nowhere else "yellow" if row.cpu else ""
        table.add_row(Text(row.op, style=style), *(str(count or "") for count in counts), Text(row.why))
    console.print(table)
    draw_findings(answer.findings)
