"""Which operators may compute in FP16, and which of their inputs and outputs then are FP16."""

from __future__ import annotations

import tomllib
from importlib.resources import files

from assistant.model.record import Record, from_plain
from assistant.onnx.program import FLOAT, NO_TENSOR, UNKNOWN, Step, Value, attribute

Names = frozenset[str]


class Operators(Record, frozen=True):
    """Sets of operators by what they do with numbers; `data/fp16.toml` says what each set means."""

    as_of: str
    moves: Names
    reorders: Names
    follows: Names
    chooses_type: Names
    arithmetic: Names
    runtime: Names
    carries_large: Names
    carries_tiny: Names
    averages: Names
    adds: Names
    keeps_size: Names
    bounded: Names
    periodic: Names
    linear: Names
    powers: Names
    gathers_powers: Names
    outer: Names
    weighted: Names
    sums_squares: Names
    sums: Names
    stays_fp32: dict[str, str]
    divides_by: dict[str, int]


_TABLE = (files(__package__) / "data" / "fp16.toml").read_text(encoding="utf-8")
OPERATORS = from_plain(tomllib.loads(_TABLE), Operators, "fp16.toml")


class Slots(Record, frozen=True):
    """The inputs and outputs, by position, that become FP16 when a step does."""

    inputs: frozenset[int] = frozenset()
    outputs: frozenset[int] = frozenset()


def reason_to_keep(step: Step) -> str:
    """Return the key of the reason for which a step stays FP32 whatever its values are; "" where there is none."""
    values = (*step.inputs, *step.outputs)
    reasons = (
        ("sequence", any(value is not None and value.kind == NO_TENSOR for value in values)),
        ("subgraph", bool(step.inner)),
        ("threshold", step.op.startswith("ai.onnx.ml.")),
        (OPERATORS.stays_fp32.get(step.op, ""), step.op in OPERATORS.stays_fp32),
        ("scatter", step.op.startswith("Scatter") and attribute(step.node, "reduction", b"none") != b"none"),
        # The running mean and variance, which training updates.
        ("outputs", step.op == "BatchNormalization" and any(value is not None for value in step.outputs[1:])),
        ("quantised", any(map(_is_dequantized, step.inputs))),
    )
    return next((why for why, holds in reasons if holds), "")


def slots(step: Step) -> Slots:
    """Return which inputs and outputs become FP16; none where the operator's definition does not allow it."""
    if step.op in OPERATORS.chooses_type:
        return Slots(outputs=frozenset({0} if _kind(step.outputs[0]) == FLOAT else ()))
    if step.op in OPERATORS.follows:
        return Slots()
    form = step.signature
    if form is None:
        return _runtime_slots(step)
    taken = [(index, form.input(index), value.kind) for index, value in enumerate(step.inputs) if value is not None]
    made = [(index, form.output(index), value.kind) for index, value in enumerate(step.outputs) if value is not None]
    bound = {name for _index, name, kind in taken if kind == FLOAT} & form.halves
    bound -= {name for _index, name, kind in taken if kind == UNKNOWN}
    absent = {name for _input, name in form.inputs} - {name for _index, name, _kind in taken}
    if any(kind == FLOAT and name in absent for _index, name, kind in made):
        return (
            Slots()
        )  # LinearAttention without a state to start from: runtimes disagree on the type of the one it makes
    return Slots(
        inputs=frozenset(index for index, name, _kind in taken if name in bound),
        outputs=frozenset(index for index, name, kind in made if name in bound and kind == FLOAT),
    )


def _runtime_slots(step: Step) -> Slots:
    """Return the slots of an operator that ONNX Runtime defines, ONNX does not, and `data/fp16.toml` lists."""
    known = step.node.domain == "com.microsoft" and step.node.op_type in OPERATORS.runtime
    if not known or any(_kind(value) == UNKNOWN for value in step.inputs if value is not None) or len(step.outputs) > 1:
        return Slots()
    inputs, outputs = (
        frozenset(index for index, value in enumerate(side) if _kind(value) == FLOAT)
        for side in (step.inputs, step.outputs)
    )
    return Slots(inputs=inputs, outputs=outputs)


def _kind(value: Value | None) -> int:
    return UNKNOWN if value is None else value.kind


def _is_dequantized(value: Value | None) -> bool:
    """Return whether a value is an activation, no weight, that was quantised: runtimes fuse its taker as it stands."""
    maker = value.maker if value is not None else None
    source = maker.inputs[0] if maker is not None and maker.op == "DequantizeLinear" else None
    return source is not None and source.tensor is None and source.maker is not None
