"""Brings a model to the opset that DirectML matches best, and its structure to what DirectML runs well."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TypeProto, checker, helper, numpy_helper, version_converter

from assistant.api import WorkFailed
from assistant.api.texts import verbatim
from assistant_addons.onnx.definitions import definition, make_call
from assistant_addons.onnx.graph import KNOWN_IR, bodies, opsets, subgraphs, unique_name
from assistant_addons.onnx.operators import described
from assistant_addons.onnx.program import FLOAT, Program, Scope, Step, attribute, constant_input, replace_nodes

# The newest rows of data/dml.json are for opset 21; those of ScatterElements and ScatterND match up to opset 17.
LAST_MATCHED = 21
WITHOUT_SCATTER, WITH_SCATTER = (19, 18, 17, 21), (17, 16, 19, 18, 21)  # best first
SCATTERS = {"ScatterElements", "ScatterND"}
LEAVES_AT_20 = {"Erf", "Gelu", "GridSample"}  # from opset 20 on they, or what they are fused to, leave the device
# The meaning of its scale changed at opset 21, and the converter has no way back: its definition takes its place.
REDEFINED = {"GroupNormalization": 21}
# Their definition hands Range tensors that are no scalars, which ONNX Runtime refuses (onnx 1.23, tried 2026-11-27).
ILL_DEFINED = {"AffineGrid"}
EXPANDED = "assistant.expanded"  # the domain of such definitions
# Nor has it one (onnx 1.23) for these, which were given types, an input, an attribute, or new names of modes.
RESTAMPED = {"ConstantOfShape", "GlobalMaxPool", "GridSample", "LpPool", "Pad", "Split"}
ASIDE = "assistant.aside"  # the domain of nodes that the converter leaves alone
# The opsets that brought num_outputs to Split, AveragePool with ceil_mode another last window, GridSample other modes.
SPLIT_COUNTS, NEW_CEILING, NEW_MODES = 18, 19, 20
MODES = {b"linear": b"bilinear", b"cubic": b"bicubic"}  # of GridSample from opset 20 on, and before
PAIR = 2
PAD_INPUTS = 3  # of Pad where no axes are named
TO_THE_END = 2**62  # as the end of a Slice, which cuts it to the length there is


class CannotLower(WorkFailed):
    """An operator has no form in the older opset."""


def best_opsets(model: ModelProto) -> tuple[int, ...]:
    """Return the opsets that suit DirectML best, best first; none where the model's own does."""
    current = opsets(model).get("", 0)
    ops = {node.op_type for node in model.graph.node}
    scatters = bool(ops & SCATTERS)
    fits = current <= (17 if scatters else 19 if ops & LEAVES_AT_20 else LAST_MATCHED)
    return () if fits else tuple(one for one in (WITH_SCATTER if scatters else WITHOUT_SCATTER) if one < current)


def lower(source: Program, target: int) -> Program:
    """Return a program at an older opset; the one that was given is used up, also by a failure.

    Raises `CannotLower` where onnx's converter has no way for an operator.
    """
    try:
        while _expanded(source, target):
            source = source.renewed()
        for step in source.steps():
            _ease(step, target)
        made = _converted(source.model, target)
        _check_nodes(made)
    except (RuntimeError, ValueError, checker.ValidationError) as error:
        reason = str(error).strip().splitlines()[0].rpartition("failed: ")[2]
        raise CannotLower(verbatim(reason)) from error
    graph, held = source.model.graph, {tensor.name for tensor in source.model.graph.initializer}
    replace_nodes(graph, list(made.graph.node))
    graph.initializer.extend(tensor for tensor in made.graph.initializer if tensor.name not in held)
    source.model.ir_version = min(source.model.ir_version, KNOWN_IR)
    next(entry for entry in source.model.opset_import if not entry.domain).version = target
    return source.renewed()


def _expanded(source: Program, target: int) -> bool:
    """Replace operators that an older opset lacks by calls of their definitions; return whether there were any."""
    current, found = opsets(source.model)[""], False
    for number, step in enumerate(source.steps()):
        redefined = target < REDEFINED.get(step.op, 0) <= current
        now = None if step.node.domain else described("", step.op, current)
        if now is None or (described("", step.op, target) is not None and not redefined):
            continue
        types = [
            helper.make_tensor_type_proto(value.kind, value.shape) if value and value.kind > 0 else TypeProto()
            for value in step.inputs
        ]
        body = definition(step.node, now, current, types)
        if body is None or step.op in ILL_DEFINED:
            raise CannotLower(verbatim(step.op))
        make_call(step.node, now, body, (EXPANDED, f"{step.op}_{number}"))
        source.model.functions.append(body)
        found = True
    if found and EXPANDED not in opsets(source.model):
        source.model.opset_import.add(domain=EXPANDED, version=1)
    return found


def _ease(step: Step, target: int) -> None:
    """Write a node in the form that the converter, or an older opset that it has no way to, takes.

    Raises `CannotLower` for what the converter would change in meaning.
    """
    node, first = step.node, step.inputs[0] if step.inputs else None
    if node.domain:
        return
    if step.op == "AveragePool" and target < NEW_CEILING <= step.version and attribute(node, "ceil_mode", 0):
        raise CannotLower(verbatim("AveragePool: ceil_mode"))
    if step.op == "Constant" and not attribute(node, "value") and step.outputs[0] and step.outputs[0].tensor:
        del node.attribute[:]
        node.attribute.append(helper.make_attribute("value", step.outputs[0].tensor))
    elif step.op == "Split" and target < SPLIT_COUNTS <= step.version and first is not None and first.shape:
        axis, parts = attribute(node, "axis", 0), attribute(node, "num_outputs")
        length = first.shape[axis] if isinstance(axis, int) else None
        if isinstance(parts, int) and parts and length and length % parts == 0:  # which an older one divides so, too
            node.attribute.remove(next(entry for entry in node.attribute if entry.name == "num_outputs"))
    elif step.op == "GridSample" and target < NEW_MODES <= step.version:
        for entry in node.attribute:
            entry.s = MODES.get(entry.s, entry.s)
    if step.op in RESTAMPED or (step.op == "Constant" and not attribute(node, "value")):
        node.domain = ASIDE


def _converted(model: ModelProto, target: int) -> ModelProto:
    """Return a model whose nodes are those of an older opset."""
    model.opset_import.add(domain=ASIDE, version=1)
    made = version_converter.convert_version(model, target)
    for node in (node for body in bodies(made) for node in body.node if node.domain == ASIDE):
        node.domain = ""
    return made


def _check_nodes(model: ModelProto) -> None:
    """Raise what onnx's checker finds wrong with a node; one with subgraphs is checked by what they hold."""
    context = checker.C.CheckerContext()
    context.ir_version, context.opset_imports = KNOWN_IR, opsets(model)
    for node in (node for body in bodies(model) for node in body.node if not any(subgraphs(node))):
        checker.check_node(node, context)


class Replacement:
    """The nodes that take the place of a step: names are made unique, constants become Constant nodes."""

    def __init__(self, step: Step, taken: set[str]) -> None:
        self.taken, self.output, self.nodes = taken, step.node.output[0], list[NodeProto]()

    def name(self, hint: str) -> str:
        """Return a name that nothing has."""
        return unique_name(f"{self.output}_{hint}", self.taken)

    def constant(self, numbers: Sequence[int], hint: str) -> str:
        """Add a constant of 64-bit integers."""
        tensor = numpy_helper.from_array(np.asarray(numbers, np.int64), hint)
        return self.add("Constant", [], hint, value=tensor)

    def add(self, op: str, inputs: Sequence[str], hint: str, output: str = "", **attributes: Any) -> str:  # noqa: ANN401
        """Add a node and return its output's name."""
        output = output or self.name(hint)
        self.nodes.append(helper.make_node(op, list(inputs), [output], name=self.name(op), **attributes))
        return output


Rule = Callable[[Step, Replacement], bool]


def rewrite(source: Program) -> tuple[Program, list[str]]:
    """Apply the rules; return the result, and operator and node of each change. The program given is used up."""
    if not any(step.op in REWRITES for step in source.steps()):
        return source, []
    taken = {name for scope in source.scopes() for name in scope.values}
    changes: list[str] = []
    _apply(source.main, taken, changes)
    if not changes:
        return source, []
    for graph in bodies(source.model):
        del graph.value_info[:]  # inner shapes, which the new nodes may contradict
    return source.renewed(), changes


def _apply(scope: Scope, taken: set[str], changes: list[str]) -> None:
    nodes: list[NodeProto] = []
    for step in scope.steps:
        for inner in step.inner:
            _apply(inner, taken, changes)
        replacement = Replacement(step, taken) if step.op in REWRITES else None
        if replacement is not None and REWRITES[step.op](step, replacement):
            nodes += replacement.nodes
            changes.append(f"{step.op} {step.node.name or step.node.output[0]}")
        else:
            nodes.append(step.node)
    replace_nodes(scope.graph, nodes)


def _negative_pads(step: Step, new: Replacement) -> bool:
    """Cut with Slice what negative pads cut off: DirectML computes them wrongly."""
    numbers = constant_input(step, 1)
    if numbers is None or (len(step.inputs) > PAD_INPUTS and step.inputs[3] is not None):
        return False
    if min(numbers) >= 0 or attribute(step.node, "mode", b"constant") != b"constant":
        return False
    half = len(numbers) // 2
    cut = [axis for axis in range(half) if numbers[axis] < 0 or numbers[half + axis] < 0]
    starts = [max(0, -numbers[axis]) for axis in cut]
    ends = [min(0, numbers[half + axis]) or TO_THE_END for axis in cut]
    parts = [new.constant(part, hint) for part, hint in ((starts, "starts"), (ends, "ends"), (cut, "axes"))]
    sliced = new.add("Slice", [step.node.input[0], *parts], "cut")
    rest = new.constant([max(0, number) for number in numbers], "pads")
    inputs = [sliced, rest, *step.node.input[2:3]]
    new.add("Pad", inputs, "padded", step.node.output[0], mode="constant")
    return True


def _pairwise(step: Step, new: Replacement) -> bool:
    """Take operands two by two: with more, DirectML leaves the fused graph."""
    inputs = list(step.node.input)
    if len(inputs) <= PAIR:
        return False
    op = {"Sum": "Add", "Mean": "Add"}.get(step.op, step.op)
    result = inputs[0]
    mean = step.op == "Mean"
    for number, other in enumerate(inputs[1:], 2):
        last = number == len(inputs) and not mean
        result = new.add(op, [result, other], f"of{number}", step.node.output[0] if last else "")
    if mean:
        made = step.outputs[0]
        kind = helper.tensor_dtype_to_np_dtype(made.kind if made is not None and made.kind > 0 else FLOAT)
        count = numpy_helper.from_array(np.asarray(len(inputs), kind), "count")
        new.add("Div", [result, new.add("Constant", [], "count", value=count)], "mean", step.node.output[0])
    return True


REWRITES: dict[str, Rule] = {
    **dict.fromkeys(("Max", "Mean", "Min", "Sum"), _pairwise),
    "Pad": _negative_pads,
}
