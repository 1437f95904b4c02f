"""How the terminal draws what runs where in an ONNX model."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from assistant.cli.console import console
from assistant.cli.draw import draw_findings, draw_rows
from assistant.i18n import render, say
from assistant.model.report import duration
from assistant.onnx.answers import (
    Attempt,
    Checked,
    Conversion,
    operator_rows,
    rows_of_agreement,
    rows_of_changes,
    rows_of_runs,
)

__all__ = ["draw_attempt", "draw_check", "draw_conversion"]


def draw_check(answer: Checked) -> None:
    """Print the verdict, a row for each operator, and what to do."""
    console.print(Text(render(answer.verdict), style="bold"))
    if answer.npu:
        console.print(Text(render(answer.npu)))
    table = Table(box=None, padding=(0, 2))
    device = {"dml": "DirectML", "cpu": "CPU"}[answer.provider]
    headings = [say("Operator"), device, *(["CPU"] if answer.provider != "cpu" else []), say("Nowhere"), say("Why")]
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if 0 < place < len(headings) - 1 else "left")
    for row in operator_rows(answer):
        counts = [row.device, *([row.cpu] if answer.provider != "cpu" else []), row.nowhere]
        style = "red" if row.nowhere else "yellow" if row.cpu else ""
        table.add_row(Text(row.op, style=style), *(str(count or "") for count in counts), Text(render(row.why)))
    console.print(table)
    draw_findings(answer.findings)


def draw_conversion(done: Conversion) -> None:
    """Print what was changed and where the result is."""
    draw_rows((say("Change"), say("What"), say("Why")), rows_of_changes(done))
    text = say("Written: {file}, opset {opset}, in {seconds}.")
    console.print(Text(text.format(file=done.output, opset=done.opset, seconds=duration(done.seconds)), style="bold"))


def draw_attempt(answer: Attempt) -> None:
    """Print the verdict, the two runs, and how each output compares."""
    if answer.passed:  # a failure is told at the end
        console.print(Text(render(answer.verdict), style="bold green"))
    for note in answer.notes:
        console.print(Text(render(note)))
    draw_rows(
        (say("Run"), say("Provider"), say("Load"), say("First run"), say("Run again"), say("Memory")),
        rows_of_runs(answer),
    )
    headings = (say("Output"), say("Result"), say("Error"), say("Cosine"), say("Same largest"))
    draw_rows(headings, rows_of_agreement(answer))
