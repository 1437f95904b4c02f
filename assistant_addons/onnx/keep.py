"""Chooses what of a model may become FP16: what definitions allow and no value forbids; all else has a reason."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto

from assistant_addons.onnx.graph import subgraphs
from assistant_addons.onnx.prepare import (
    ARITHMETIC,
    FLOAT,
    LARGEST,
    MOVES,
    NO_TENSOR,
    RUNTIME,
    UNKNOWN,
    Prepared,
    Scope,
    attribute,
    definition,
    formal,
    numbers,
    schema,
)

Why = Literal["asked", "definition", "exact", "proof", "crash"]
ROUNDED_AWAY = 6e-7  # below, rounding to FP16 changes a number by more than 5 %
SIGNIFICANT = 2.0**-10  # of a tensor's largest: what is smaller does not count beside it
TINY_EPSILON = 1e-7  # FP16's smallest number is 6e-8, beside which a smaller epsilon is nothing
WHOLE = {
    TensorProto.UINT8, TensorProto.INT8, TensorProto.UINT16, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64,
    TensorProto.UINT32, TensorProto.UINT64,
}  # fmt: skip

# Operators that stay FP32 whatever they are given, each with the reason.
STAYS_FP32: dict[str, Why] = {
    "AffineGrid": "exact",  # coordinates, which FP16 shifts by fractions of a pixel
    "BitCast": "exact",  # reads bits, not numbers
    "Cos": "exact",  # FP16 has no fractions from 1,024 on, where a period has 6.28: rotary positions and time steps
    "DequantizeLinear": "definition",  # runtimes fuse a quantised part as it is
    "DynamicQuantizeLinear": "definition",
    "If": "definition",  # what goes in and out has one type on all ways; the inside is looked at by itself
    "IsInf": "exact",  # a value too large for FP16 would count as infinite
    "Loop": "definition",
    "MeanVarianceNormalization": "exact",  # the sums inside leave FP16's range
    "QuantizeLinear": "definition",
    "Range": "exact",  # FP16 loses integers above 2,048, and DirectML has it in FP32 only
    "Scan": "definition",
    "SequenceMap": "definition",
    "Sin": "exact",
    "Tan": "exact",
}
# They take a value in whatever type it has: a Cast for them would be for nothing.
FOLLOWS = frozenset({"Cast", "Shape", "Size"})
CHOOSES_TYPE = frozenset({"Cast", "ConstantOfShape"})  # by an attribute, which is written
PERIODIC = frozenset({"Cos", "Sin", "Tan"})
PHASE = ARITHMETIC | {"Einsum", "MatMul"}  # as exporters write the product of positions and frequencies
# From the logarithm of a spectrum back over its powers to the signal.
POWERS = frozenset({"Abs", "Pow", "ReduceL2", "ReduceSumSquare"})
SPECTRUM = MOVES | POWERS | {
    "Add", "Clip", "Conv", "DFT", "Div", "Einsum", "MatMul", "Max", "Mul", "Pad", "ReduceMean", "ReduceSum", "STFT",
    "ScatterElements", "Sqrt", "Sub", "Sum", "Where",
}  # fmt: skip
# ONNX Runtime's own operators that take and make one type, and have an FP16 kernel in DirectML (data/dml.json).
RUNTIME_HALVES = frozenset({
    "Attention", "BiasAdd", "BiasGelu", "BiasSplitGelu", "FastGelu", "FusedMatMul", "FusedMatMulActivation", "Gelu",
    "GroupNorm", "MultiHeadAttention", "NhwcConv", "QuickGelu", "RotaryEmbedding", "SkipLayerNormalization",
    "SkipSimplifiedLayerNormalization",
})  # fmt: skip


class Slots(NamedTuple):
    """The inputs and outputs, by position, that become FP16 when a node does."""

    inputs: frozenset[int] = frozenset()
    outputs: frozenset[int] = frozenset()


@dataclass
class Choice:
    """What becomes FP16: the slots of each node by its name; and why others do not."""

    slots: dict[str, Slots] = field(default_factory=dict)
    why: dict[str, Why] = field(default_factory=dict)

    def without(self, names: Iterable[str]) -> dict[str, Slots]:
        """Return the slots of all nodes but these."""
        left = set(names)
        return {name: part for name, part in self.slots.items() if name not in left}

    def keep(self, names: Iterable[str], why: Why) -> None:
        """Leave nodes in FP32 for a reason."""
        for name in names:
            if self.slots.pop(name, None):
                self.why.setdefault(name, why)


def choose(source: Prepared, asked: Iterable[str] = ()) -> Choice:
    """Choose the nodes that compute in FP16 as far as names, definitions and constants tell."""
    choice, asked = Choice(), set(asked)
    for scope in source.scopes:
        nodes = scope.graph.node
        for node in nodes:
            choice.slots[node.name] = slots(node, scope)
            floats = any(scope.types.get(name) == FLOAT for name in (*node.input, *node.output))
            if floats and asked & {node.name, node.op_type, f"{node.domain}.{node.op_type}"}:
                choice.keep([node.name], "asked")
            elif not any(choice.slots[node.name]):
                del choice.slots[node.name]
                if floats and node.op_type not in FOLLOWS:
                    choice.why[node.name] = STAYS_FP32.get(node.op_type, "definition")
        # Runtimes fuse a quantised part as it is, and what leads to it costs nothing.
        quantised = _back(scope, [node for node in nodes if node.op_type == "QuantizeLinear"])
        exact = chain(_spectra(scope), _decisive(scope), _beyond(source, scope))
        choice.keep([node.name for node in quantised], "definition")
        choice.keep([node.name for node in exact], "exact")
    settle(source, choice)
    return choice


def slots(node: NodeProto, scope: Scope) -> Slots:
    """Return which inputs and outputs become FP16; none where the operator's definition does not allow it."""
    taken, made = (
        [scope.types.get(name, UNKNOWN) if name else None for name in side] for side in (node.input, node.output)
    )
    if not {UNKNOWN, NO_TENSOR}.isdisjoint([*taken, *made]) or _stays(node, scope):
        return Slots()
    if node.op_type in CHOOSES_TYPE:
        return Slots(outputs=frozenset({0} if made[0] == FLOAT else ()))
    form = schema(node, scope.versions)
    if form is None:
        known = node.domain == RUNTIME and node.op_type in RUNTIME_HALVES and len(made) == 1
        return Slots(
            *(frozenset(at for at, kind in enumerate(side) if kind == FLOAT and known) for side in (taken, made))
        )
    free = _free(node.domain, node.op_type, form.since_version)
    inputs = [(at, formal(form.inputs, at), kind) for at, kind in enumerate(taken) if kind is not None]
    outputs = [(at, formal(form.outputs, at), kind) for at, kind in enumerate(made) if kind is not None]
    bound = {name for _at, name, kind in inputs if kind == FLOAT and name in free}
    bound -= {name for _at, name, kind in inputs if kind != FLOAT}
    if any(kind == FLOAT and name in free - bound for _at, name, kind in outputs):
        return Slots()  # its type is nobody's to choose: a state that LinearAttention was not given, a `dtype`
    halves = [frozenset(at for at, name, kind in side if name in bound and kind == FLOAT) for side in (inputs, outputs)]
    return Slots(*halves)


@cache
def _free(domain: str, op: str, opset: int) -> frozenset[str]:
    """Return the type variables of an operator that may be FP32 or FP16."""
    form, both = definition(domain, op, opset), {"tensor(float)", "tensor(float16)"}
    constraints = form.type_constraints if form else ()
    return frozenset(one.type_param_str for one in constraints if both <= set(one.allowed_type_strs))


def _stays(node: NodeProto, scope: Scope) -> bool:
    """Return whether its operator, attributes or neighbours keep a node in FP32."""
    makers = [scope.makers[name] for name in node.input if name in scope.makers]
    epsilon = attribute(node, "epsilon") if "Norm" in node.op_type else None
    return (
        node.op_type in STAYS_FP32
        or any(subgraphs(node))
        or node.domain.startswith("ai.onnx.ml")  # they compare with thresholds, where the last digit decides
        or (node.op_type.startswith("Scatter") and attribute(node, "reduction", b"none") != b"none")
        or (
            node.op_type in {"BatchNormalization", "LayerNormalization"} and any(node.output[1:])
        )  # what training needs, for which no GPU has a kernel
        or (epsilon is not None and epsilon < TINY_EPSILON)
        or any(one.op_type == "DequantizeLinear" and one.input[0] in scope.makers for one in makers)
    )


def _back(
    scope: Scope, nodes: Iterable[NodeProto], ops: frozenset[str] = frozenset(), kinds: Iterable[int] = (FLOAT,)
) -> list[NodeProto]:
    """Return nodes and what leads to them through these operators, or any, along values of these types."""
    found = {node.name: node for node in nodes}
    todo = list(found.values())
    while todo:
        for name in todo.pop().input:
            maker = scope.makers.get(name)
            if maker is None or maker.name in found or scope.types.get(name, UNKNOWN) not in kinds:
                continue
            if not ops or maker.op_type in ops:
                found[maker.name] = maker
                todo.append(maker)
    return list(found.values())


def _decisive(scope: Scope) -> list[NodeProto]:
    """Find the arithmetic behind integers, sizes, thresholds, conditions and phases, which must not round."""
    ends = [info.name for info in scope.graph.output if scope.types.get(info.name) == TensorProto.BOOL]
    phases = list[str]()
    for node in scope.graph.node:
        form = schema(node, scope.versions)
        whole = node.op_type == "Range" or (node.op_type == "Cast" and attribute(node, "to") in WHOLE)
        phases += node.input if node.op_type in PERIODIC else ()
        ends += node.input[:1] if node.op_type == "If" else node.input[1:2] if node.op_type == "Loop" else ()
        for at, name in enumerate(node.input):
            if scope.types.get(name) == FLOAT and (whole or (form and formal(form.inputs, at) == "tensor(float)")):
                ends.append(name)
    found = list[NodeProto]()
    for names, ops in ((ends, ARITHMETIC), (phases, PHASE)):
        makers = [scope.makers[name] for name in names if name in scope.makers]
        found += _back(scope, [one for one in makers if one.op_type in ops], ops, (FLOAT, TensorProto.BOOL))
    return found


def _spectra(scope: Scope) -> Iterator[NodeProto]:
    """Find what makes the logarithm of a spectrum from an input: rounded, a faint part is lost beside a loud one.

    How large an input is, such as sound in 16 bits, is nobody's to know, and its powers are as large as its square.
    """
    given = {info.name for info in scope.graph.input}
    for node in (node for node in scope.graph.node if node.op_type == "Log"):
        before = _back(scope, [node], SPECTRUM)
        powers = any(one.op_type in POWERS or (one.op_type == "Mul" and len({*one.input}) == 1) for one in before)
        if powers and any(name in given for one in before for name in one.input):
            yield from before


def settle(source: Prepared, choice: Choice) -> None:
    """Leave in FP32 what is given FP32 and decides by differences, or would cast a value and do no more."""
    for scope in source.scopes:
        for node in (one for one in scope.graph.node if one.name in choice.slots and one.input):
            maker = scope.makers.get(node.input[0])
            if maker is not None and maker.name in choice.slots:
                continue
            largest = scope.makers.get(node.input[1]) if node.op_type == "Sub" else None
            if largest is not None and largest.op_type == "ReduceMax" and largest.input[0] == node.input[0]:
                choice.keep([node.name, largest.name], "exact")
            elif node.op_type in {"LogSoftmax", "Softmax"} or not choice.slots[node.name].outputs:
                choice.keep([node.name], "exact")


def _beyond(source: Prepared, scope: Scope) -> Iterator[NodeProto]:
    """Find the nodes that take a constant which FP16 cannot hold, or a sum with one (an epsilon), or a root of that."""
    sums = set[str]()
    for node in scope.graph.node:
        summed = not sums.isdisjoint(node.input)
        unfit = [at for at, name in enumerate(node.input) if not _fits(source, scope, node, at, name)]
        if unfit or summed:
            yield node
        if (unfit and node.op_type in {"Add", "Max", "Sub"}) or (
            summed and node.op_type in {"Pow", "Reciprocal", "Sqrt"}
        ):
            sums.update(node.output)


def _fits(source: Prepared, scope: Scope, node: NodeProto, at: int, name: str) -> bool:
    """Return whether FP16 holds one input of a node, as far as it is constant.

    A bound for Clip beyond FP16 bounds nothing, so its largest number will do.
    """
    if name not in scope.constants or scope.types[name] != FLOAT or (node.op_type == "Clip" and at):
        return True
    content = source.content(scope.constants[name])
    array = numbers(scope.constants[name]) if content is None else content
    return array is None or fits(array, divides=node.op_type == "Div" and at == 1)


def fits(array: NDArray[np.float32], *, divides: bool = False) -> bool:
    """Return whether FP16 holds an array: nothing too large, and nothing that counts too small."""
    largest = peak(array)
    least = 0.0 if divides else largest * SIGNIFICANT
    if largest <= LARGEST and least < ROUNDED_AWAY:
        sizes = np.abs(array)
        return not bool(((sizes > 0) & (sizes >= least) & (sizes < ROUNDED_AWAY)).any())
    return largest <= LARGEST


def peak(array: NDArray[np.float32]) -> float:
    """Return the largest size among the finite numbers; infinities and NaN are the same in FP16."""
    if not array.size:
        return 0.0
    high = max(float(array.max()), -float(array.min()))  # no copy, as weights may be as large as memory
    return high if math.isfinite(high) else float(np.abs(array[np.isfinite(array)]).max(initial=0))
