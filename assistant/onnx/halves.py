"""Which operators may compute in FP16, and which of their inputs and outputs then are FP16."""

from __future__ import annotations

from assistant.model.record import Record
from assistant.onnx.values import FLOAT, NO_TENSOR, UNKNOWN, Step, Value, attribute


class Slots(Record, frozen=True):
    """The inputs and outputs, by position, that become FP16 when a step does."""

    inputs: frozenset[int] = frozenset()
    outputs: frozenset[int] = frozenset()


# They take a value in whatever type it has: converting it for them would be a Cast for nothing.
FOLLOWS = frozenset({"Cast", "Shape", "Size"})
# Their output's type is an attribute of their own, which the conversion writes.
MAKES = frozenset({"Cast", "ConstantOfShape"})
# They move values and change none.
MOVES = frozenset(
    {
        "Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Reshape",
        "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze",
    }
)  # fmt: skip
# Why an operator stays FP32 whatever it is given: a key of the reasons in `conversion`.
KEPT = {
    "AffineGrid": "coordinates",
    "BitCast": "bits",
    "DequantizeLinear": "quantised",
    "IsInf": "infinite",
    "MeanVarianceNormalization": "sums",
    "QuantizeLinear": "quantised",
    "Range": "range",
}
# ONNX Runtime's own operators that take and make one type, and have an FP16 kernel in DirectML.
RUNTIME_OPS = frozenset(
    {
        "Attention", "BiasAdd", "BiasGelu", "BiasSplitGelu", "FastGelu", "FusedMatMul", "FusedMatMulActivation", "Gelu",
        "GroupNorm", "MultiHeadAttention", "NhwcConv", "QuickGelu", "RotaryEmbedding", "SkipLayerNormalization",
        "SkipSimplifiedLayerNormalization",
    }
)  # fmt: skip


def kept_op(step: Step) -> str:  # noqa: PLR0911 - a reason each
    """Give the reason for which a step stays FP32 whatever its values are; "" where nothing stands against FP16."""
    if any(value is not None and value.kind == NO_TENSOR for value in (*step.inputs, *step.outputs)):
        return "sequence"
    if step.inner:
        return "subgraph"
    if step.op.startswith("ai.onnx.ml."):
        return "threshold"
    if step.op in KEPT:
        return KEPT[step.op]
    if step.op.startswith("Scatter") and attribute(step.node, "reduction", b"none") != b"none":
        return "scatter"
    if step.op == "BatchNormalization" and any(value is not None for value in step.outputs[1:]):
        return "outputs"  # which training updates
    if step.inputs and _dequantized(step):
        return "quantised"
    return ""


def slots(step: Step) -> Slots:
    """Tell which inputs and outputs become FP16; none where the operator's definition does not allow it."""
    if step.op in MAKES:
        return Slots(outputs=frozenset({0} if _kind(step.outputs[0]) == FLOAT else ()))
    if step.op in FOLLOWS:
        return Slots()
    form = step.signature
    if form is None:
        return _runtime_slots(step)
    taken = [(index, form.input(index), value.kind) for index, value in enumerate(step.inputs) if value is not None]
    made = [(index, form.output(index), value.kind) for index, value in enumerate(step.outputs) if value is not None]
    bound = {name for _index, name, kind in taken if kind == FLOAT} & form.halves
    bound -= {name for _index, name, kind in taken if kind == UNKNOWN}
    return Slots(
        inputs=frozenset(index for index, name, _kind in taken if name in bound),
        outputs=frozenset(index for index, name, kind in made if name in bound and kind == FLOAT),
    )


def _runtime_slots(step: Step) -> Slots:
    known = step.node.domain == "com.microsoft" and step.node.op_type in RUNTIME_OPS
    if not known or any(_kind(value) == UNKNOWN for value in step.inputs if value is not None) or len(step.outputs) > 1:
        return Slots()
    halves = [
        frozenset(i for i, value in enumerate(side) if _kind(value) == FLOAT) for side in (step.inputs, step.outputs)
    ]
    return Slots(inputs=halves[0], outputs=halves[1])


def _kind(value: Value | None) -> int:
    return UNKNOWN if value is None else value.kind


def _dequantized(step: Step) -> bool:
    """Tell whether a step takes an activation, not a weight, that was quantised: runtimes fuse it as it stands."""
    for value in step.inputs:
        maker = value.maker if value is not None else None
        source = maker.inputs[0] if maker is not None and maker.op == "DequantizeLinear" else None
        if source is not None and source.tensor is None and source.maker is not None:
            return True
    return False
