"""How the terminal draws what runs where in an ONNX model."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from assistant.cli.console import console
from assistant.cli.draw import draw_findings, draw_rows
from assistant.i18n import render, say
from assistant.model.report import duration
from assistant.onnx.answers import (
    HEADINGS_OF_AGREEMENT,
    HEADINGS_OF_CHANGES,
    HEADINGS_OF_RUNS,
    Attempt,
    Checked,
    Conversion,
    operator_rows,
    operator_table,
    rows_of_agreement,
    rows_of_changes,
    rows_of_runs,
)


def draw_check(answer: Checked) -> None:
    """Print the verdict, a row for each operator, and what to do."""
    console.print(Text(render(answer.verdict), style="bold"))
    if answer.npu:
        console.print(Text(render(answer.npu)))
    table = Table(box=None, padding=(0, 2))
    headings, rows = operator_table(answer)
    for place, heading in enumerate(headings):
        table.add_column(render(heading), justify="right" if 0 < place < len(headings) - 1 else "left")
    for counts, (operator, *cells) in zip(operator_rows(answer), rows, strict=True):
        style = "red" if counts.nowhere else "yellow" if counts.cpu else ""
        table.add_row(Text(render(operator), style=style), *(Text(render(cell)) for cell in cells))
    console.print(table)
    draw_findings(answer.findings)


def draw_conversion(done: Conversion) -> None:
    """Print what was changed and where the result is."""
    draw_rows(HEADINGS_OF_CHANGES, rows_of_changes(done))
    text = say("Written: {file}, opset {opset}, in {seconds}.")
    console.print(Text(text.format(file=done.output, opset=done.opset, seconds=duration(done.seconds)), style="bold"))


def draw_attempt(answer: Attempt) -> None:
    """Print the verdict, the two runs, and how each output compares."""
    if answer.passed:  # a failure is told at the end
        console.print(Text(render(answer.verdict), style="bold green"))
    for note in answer.notes:
        console.print(Text(render(note)))
    draw_rows(HEADINGS_OF_RUNS, rows_of_runs(answer))
    draw_rows(HEADINGS_OF_AGREEMENT, rows_of_agreement(answer))
