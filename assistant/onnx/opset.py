"""Brings a model's opset and IR version down to what DirectML's kernels match, operator by operator."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import onnx
from onnx import ModelProto, NodeProto, TypeProto, helper

from assistant.i18n import Message, verbatim
from assistant.model.errors import WorkFailed
from assistant.onnx.graph import KNOWN_IR, opsets
from assistant.onnx.operators import definition, described, make_call, tensor_type
from assistant.onnx.program import Program, Step, attribute, constant_input, program

# The newest rows of data/dml.json are for opset 21; those of ScatterElements and ScatterND match up to opset 17.
LAST_MATCHED = 21
WITHOUT_SCATTER, WITH_SCATTER = (19, 18, 17, 21), (17, 16, 19, 18, 21)  # best first
SCATTERS = {"ScatterElements", "ScatterND"}
LEAVES_AT_20 = {"Erf", "Gelu", "GridSample"}  # from opset 20 on they, or what they are fused to, leave the device
EXPANDED = "assistant.expanded"
# Their meaning changed, not their types alone: they are replaced by their definition, or refused.
CHANGED = {"DFT", "GroupNormalization"}
# Their definition hands Range tensors that are no scalars, which ONNX Runtime refuses (onnx 1.23, tried 2026-11-27).
ILL_DEFINED = {"AffineGrid"}
MODES = {b"linear": "bilinear", b"cubic": "bicubic"}


class CannotLower(WorkFailed):
    """An operator has no form in the older opset."""


def best_opsets(model: ModelProto) -> tuple[int, ...]:
    """Return the opsets that suit DirectML best, best first; none where the model's own does."""
    current = opsets(model).get("", 0)
    ops = {node.op_type for node in model.graph.node}
    scatters = bool(ops & SCATTERS)
    fits = current <= (17 if scatters else 19 if ops & LEAVES_AT_20 else LAST_MATCHED)
    return () if fits else tuple(one for one in (WITH_SCATTER if scatters else WITHOUT_SCATTER) if one < current)


def lowered(model: ModelProto, target: int) -> tuple[ModelProto, list[str]]:
    """Rewrite a model for an older opset; return the result and what was rewritten. `model` stays as it is.

    Raises `CannotLower` where an operator resists.
    """
    source, changes = lower(program(model), target)
    return source.filled(), changes


def lower(source: Program, target: int) -> tuple[Program, list[str]]:
    """Lower a program as `lowered` does a model; the one that was given is used up, also by a failure."""
    changes: list[str] = []
    while calls := _expanded(source, target):
        changes += calls
        source = source.renewed()
    changes += [change for step in source.steps() if (change := _lower(step, target))]
    source.model.ir_version = min(source.model.ir_version, KNOWN_IR)
    for entry in source.model.opset_import:
        if entry.domain in {"", "ai.onnx"}:
            entry.version = target
    return source.renewed(), changes


def _expanded(source: Program, target: int) -> list[str]:
    """Put the definition of operators newer than `target` in place of them, as local functions to be inlined."""
    current = opsets(source.model)[""]
    changes = []
    for number, step in enumerate(source.steps()):
        if step.node.domain not in {"", "ai.onnx"}:
            continue
        now, then = described("", step.op, current), described("", step.op, target)
        if now is None or (then is not None and (step.op not in CHANGED or now.since_version == then.since_version)):
            continue
        types = [
            helper.make_tensor_type_proto(value.kind, value.shape) if value and value.kind > 0 else TypeProto()
            for value in step.inputs
        ]
        body = definition(step.node, now, current, types)
        if body is None or step.op in ILL_DEFINED:
            raise CannotLower(verbatim(step.op))
        changes.append(f"{step.op} {step.node.name}".strip())
        make_call(step.node, now, body, (EXPANDED, f"{step.node.op_type}_{number}"))
        source.model.functions.append(body)
    if changes and EXPANDED not in opsets(source.model):
        source.model.opset_import.add(domain=EXPANDED, version=1)
    return changes


def _lower(step: Step, target: int) -> str:
    """Rewrite one node in the form of an older opset; return what changed, "" where nothing had to."""
    current = step.signature
    then = described("", step.op, target) if current is not None and step.node.domain in {"", "ai.onnx"} else None
    if then is None or current is None or then.since_version == current.since:
        return ""
    lost = [entry.name for entry in step.node.attribute if entry.name not in then.attributes]
    reshaped = bool(lost) or len(step.node.input) > then.max_input or step.op == "GridSample"  # which renamed its modes
    adapted = ADAPTERS[step.op](step) if step.op in ADAPTERS and reshaped else ""
    now = onnx.defs.get_schema(step.op, current.since, "")
    for entry in [entry for entry in step.node.attribute if entry.name not in then.attributes]:
        known = now.attributes.get(entry.name)
        default = helper.get_attribute_value(known.default_value) if known and known.default_value.name else None
        if (
            known is not None and helper.get_attribute_value(entry) == default
        ):  # it says what the older form does anyway
            step.node.attribute.remove(entry)
    reason = next(_obstacles(step, then), None)
    if reason is not None:
        raise CannotLower(Message("{op}: {reason}").format(op=step.op, reason=reason))
    return adapted


def _obstacles(step: Step, then: onnx.defs.OpSchema) -> Iterator[str]:
    """Name what the older form of an operator lacks: attributes, places for values, types."""
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
    """Call an interpolation by the name that it had before opset 20."""
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
