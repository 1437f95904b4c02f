"""What the terminal shows of ONNX models: their check, their conversion and their trial."""

from __future__ import annotations

from rich.text import Text

from assistant.api import render, say
from assistant.api.drawing import console, draw_findings, draw_rows
from assistant.api.records import format_duration
from assistant_addons.onnx.answers import (
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
    headings, rows = operator_table(answer)
    styles = ("red" if counts.nowhere else "yellow" if counts.cpu else "" for counts in operator_rows(answer))
    coloured = ((Text(render(first), style=style), *rest) for style, (first, *rest) in zip(styles, rows, strict=True))
    draw_rows(headings, coloured, numbers=True)
    draw_findings(answer.findings)


def draw_conversion(done: Conversion) -> None:
    """Print what was changed and where the result is."""
    draw_rows(HEADINGS_OF_CHANGES, rows_of_changes(done))
    if done.loaded is False:
        console.print(Text(say("ONNX Runtime loads neither the result nor the original on the CPU."), style="yellow"))
    text = say("Written: {file}, opset {opset}, in {seconds}.")
    console.print(
        Text(text.format(file=done.output, opset=done.opset, seconds=format_duration(done.seconds)), style="bold")
    )


def draw_attempt(answer: Attempt) -> None:
    """Print the verdict, the two runs, and how each output compares."""
    if answer.passed:  # a failure ends the command with its sentence
        console.print(Text(render(answer.verdict), style="bold green"))
    for note in answer.notes:
        console.print(Text(render(note)))
    draw_rows(HEADINGS_OF_RUNS, rows_of_runs(answer))
    draw_rows(HEADINGS_OF_AGREEMENT, rows_of_agreement(answer))
