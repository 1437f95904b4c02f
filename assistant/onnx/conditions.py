"""What kernels ask of a node beside its types, by the name that the kernel tables give the condition.

They are the `Query…` functions of the DirectML provider's operators, such as `QueryPad` in DmlOperatorPadding.cpp:
https://github.com/microsoft/onnxruntime/tree/main/onnxruntime/core/providers/dml/DmlExecutionProvider/src/Operators
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from assistant.i18n import Message, Text, _
from assistant.onnx.operators import Kernel
from assistant.onnx.program import Step, Value, attribute

Rule = tuple[Callable[[Step], bool], Message]  # what refuses a node, and the sentence that says so

MOST_EINSUM_OPERANDS = 2
MOST_SLICE_INPUTS = 5
PACKED_BITS = {4, 8}


def refusal(step: Step, kernel: Kernel) -> Text:
    """Return why a kernel refuses a node whose types it takes; "" where nothing stands against it."""
    rules = CONDITIONS[kernel.query] if kernel.query else []
    return next((why for refuses, why in rules if refuses(step)), "")


def _flag(name: str) -> Callable[[Step], bool]:
    """Return a test for an integer attribute that is neither missing nor 0."""
    return lambda step: bool(_integer(step, name))


def _integer(step: Step, name: str, default: int = 0) -> int:
    found = attribute(step.node, name, default)
    return found if isinstance(found, int) else default


def _is_given(values: Sequence[Value | None], *indexes: int) -> bool:
    """Return whether any of these arguments is there."""
    return any(index < len(values) and values[index] is not None for index in indexes)


def _einsum(step: Step) -> bool:
    equation = attribute(step.node, "equation", b"")
    return len(step.inputs) > MOST_EINSUM_OPERANDS or (isinstance(equation, bytes) and b"..." in equation)


def _attention(step: Step) -> bool:
    flags = ("unidirectional", "do_rotary", "past_present_share_buffer")
    is_given = _is_given(step.inputs, 4, 6) or _is_given(step.outputs, 1)
    return is_given or any(_integer(step, flag) != 0 for flag in flags)


def _quantized_attention(step: Step) -> bool:
    is_causal = _integer(step, "unidirectional") != 0 and _is_given(step.inputs, 5)
    return is_causal or any(_integer(step, flag) != 0 for flag in ("do_rotary", "past_present_share_buffer"))


def _packed_weights(step: Step) -> bool:
    return (
        _integer(step, "bits", 4) not in PACKED_BITS
        or _integer(step, "K") % (_integer(step, "block_size", 1) or 1) != 0
    )


def _negative_pads(step: Step) -> bool:
    pads = attribute(step.node, "pads")
    return isinstance(pads, list) and min(pads, default=0) < 0


def _mixed_types(step: Step) -> bool:
    return len({value.kind for value in step.inputs if value is not None}) > 1


def _lacks_zero_points(step: Step) -> bool:
    return not (_is_given(step.inputs, 4) and _is_given(step.inputs, 2))


def _extrapolates(step: Step) -> bool:
    return bool(_integer(step, "exclude_outside")) or attribute(step.node, "extrapolation_value", 0.0) != 0.0


def _is_cubic(step: Step) -> bool:
    return attribute(step.node, "mode") == b"cubic"


def _reduces(step: Step) -> bool:
    return attribute(step.node, "reduction", b"none") != b"none"


_TRAINING = _("DirectML normalises batches for inference only: export the model in evaluation mode.")
_ONE_OUTPUT = [(lambda step: _is_given(step.outputs, 1, 2), _("DirectML's layer normalisation has one output only."))]
CONDITIONS: dict[str, list[Rule]] = {
    "Attention": [(_attention, _("DirectML's Attention takes neither a past nor a causal or rotary form."))],
    "BatchNormalization": [
        (_flag("training_mode"), _TRAINING),
        (_mixed_types, _("DirectML's BatchNormalization takes five inputs of one type.")),
    ],
    "EinSum": [(_einsum, _("DirectML's Einsum takes at most two operands, and no ellipsis."))],
    "LayerNormalization": _ONE_OUTPUT,
    "MatMulNBits": [
        (_packed_weights, _("DirectML multiplies 4-bit and 8-bit weights only, and only in whole blocks."))
    ],
    "MaxPool": [(_flag("storage_order"), _("DirectML's MaxPool counts in row-major order only."))],
    "Pad": [(_negative_pads, _("DirectML's Pad takes no negative pads."))],
    "QAttention": [
        (_quantized_attention, _("DirectML's QAttention takes neither a causal form with a mask nor a rotary form."))
    ],
    "QLinearSigmoid": [(_lacks_zero_points, _("DirectML's QLinearSigmoid needs its zero points."))],
    "RecurrentNeuralNetwork": [(_flag("layout"), _("Recurrent operators run with layout 0 only."))],
    "Resize": [
        (_is_cubic, _("DirectML has no cubic interpolation.")),
        (_extrapolates, _("DirectML's Resize supports neither exclude_outside nor an extrapolation value.")),
    ],
    "Scatter": [(_reduces, _("DirectML scatters only without a reduction."))],
    "SkipLayerNormalization": _ONE_OUTPUT,
    "Slice": [(lambda step: len(step.inputs) > MOST_SLICE_INPUTS, _("DirectML's Slice takes at most five inputs."))],
}
