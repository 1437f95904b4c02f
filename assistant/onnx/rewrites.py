"""Rewrites structure that DirectML runs wrongly, slowly or not at all into equal structure that it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, helper, numpy_helper

from assistant.onnx.graph import bodies, unique_name
from assistant.onnx.program import FLOAT, Program, Scope, Step, attribute, constant_input, program, replace_nodes

ALWAYS = ("Max", "Mean", "Min", "Pad", "Sum")  # wrong, or unfused, on every device
FLAT_OPS = ("AveragePool", "Conv", "ConvTranspose", "MaxPool")  # 1-D: NPUs take 2-D alone, GPUs need no change

FLAT = 3  # dimensions of a 1-D signal: batch, channels, length
PAIR = 2
AXES_AS_INPUT = 13  # the opset from which on Squeeze, Unsqueeze and ReduceSum take their axes as an input
TO_THE_END = 2**62  # as the end of a Slice, which cuts it to the length there is


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


def rewritten(model: ModelProto, wanted: Sequence[str] | None = None) -> tuple[ModelProto, list[str]]:
    """Apply the rules, all or those of the `wanted` operators; return the result, and operator and node of each change.

    `model` stays as it is, and is the result where no rule applies.
    """
    source, changes = rewrite(program(model), wanted)
    return (source.filled() if changes else model), changes


def rewrite(source: Program, wanted: Sequence[str] | None = None) -> tuple[Program, list[str]]:
    """Rewrite a program as `rewritten` does a model; the one that was given is used up."""
    rules = {op: rule for op, rule in REWRITES.items() if wanted is None or op in wanted}
    if not any(step.op in rules for step in source.steps()):
        return source, []
    taken = {name for scope in source.scopes() for name in scope.values}
    changes: list[str] = []
    _apply(source.main, rules, taken, changes)
    if not changes:
        return source, []
    for graph in bodies(source.model):
        del graph.value_info[:]  # inner shapes, which the new nodes may contradict
    return source.renewed(), changes


def _apply(scope: Scope, rules: Mapping[str, Rule], taken: set[str], changes: list[str]) -> None:
    nodes: list[NodeProto] = []
    for step in scope.steps:
        for inner in step.inner:
            _apply(inner, rules, taken, changes)
        replacement = Replacement(step, taken) if step.op in rules else None
        if replacement is not None and rules[step.op](step, replacement):
            nodes += replacement.nodes
            changes.append(f"{step.op} {step.node.name or step.node.output[0]}")
        else:
            nodes.append(step.node)
    replace_nodes(scope.graph, nodes)


def _flat_to_plane(step: Step, new: Replacement) -> bool:
    """Run a 1-D convolution or pool as a 2-D one of height 1, as some drivers and NPUs know no other."""
    signal = step.inputs[0]
    if signal is None or len(signal.shape or ()) != FLAT or len([name for name in step.node.output if name]) != 1:
        return False
    axes: dict[str, Any] = {} if step.version >= AXES_AS_INPUT else {"axes": [2]}
    axis = [] if axes else [new.constant([2], "axis")]
    inputs = list(step.node.input)
    for index in range(PAIR if "Conv" in step.op else 1):
        inputs[index] = new.add("Unsqueeze", [inputs[index], *axis], f"plane{index}", **axes)
    attributes = {entry.name: helper.get_attribute_value(entry) for entry in step.node.attribute}
    for key, first in (("kernel_shape", 1), ("strides", 1), ("dilations", 1), ("output_padding", 0)):
        if key in attributes:
            attributes[key] = [first, *attributes[key]]
    if "output_shape" in attributes:
        attributes["output_shape"] = [1, *attributes["output_shape"]]
    if "pads" in attributes:
        start, end = attributes["pads"]
        attributes["pads"] = [0, start, 0, end]
    plane = new.add(step.node.op_type, inputs, "plane", **attributes)
    new.add("Squeeze", [plane, *axis], "flat", step.node.output[0], **axes)
    return True


def _negative_pads(step: Step, new: Replacement) -> bool:
    """Cut with Slice what negative pads cut off: DirectML computes them wrongly."""
    numbers = constant_input(step, 1)
    if numbers is None or (len(step.inputs) > FLAT and step.inputs[3] is not None):
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


def _reduced_by_parts(step: Step, new: Replacement) -> bool:
    """Write a reduction that DirectML lacks for some types as ones that it has."""
    axes = list(step.node.input[1:])
    attributes = {entry.name: helper.get_attribute_value(entry) for entry in step.node.attribute}
    if attributes.get("noop_with_empty_axes"):
        return False
    data = step.node.input[0]
    output = step.node.output[0]
    keep = {key: value for key, value in attributes.items() if key in {"axes", "keepdims"}}
    if "axes" in keep and step.version >= AXES_AS_INPUT:
        axes = [new.constant(keep.pop("axes"), "axes")]
    squares = new.add("Mul", [data, data], "squares")
    if step.op == "ReduceSumSquare":
        new.add("ReduceSum", [squares, *axes], "sum", output, **keep)
    else:
        new.add("Sqrt", [new.add("ReduceSum", [squares, *axes], "sum", **keep)], "root", output)
    return True


REWRITES: dict[str, Rule] = {
    **dict.fromkeys(FLAT_OPS, _flat_to_plane),
    **dict.fromkeys(("Max", "Mean", "Min", "Sum"), _pairwise),
    **dict.fromkeys(("ReduceL2", "ReduceSumSquare"), _reduced_by_parts),
    "Pad": _negative_pads,
}
