"""What comes of the work on a model, and the rows that shells draw of it; neither NumPy nor onnx is imported here."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Literal

from assistant.api import Message, Record, Text, _
from assistant.api.records import Finding, format_duration

Provider = Literal["dml", "cpu"]
TITLES: dict[Provider, Text] = {"dml": "DirectML", "cpu": _("ONNX Runtime's CPU provider")}
MOST_NAMED = 4  # operations in one row of changes
CHECK_SECONDS, CONVERT_SECONDS, TRY_SECONDS = 600.0, 3600.0, 300.0  # how long each may take unless the user says


class Placed(Record, frozen=True):
    """Where a node runs: "dml", "cpu" or "none"; `why` is empty where nothing needs saying."""

    name: str
    op: str
    device: str
    why: Text


class Checked(Record, frozen=True):
    """The answer for one provider: "dml" or "cpu"."""

    provider: Provider
    nodes: tuple[Placed, ...]
    findings: tuple[Finding, ...]
    verdict: Message


class OperatorRow(Record, frozen=True):
    """How the nodes of one operator are placed, and why not all on the device."""

    op: str
    device: int
    cpu: int
    nowhere: int
    why: Text


def operator_table(answer: Checked) -> tuple[tuple[Text, ...], list[tuple[Text, ...]]]:
    """Return headings and rows of `operator_rows`; the CPU's own provider has no column of what falls to it."""
    beside = answer.provider != "cpu"
    rows = [
        (row.op, *(str(count or "") for count in (row.device, *[row.cpu] * beside, row.nowhere)), row.why)
        for row in operator_rows(answer)
    ]
    return (_("Operator"), "DirectML" if beside else "CPU", *["CPU"] * beside, _("Nowhere"), _("Why")), rows


def operator_rows(answer: Checked) -> list[OperatorRow]:
    """Count the nodes of each operator by place; those with the most nodes off the device come first."""
    places: dict[str, Counter[str]] = {}
    reasons: dict[str, Text] = {}
    for node in answer.nodes:
        if node.op == "Constant" and node.device == answer.provider:
            continue
        places.setdefault(node.op, Counter())[node.device] += 1
        if node.device != answer.provider:
            reasons.setdefault(node.op, node.why)
    rows = [
        OperatorRow(
            op=op,
            device=counts[answer.provider],
            cpu=counts["cpu"] if answer.provider != "cpu" else 0,
            nowhere=counts["none"],
            why=reasons.get(op, ""),
        )
        for op, counts in places.items()
    ]
    return sorted(rows, key=lambda row: (-row.nowhere, -row.cpu, -row.device, row.op))


class Kept(Record, frozen=True):
    """An operation that stays FP32; `why` is a key that the conversion puts into a sentence."""

    node: str
    op: str
    why: str


class Fp16Summary(Record, frozen=True):
    """How a conversion went: how many operations compute in FP16, which stay FP32, whether runs have proved it."""

    converted: int
    kept: tuple[Kept, ...]
    proved: bool
    obstacle: Literal["", "missing", "size", "run", "random"] = ""  # to a proof


def default_output(source: Path) -> Path:
    """Return where the result of a conversion lies unless another place is asked for."""
    return source.with_name(f"{source.stem}.dml.onnx")


class Change(Record, frozen=True):
    """One change, or one thing left as it was and why: `kind` is its sort, `what` an operation, `why` a sentence."""

    kind: Literal["ir", "opset", "structure", "fp16", "kept"]
    what: Text
    why: Text = ""


class Conversion(Record, frozen=True, omit_defaults=False):
    """How the conversion of a file went; `loaded` is whether ONNX Runtime loads the result with its own settings.

    It is None where there is no ONNX Runtime, or a limit ended the attempt.
    """

    source: str
    output: str
    changes: tuple[Change, ...]
    half: Fp16Summary | None
    opset: int
    ir_version: int
    seconds: float
    loaded: bool | None = None


KINDS = {
    "ir": _("IR version"),
    "opset": _("opset"),
    "structure": _("structure"),
    "fp16": _("FP16"),
    "kept": _("stays FP32"),
}
HEADINGS_OF_CHANGES = (_("Change"), _("What"), _("Why"))


def rows_of_changes(done: Conversion) -> list[tuple[Text, ...]]:
    """Return a table's rows: each change with its reason; operations that stay FP32 for one reason share a row."""
    rows: list[tuple[Text, ...]] = [
        (KINDS[change.kind], change.what, change.why) for change in done.changes if change.kind != "kept"
    ]
    kept = [change for change in done.changes if change.kind == "kept"]
    for why in dict.fromkeys(change.why for change in kept):
        same = [change.what for change in kept if change.why == why]
        names = Message("{names} …" if len(same) > MOST_NAMED else "{names}").format(names=tuple(same[:MOST_NAMED]))
        rows.append((KINDS["kept"], names, why))
    return rows


class Run(Record, frozen=True):
    """One child's run: `placement` counts operators by provider; `error` is what the runtime said, "" when it ran.

    `died` says that the runtime crashed.
    """

    provider: str = ""
    load_seconds: float = 0.0
    first_seconds: float = 0.0
    seconds: float = 0.0
    peak_bytes: int = 0
    placement: dict[str, dict[str, int]] = {}
    error: Text = ""
    died: bool = False


class Agreement(Record, frozen=True):
    """How an output compares with the reference.

    `error` is relative to the largest number; `top` is the share of rows whose largest number stands in the same
    place. What means nothing for an output is None.
    """

    output: str
    agrees: bool
    error: float | None = None
    cosine: float | None = None
    top: float | None = None
    note: Text = ""


class Attempt(Record, frozen=True, omit_defaults=False):
    """The whole answer; `strict` is the comparison where every node rounds, empty where it could not be made."""

    model: str
    reference: str
    wanted: str
    reference_run: Run
    run: Run
    agreement: tuple[Agreement, ...]
    strict: tuple[Agreement, ...]
    notes: tuple[Message, ...]
    verdict: Message
    passed: bool


HEADINGS_OF_RUNS = (_("Run"), _("Provider"), _("Load"), _("First run"), _("Run again"), _("Memory"))


def rows_of_runs(answer: Attempt) -> list[tuple[Text, ...]]:
    """Return a table's rows: where each model ran, its times and memory."""
    found = ((_("FP32 on the CPU"), answer.reference_run), (_("the model"), answer.run))
    return [
        (
            name,
            _placed(run),
            format_duration(run.load_seconds),
            format_duration(run.first_seconds),
            format_duration(run.seconds),
            f"{run.peak_bytes / 2**20:.0f} MB",
        )
        for name, run in found
        if not run.error
    ]


HEADINGS_OF_AGREEMENT = (_("Output"), _("Result"), _("Error"), _("Cosine"), _("Top-1 match"))


def rows_of_agreement(answer: Attempt) -> list[tuple[Text, ...]]:
    """Return a table's rows: how each output compares, as run and where every node rounds."""
    parts = ((answer.agreement, ""), (answer.strict, _("every node rounded")))
    return [
        (
            Message("{output} ({kind})").format(output=one.output, kind=kind) if kind else one.output,
            one.note or (_("agrees") if one.agrees else _("differs")),
            "" if one.error is None else f"{one.error:.1e}",
            "" if one.cosine is None else f"{one.cosine:.6f}",
            "" if one.top is None else f"{one.top:.0%}",
        )
        for part, kind in parts
        for one in part
    ]


def _placed(run: Run) -> str:
    counts = {name.removesuffix("ExecutionProvider"): sum(ops.values()) for name, ops in run.placement.items()}
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or run.provider
