"""Rewrites structure that DirectML runs wrongly, slowly or not at all into equal structure that it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import NodeProto, helper, numpy_helper

from assistant.onnx.graph import bodies, unique_name
from assistant.onnx.program import FLOAT, Program, Scope, Step, attribute, constant_input, replace_nodes

PAIR = 2
PAD_INPUTS = 3  # of Pad where no axes are named
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
