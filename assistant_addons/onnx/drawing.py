"""What shells show of the work on a model: rows of tables, the bar of what runs where, the terminal's pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import singledispatch
from glob import escape
from pathlib import Path

from rich.text import Text as Line

from assistant.api import Message, Text, _, render, say
from assistant.api.journey import console, draw_findings, draw_rows
from assistant.api.records import format_duration
from assistant_addons.onnx.answers import SHAPES, Agreement, Attempt, Checked, Conversion, Run

MOST_NAMED = 4  # operations in one row of changes
BAR = 40  # characters
PLACES: dict[str, Text] = {"dml": "DirectML", "cpu": "CPU", "none": _("nowhere")}
COLOURS = {"dml": "green", "cpu": "yellow", "none": "red"}  # on the device that was asked for a node is green
KINDS = {
    "ir": _("IR version"),
    "opset": _("opset"),
    "structure": _("structure"),
    "fp16": _("FP16"),
    "kept": _("stays FP32"),
}
HEADINGS_OF_CHANGES = (_("Change"), _("What"), _("Why"))
HEADINGS_OF_RUNS = (_("Run"), _("Provider"), _("Load"), _("First run"), _("Run again"))
HEADINGS_OF_AGREEMENT = (_("Output"), _("Result"), _("Error"))
Rows = list[tuple[Text, ...]]


def shares(answer: Checked) -> list[tuple[Text, int, str]]:
    """Return each place where nodes that compute run, with how many do and its colour; the device asked for first.

    Those that only compute shapes, on the CPU by choice, do not count.
    """
    reasons = ((node, getattr(node.why, "key", "")) for node in answer.nodes if node.op != "Constant")
    counts = Counter(node.device for node, key in reasons if key != SHAPES)
    order = (answer.provider, *(place for place in PLACES if place != answer.provider))
    colours = {**COLOURS, answer.provider: "green"}
    return [(PLACES[place], counts[place], colours[place]) for place in order if counts[place]]


def operator_table(answer: Checked) -> tuple[tuple[Text, ...], Rows]:
    """Return headings and rows: how the nodes of each operator are placed, and why not all on the device.

    Those with the most nodes off the device come first. The CPU's own provider has no column of what falls to it.
    """
    places: dict[str, Counter[str]] = {}
    reasons: dict[str, Text] = {}
    for node in answer.nodes:
        if node.op != "Constant" or node.device != answer.provider:
            places.setdefault(node.op, Counter())[node.device] += 1
            if node.device != answer.provider:
                reasons.setdefault(node.op, node.why)
    columns = [answer.provider, *["cpu"] * (answer.provider != "cpu"), "none"]
    order = sorted(places, key=lambda op: (*(-places[op][place] for place in reversed(columns)), op))
    rows = [(op, *(str(places[op][place] or "") for place in columns), reasons.get(op, "")) for op in order]
    return (_("Operator"), *(PLACES[place] for place in columns[:-1]), _("Nowhere"), _("Why")), rows


def rows_of_changes(done: Conversion) -> Rows:
    """Return a table's rows: each change with its reason; operations that stay FP32 for one reason share a row."""
    rows: Rows = [(KINDS[change.kind], change.what, change.why) for change in done.changes if change.kind != "kept"]
    kept = [change for change in done.changes if change.kind == "kept"]
    for why in dict.fromkeys(change.why for change in kept):
        same = [change.what for change in kept if change.why == why]
        names = Message("{names} …" if len(same) > MOST_NAMED else "{names}").format(names=tuple(same[:MOST_NAMED]))
        rows.append((KINDS["kept"], names, why))
    return rows


def size_line(done: Conversion) -> Message:
    """Return how large the model was and is, each with its weights in files beside it that begin with its name."""
    before, after = (
        sum(one.stat().st_size for one in file.parent.glob(f"{escape(file.name)}*") if ".log." not in one.name) / 1e6
        for file in (Path(done.source), Path(done.output))
    )
    return _("Size: {before} MB before, {after} MB after.", before=f"{before:.3g}", after=f"{after:.3g}")


def rows_of_runs(answer: Attempt) -> Rows:
    """Return a table's rows: where each model ran, its times and memory."""
    found = ((_("FP32 on the CPU"), answer.reference_run), (_("the model"), answer.run))
    return [
        (
            name,
            _placed(run),
            *map(format_duration, (run.load_seconds, run.first_seconds, run.seconds)),
        )
        for name, run in found
        if not run.error
    ]


def _placed(run: Run) -> str:
    counts = {name.removesuffix("ExecutionProvider"): sum(ops.values()) for name, ops in run.placement.items()}
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or run.provider


def rows_of_agreement(answer: Attempt) -> Rows:
    """Return a table's rows: how each output compares, as run and where every node rounds."""
    rounded = Message("{output} ({kind})")

    def row(name: Text, one: Agreement) -> tuple[Text, ...]:
        """Return the cells of one output; those without a meaning for it are empty."""
        error = "" if one.error is None else f"{one.error:.1e}"
        return (name, one.note or (_("agrees") if one.agrees else _("differs")), error)

    return [
        *(row(one.output, one) for one in answer.agreement),
        *(row(rounded.format(output=one.output, kind=_("every node rounded")), one) for one in answer.strict),
    ]


def share_bar(answer: Checked) -> str:
    """Return a bar in text: which share of the nodes runs where."""
    return bar_line(shares(answer)).plain


def bar_line(parts: Iterable[tuple[Text, int, str]]) -> Line:
    """Return a bar in colours, whose parts are also told apart by their signs, in any code page, and what they are."""
    parts = list(parts)
    total = sum(count for _name, count, _colour in parts) or 1
    line, words = Line(), Line()
    for (name, count, colour), block in zip(parts, "#-x", strict=False):
        line.append(block * max(1, round(BAR * count / total)), style=colour)
        words.append(f"  {block} {render(name)} {count} ({count / total:.0%})", style=colour)
    return line + words


@singledispatch
def draw(answer: object) -> None:
    """Print an answer in the form of its kind. Raises `TypeError` for any other."""
    raise TypeError(answer)


@draw.register
def _draw_check(answer: Checked) -> None:
    """Print the verdict, the bar of what runs where, a row for each operator, and what to do."""
    console.print(Line(render(answer.verdict), style="bold"))
    console.print(bar_line(shares(answer)))
    headings, rows = operator_table(answer)
    styles = ("red" if row[-2] else "yellow" if len(row) > 4 and row[2] else "" for row in rows)  # noqa: PLR2004
    coloured = ((Line(render(first), style=style), *rest) for style, (first, *rest) in zip(styles, rows, strict=True))
    draw_rows(headings, coloured, numbers=True)
    draw_findings(answer.findings)


@draw.register
def _draw_conversion(done: Conversion) -> None:
    """Print what was changed and where the result is."""
    draw_rows(HEADINGS_OF_CHANGES, rows_of_changes(done))
    if done.loaded is False:
        console.print(Line(say("ONNX Runtime loads neither the result nor the original on the CPU."), style="yellow"))
    text = say("Written: {file}, opset {opset}, in {seconds}.")
    text = text.format(file=done.output, opset=done.opset, seconds=format_duration(done.seconds))
    console.print(Line(text, style="bold"))
    console.print(Line(render(size_line(done))))


@draw.register
def _draw_attempt(answer: Attempt) -> None:
    """Print the verdict, the two runs, and how each output compares."""
    if answer.passed:  # a failure ends the command with its sentence
        console.print(Line(render(answer.verdict), style="bold green"))
    for note in answer.notes:
        console.print(Line(render(note)))
    draw_rows(HEADINGS_OF_RUNS, rows_of_runs(answer))
    draw_rows(HEADINGS_OF_AGREEMENT, rows_of_agreement(answer))
