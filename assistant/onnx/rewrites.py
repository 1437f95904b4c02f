"""Rewrites structure that DirectML runs wrongly, slowly or not at all into equal structure that it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, helper, numpy_helper

from assistant.onnx.graph import bodies, fresh
from assistant.onnx.values import FLOAT, Program, Scope, Step, Value, attribute, constant_input, program

ALWAYS = ("Max", "Mean", "Min", "Pad", "Sum")  # wrong, or unfused, on every device
FLAT_OPS = ("AveragePool", "Conv", "ConvTranspose", "MaxPool")  # 1-D: NPUs take 2-D alone, GPUs need no change

FLAT = 3  # dimensions of a 1-D signal: batch, channels, length
PAIR = 2


class Bench:
    """Where a rule puts the nodes that replace a step: names are made unique, constants become Constant nodes."""

    def __init__(self, taken: set[str], step: Step) -> None:
        self.taken, self.step, self.nodes = taken, step, list[NodeProto]()

    def name(self, hint: str) -> str:
        """Give a name that nothing has."""
        return fresh(f"{self.step.node.output[0]}_{hint}", self.taken)

    def constant(self, numbers: Sequence[int], hint: str) -> str:
        """Add a constant of 64-bit integers."""
        tensor = numpy_helper.from_array(np.asarray(numbers, np.int64), hint)
        return self.add("Constant", [], hint, value=tensor)

    def add(self, op: str, inputs: Sequence[str], hint: str, output: str = "", **attributes: Any) -> str:  # noqa: ANN401
        """Add a node and answer its output's name."""
        output = output or self.name(hint)
        self.nodes.append(helper.make_node(op, list(inputs), [output], name=self.name(op), **attributes))
        return output


Rule = Callable[[Step, Bench], bool]


def rewritten(model: ModelProto, wanted: Sequence[str] | None = None) -> tuple[ModelProto, list[str]]:
    """Apply the rules, all or those that are wanted, and name what was rewritten: operator and node."""
    source = program(model)
    if source.main.graph.node and not any(_rule(step, wanted) for step in source.steps()):
        return model, []
    taken = {name for scope in source.scopes() for name in scope.values}
    told: list[str] = []
    _apply(source.main, taken, wanted, told)
    return (_cleared(source) if told else model), told


def _apply(scope: Scope, taken: set[str], wanted: Sequence[str] | None, told: list[str]) -> None:
    nodes: list[NodeProto] = []
    for step in scope.steps:
        for inner in step.inner:
            _apply(inner, taken, wanted, told)
        rule, bench = _rule(step, wanted), Bench(taken, step)
        if rule is not None and rule(step, bench):
            nodes += bench.nodes
            told.append(f"{step.op} {step.node.name or step.node.output[0]}")
        else:
            nodes.append(step.node)
    copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del scope.graph.node[:]
    scope.graph.node.extend(copies)


def _rule(step: Step, wanted: Sequence[str] | None) -> Rule | None:
    return REWRITES.get(step.op) if wanted is None or step.op in wanted else None


def _cleared(source: Program) -> ModelProto:
    """Forget inner shapes, which the new nodes may contradict."""
    whole = source.filled()
    for graph in bodies(whole):
        del graph.value_info[:]
    return whole


def _flat_to_plane(step: Step, bench: Bench) -> bool:
    """Run a 1-D convolution or pool as a 2-D one of height 1, as some drivers and NPUs know no other."""
    rank = _rank(step.inputs[0])
    if rank != FLAT or len([name for name in step.node.output if name]) != 1:
        return False
    axes: dict[str, Any] = {} if step.version >= 13 else {"axes": [2]}  # noqa: PLR2004 - from opset 13 on the axes are an input
    axis = [] if axes else [bench.constant([2], "axis")]
    inputs = list(step.node.input)
    for index in range(PAIR if "Conv" in step.op else 1):
        inputs[index] = bench.add("Unsqueeze", [inputs[index], *axis], f"plane{index}", **axes)
    attributes = {entry.name: helper.get_attribute_value(entry) for entry in step.node.attribute}
    for key, first in (("kernel_shape", 1), ("strides", 1), ("dilations", 1), ("output_padding", 0)):
        if key in attributes:
            attributes[key] = [first, *attributes[key]]
    if "output_shape" in attributes:
        attributes["output_shape"] = [1, *attributes["output_shape"]]
    if "pads" in attributes:
        start, end = attributes["pads"]
        attributes["pads"] = [0, start, 0, end]
    plane = bench.add(step.node.op_type, inputs, "plane", **attributes)
    bench.add("Squeeze", [plane, *axis], "flat", step.node.output[0], **axes)
    return True


def _negative_pads(step: Step, bench: Bench) -> bool:
    """Cut with Slice what negative pads cut off: DirectML computes them wrongly."""
    numbers = constant_input(step, 1)
    if numbers is None or (len(step.inputs) > FLAT and step.inputs[3] is not None):
        return False
    if min(numbers) >= 0 or attribute(step.node, "mode", b"constant") != b"constant":
        return False
    half = len(numbers) // 2
    cut = [axis for axis in range(half) if numbers[axis] < 0 or numbers[half + axis] < 0]
    starts = [max(0, -numbers[axis]) for axis in cut]
    ends = [min(0, numbers[half + axis]) or 2**62 for axis in cut]
    parts = [bench.constant(part, hint) for part, hint in ((starts, "starts"), (ends, "ends"), (cut, "axes"))]
    sliced = bench.add("Slice", [step.node.input[0], *parts], "cut")
    rest = bench.constant([max(0, number) for number in numbers], "pads")
    inputs = [sliced, rest, *step.node.input[2:3]]
    bench.add("Pad", inputs, "padded", step.node.output[0], mode="constant")
    return True


def _pairwise(step: Step, bench: Bench) -> bool:
    """Take operands two by two: with more, DirectML leaves the fused graph."""
    inputs = list(step.node.input)
    if len(inputs) <= PAIR:
        return False
    op = {"Sum": "Add", "Mean": "Add"}.get(step.op, step.op)
    result = inputs[0]
    mean = step.op == "Mean"
    for number, other in enumerate(inputs[1:], 2):
        last = number == len(inputs) and not mean
        result = bench.add(op, [result, other], f"of{number}", step.node.output[0] if last else "")
    if mean:
        made = step.outputs[0]
        kind = helper.tensor_dtype_to_np_dtype(made.kind if made is not None and made.kind > 0 else FLOAT)
        count = numpy_helper.from_array(np.asarray(len(inputs), kind), "count")
        bench.add("Div", [result, bench.add("Constant", [], "count", value=count)], "mean", step.node.output[0])
    return True


def _reduced_by_parts(step: Step, bench: Bench) -> bool:
    """Give a reduction that DirectML lacks for a type as those that it has."""
    axes = list(step.node.input[1:])
    attributes = {entry.name: helper.get_attribute_value(entry) for entry in step.node.attribute}
    if attributes.get("noop_with_empty_axes"):
        return False
    data = step.node.input[0]
    output = step.node.output[0]
    keep = {key: value for key, value in attributes.items() if key in {"axes", "keepdims"}}
    if "axes" in keep and step.version >= 13:  # noqa: PLR2004 - ReduceSum takes its axes as an input since then
        axes = [bench.constant(keep.pop("axes"), "axes")]
    squares = bench.add("Mul", [data, data], "squares")
    if step.op == "ReduceSumSquare":
        bench.add("ReduceSum", [squares, *axes], "sum", output, **keep)
    else:
        bench.add("Sqrt", [bench.add("ReduceSum", [squares, *axes], "sum", **keep)], "root", output)
    return True


def _rank(value: Value | None) -> int | None:
    return None if value is None or value.shape is None else len(value.shape)


REWRITES: dict[str, Rule] = {
    "AveragePool": _flat_to_plane,
    "Conv": _flat_to_plane,
    "ConvTranspose": _flat_to_plane,
    "MaxPool": _flat_to_plane,
    "Max": _pairwise,
    "Mean": _pairwise,
    "Min": _pairwise,
    "Pad": _negative_pads,
    "ReduceL2": _reduced_by_parts,
    "ReduceSumSquare": _reduced_by_parts,
    "Sum": _pairwise,
}
