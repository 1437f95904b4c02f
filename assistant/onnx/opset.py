"""Brings a model's opset and IR version down to what DirectML's kernels match, operator by operator."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import onnx
import onnx.inliner
from onnx import ModelProto, NodeProto, TypeProto, helper

from assistant.i18n import Message, verbatim
from assistant.model.errors import WorkFailed
from assistant.onnx.graph import KNOWN_IR, opsets
from assistant.onnx.operators import definition, described, make_call, tensor_type
from assistant.onnx.values import Program, Step, Value, attribute, constant_input, program

LAST_MATCHED = 21  # DirectML's newest kernel rows
WITHOUT_SCATTER, WITH_SCATTER = (19, 18, 17, 21), (17, 16, 19, 18, 21)
SCATTERS = {"ScatterElements", "ScatterND"}  # DirectML has them up to opset 17
LEAVES_AT_20 = {"Erf", "Gelu", "GridSample"}  # from opset 20 on they, or what they are fused to, leave the device
EXPANDED = "assistant.expanded"
# Their meaning changed, not their types alone: they are replaced by their definition, or refused.
CHANGED = {"DFT", "GroupNormalization"}
MODES = {b"linear": "bilinear", b"cubic": "bicubic"}


class CannotLower(WorkFailed):
    """An operator has no form in the older opset."""


def best_opsets(model: ModelProto) -> tuple[int, ...]:
    """Name the opsets that suit DirectML best, best first; none where the model's own does."""
    current = opsets(model).get("", 0)
    ops = {node.op_type for node in model.graph.node}
    scatters = bool(ops & SCATTERS)
    fits = current <= (17 if scatters else 19 if ops & LEAVES_AT_20 else LAST_MATCHED)
    return () if fits else tuple(one for one in (WITH_SCATTER if scatters else WITHOUT_SCATTER) if one < current)


def lowered(model: ModelProto, target: int) -> tuple[ModelProto, list[str]]:
    """Rewrite a model for an older opset and say what was rewritten; raise `CannotLower` where an operator resists."""
    told: list[str] = []
    source = program(model)
    while calls := _expanded(source, target):
        told += calls
        source = program(onnx.inliner.inline_local_functions(source.filled()))
    for step in list(source.steps()):
        change = _lower(step, target)
        told += [change] if change else []
    result = source.filled()
    result.ir_version = min(result.ir_version, KNOWN_IR)
    for entry in result.opset_import:
        if entry.domain in {"", "ai.onnx"}:
            entry.version = target
    return result, told


def _expanded(source: Program, target: int) -> list[str]:
    """Put the definition of operators newer than `target` in place of them, as local functions to be inlined."""
    current = opsets(source.model)[""]
    told = []
    for number, step in enumerate(source.steps()):
        if step.node.domain not in {"", "ai.onnx"}:
            continue
        now, then = described("", step.op, current), described("", step.op, target)
        if now is None or (then is not None and (step.op not in CHANGED or now.since_version == then.since_version)):
            continue
        body = definition(step.node, now, current, [_type_of(value) for value in step.inputs])
        if body is None:
            raise CannotLower(verbatim(step.op))
        told.append(f"{step.op} {step.node.name}".strip())
        make_call(step.node, now, body, (EXPANDED, f"{step.node.op_type}_{number}"))
        source.model.functions.append(body)
    if told and EXPANDED not in opsets(source.model):
        source.model.opset_import.add(domain=EXPANDED, version=1)
    return told


def _type_of(value: Value | None) -> TypeProto:
    return helper.make_tensor_type_proto(value.kind, value.shape) if value and value.kind > 0 else TypeProto()


def _lower(step: Step, target: int) -> str:
    """Give one node the form of an older opset; say what changed, "" where nothing had to."""
    current = step.signature
    then = described("", step.op, target) if current is not None and step.node.domain in {"", "ai.onnx"} else None
    if then is None or current is None or then.since_version == current.since:
        return ""
    adapted = ADAPTERS[step.op](step) if step.op in ADAPTERS and _reshaped(step, then) else ""
    _drop_defaults(step, then)
    reason = next(_obstacles(step, then), None)
    if reason is not None:
        raise CannotLower(Message("{op}: {reason}").format(op=step.op, reason=reason))
    return adapted


def _reshaped(step: Step, then: onnx.defs.OpSchema) -> bool:
    """Tell whether the older form takes other inputs or attributes, or is one of those whose modes were renamed."""
    lost = [entry.name for entry in step.node.attribute if entry.name not in then.attributes]
    return bool(lost) or len(step.node.input) > then.max_input or step.op == "GridSample"


def _drop_defaults(step: Step, then: onnx.defs.OpSchema) -> None:
    """Remove attributes that the older form lacks where they say what it does anyway."""
    now = onnx.defs.get_schema(step.node.op_type, step.signature.since if step.signature else 1, "")
    for entry in list(step.node.attribute):
        known = now.attributes.get(entry.name)
        if entry.name not in then.attributes and known is not None:
            default = helper.get_attribute_value(known.default_value) if known.default_value.name else None
            if helper.get_attribute_value(entry) == default:
                step.node.attribute.remove(entry)


def _obstacles(step: Step, then: onnx.defs.OpSchema) -> Iterator[str]:
    yield from (entry.name for entry in step.node.attribute if entry.name not in then.attributes)
    if len(step.node.input) > then.max_input or len(step.node.output) > then.max_output:
        yield "inputs"
    if step.op == "AveragePool" and attribute(step.node, "ceil_mode", 0):
        yield "ceil_mode"
    allowed = {one.type_param_str: one.allowed_type_strs for one in then.type_constraints}
    for index, value in enumerate(step.inputs):
        if value is None or value.kind <= 0 or not then.inputs:
            continue
        formal = then.inputs[min(index, len(then.inputs) - 1)].type_str
        name = tensor_type(value.kind)
        if formal in allowed and name not in allowed[formal]:
            yield name


def _axes_to_attribute(step: Step) -> str:
    """Move a reduction's axes from an input into an attribute, where they stood before opset 18."""
    axes = constant_input(step, 1)
    if axes is None:
        return ""
    step.node.attribute.append(helper.make_attribute("axes", axes))
    del step.node.input[1:]
    return f"{step.op}: axes"


def _even_split(step: Step) -> str:
    """Drop the number of parts, which the outputs tell, where the parts are equal."""
    first, axis, parts = step.inputs[0], attribute(step.node, "axis", 0), attribute(step.node, "num_outputs")
    if isinstance(axis, int) and isinstance(parts, int) and first is not None and first.shape is not None:
        length = first.shape[axis]
        if length is not None and length % parts == 0:
            _remove(step.node, "num_outputs")
            return f"{step.op}: num_outputs"
    return ""


def _old_modes(step: Step) -> str:
    mode = attribute(step.node, "mode")
    if not isinstance(mode, bytes) or mode not in MODES:
        return ""
    _remove(step.node, "mode")
    step.node.attribute.append(helper.make_attribute("mode", MODES[mode]))
    return f"{step.op}: mode"


def _remove(node: NodeProto, name: str) -> None:
    node.attribute.remove(next(entry for entry in node.attribute if entry.name == name))


REDUCTIONS = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
    "ReduceSumSquare",
)  # fmt: skip
ADAPTERS: dict[str, Callable[[Step], str]] = {
    "GridSample": _old_modes,
    "Split": _even_split,
    **dict.fromkeys(REDUCTIONS, _axes_to_attribute),
}
