"""Converts a model to FP16: what its definition allows and no value forbids, with a reason for all that stays FP32."""

from __future__ import annotations

import contextlib
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from assistant_addons.onnx.graph import bodies, consumed, opsets, subgraphs, unique_name
from assistant_addons.onnx.prepare import (
    ARITHMETIC,
    FLOAT,
    HALF,
    MOVES,
    NO_TENSOR,
    RUNTIME,
    UNKNOWN,
    Prepared,
    Scope,
    attribute,
    formal,
    numbers,
    prepare,
    schema,
)
from assistant_addons.onnx.inputs import Feeds
from assistant_addons.onnx.proof import SURE, Obstacle, Original, Weights, fewest, loads, opened, rounded, run, uncollected

Why = Literal["asked", "definition", "exact", "proof", "crash"]
LARGEST = 65504.0  # of FP16
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
    "DequantizeLinear": "definition",  # runtimes fuse a quantised part as it is
    "DynamicQuantizeLinear": "definition",
    "If": "definition",  # what goes in and out of a subgraph has one type on all ways; its inside is looked at by itself
    "IsInf": "exact",  # a value too large for FP16 would count as infinite
    "Loop": "definition",
    "MeanVarianceNormalization": "exact",  # the sums inside leave FP16's range
    "QuantizeLinear": "definition",
    "Range": "exact",  # FP16 loses integers above 2,048, and DirectML has it in FP32 only
    "Scan": "definition",
    "SequenceMap": "definition",
}
# They take a value in whatever type it has: a Cast for them would be for nothing.
FOLLOWS = frozenset({"Cast", "Shape", "Size"})
CHOOSES_TYPE = frozenset({"Cast", "ConstantOfShape"})  # by an attribute, which is written
PERIODIC = frozenset({"Cos", "Sin", "Tan"})
# From the logarithm of a spectrum back to its powers, and from those back to the signal.
TO_POWERS = MOVES | {
    "Add", "Clip", "Conv", "Div", "Einsum", "MatMul", "Max", "Mul", "ReduceSum", "Sqrt", "Sum", "Where",
}  # fmt: skip
POWERS = frozenset({"Abs", "Pow", "ReduceL2", "ReduceSumSquare"})
TO_SIGNAL = MOVES | {
    "Add", "Conv", "DFT", "Div", "Einsum", "MatMul", "Mul", "Pad", "ReduceMean", "STFT", "ScatterElements", "Sub",
    "Where",
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


# ------------------------------------------------------------------ choosing


def choose(source: Prepared, asked: Iterable[str] = ()) -> Choice:
    """Choose the nodes that compute in FP16 as far as names, definitions and constants tell."""
    choice, names, versions = Choice(), set(asked), opsets(source.model)
    for scope in source.scopes:
        for node in scope.graph.node:
            part = slots(node, scope, versions)
            if any(scope.types.get(name) == FLOAT for name in (*node.input, *node.output)):
                if names & {node.name, node.op_type, f"{node.domain}.{node.op_type}"}:
                    choice.why[node.name] = "asked"
                elif not (part.inputs or part.outputs) and node.op_type not in FOLLOWS:
                    choice.why[node.name] = STAYS_FP32.get(node.op_type, "definition")
            if (part.inputs or part.outputs) and node.name not in choice.why:
                choice.slots[node.name] = part
        quantised = _back(scope, [node for node in scope.graph.node if node.op_type == "QuantizeLinear"])
        choice.keep([node.name for node in quantised], "definition")
        exact = chain(_from_constants(scope), _spectra(scope), _phases(scope), _exact(scope), _tiny(scope))
        choice.keep([node.name for node in exact], "exact")
        choice.keep(list(_beyond(source, scope, choice)), "exact")
        choice.keep([node.name for node in _crashing(scope)], "crash")
    settle(source, choice)
    return choice


def slots(node: NodeProto, scope: Scope, versions: Mapping[str, int]) -> Slots:
    """Return which inputs and outputs become FP16; none where the operator's definition does not allow it."""
    kinds = [scope.types.get(name, UNKNOWN) if name else None for name in node.input]
    made = [scope.types.get(name, UNKNOWN) if name else None for name in node.output]
    open_ones = {None, UNKNOWN, NO_TENSOR}.intersection([*kinds, *made])
    if node.op_type in STAYS_FP32 or any(subgraphs(node)) or open_ones - {None}:
        return Slots()
    if node.op_type in CHOOSES_TYPE:
        return Slots(outputs=frozenset({0} if made[0] == FLOAT else ()))
    if _is_special(node, scope):
        return Slots()
    form = schema(node, dict(versions))
    if form is None:
        known = node.domain == RUNTIME and node.op_type in RUNTIME_HALVES and len(made) == 1
        sides = ([at for at, kind in enumerate(side) if kind == FLOAT and known] for side in (kinds, made))
        return Slots(*map(frozenset, sides))
    halves = {"tensor(float)", "tensor(float16)"}
    free = {one.type_param_str for one in form.type_constraints if halves <= set(one.allowed_type_strs)}
    taken = [(at, formal(form.inputs, at), kind) for at, kind in enumerate(kinds) if kind is not None]
    given = [(at, formal(form.outputs, at), kind) for at, kind in enumerate(made) if kind is not None]
    bound = {name for _at, name, kind in taken if kind == FLOAT} & free
    bound -= {name for _at, name, kind in taken if kind != FLOAT}
    if any(kind == FLOAT and name in free - bound for _at, name, kind in given):
        return Slots()  # its type is nobody's to choose: a state that LinearAttention was not given, a `dtype`
    return Slots(
        frozenset(at for at, name, _kind in taken if name in bound),
        frozenset(at for at, name, kind in given if name in bound and kind == FLOAT),
    )


def _is_special(node: NodeProto, scope: Scope) -> bool:
    """Return whether attributes or neighbours keep a node FP32: it gathers many values, or belongs to a quantised part."""
    makers = (scope.makers.get(name) for name in node.input)
    quantised = (one for one in makers if one is not None and one.op_type == "DequantizeLinear")
    return (
        node.domain.startswith("ai.onnx.ml")
        or (node.op_type.startswith("Scatter") and attribute(node, "reduction", b"none") != b"none")
        or (node.op_type == "BatchNormalization" and len(list(filter(None, node.output))) > 1)
        or any(one.input[0] in scope.makers for one in quantised)
    )


def _tiny(scope: Scope) -> Iterator[NodeProto]:
    """Find normalisations whose epsilon is zero in FP16."""
    for node in scope.graph.node:
        epsilon = attribute(node, "epsilon") if "Norm" in node.op_type else None
        if isinstance(epsilon, float) and epsilon < TINY_EPSILON:
            yield node


def _from_constants(scope: Scope) -> Iterator[NodeProto]:
    """Find what is computed from constants alone: a runtime does that once, and it costs nothing in FP32.

    Filters and windows are made so, by sines of large numbers and small differences.
    """
    made = set(scope.constants)
    for node in scope.graph.node:
        if node.input and not any(subgraphs(node)) and all(name in made or not name for name in node.input):
            made.update(node.output)
            if node.op_type not in MOVES | {"ConstantOfShape"}:
                yield node


def _back(
    scope: Scope, todo: list[NodeProto], ops: frozenset[str] = frozenset(), kinds: Iterable[int] = (FLOAT,)
) -> list[NodeProto]:
    """Return nodes and what leads to them through these operators, or any, along values of these types."""
    found = {node.name: node for node in todo}
    while todo:
        for name in todo.pop().input:
            maker = scope.makers.get(name)
            if maker is None or maker.name in found or (ops and (maker.op_type not in ops or _is_square(maker))):
                continue
            if scope.types.get(name) in kinds:
                found[maker.name] = maker
                todo.append(maker)
    return list(found.values())


def _is_square(node: NodeProto) -> bool:
    return node.op_type == "Mul" and node.input[0] == node.input[1]


def _exact(scope: Scope) -> list[NodeProto]:
    """Find the arithmetic behind integers, sizes, thresholds and conditions, which must not round."""
    ends = []
    for node in scope.graph.node:
        form = schema(node, {"": 99} | {node.domain: 99}) if node.op_type not in {"If", "Loop"} else None
        whole = node.op_type == "Range" or (node.op_type == "Cast" and attribute(node, "to") in WHOLE)
        for at, name in enumerate(node.input):
            fixed = form is not None and formal(form.inputs, at) == "tensor(float)"
            if (whole or fixed) and scope.types.get(name) == FLOAT:
                ends.append(name)
        ends += [node.input[{"If": 0, "Loop": 1}[node.op_type]]] if node.op_type in {"If", "Loop"} else []
    if scope.graph.output and scope.types.get(scope.graph.output[0].name) == TensorProto.BOOL:
        ends.append(scope.graph.output[0].name)  # of a loop's body, whether it goes on
    makers = {name: scope.makers[name] for name in ends if name in scope.makers}
    return _back(scope, [one for one in makers.values() if one.op_type in ARITHMETIC], ARITHMETIC, (FLOAT, TensorProto.BOOL))


def _spectra(scope: Scope) -> Iterator[NodeProto]:
    """Find what makes the logarithm of a spectrum from an input: rounded, a faint part is lost beside a loud one.

    How large an input is, such as sound in 16 bits, is nobody's to know, and its powers are as large as its square.
    """
    given = {info.name for info in scope.graph.input} - set(scope.constants)
    for node in scope.graph.node:
        if node.op_type == "Log":
            after = _back(scope, [node], TO_POWERS)
            makers = [scope.makers.get(name) for one in after for name in one.input]
            squares = [one for one in makers if one is not None and (one.op_type in POWERS or _is_square(one))]
            before = _back(scope, list(squares), TO_SIGNAL)
            if squares and any(name in given for one in before for name in one.input):
                yield from chain(after, before)


def _phases(scope: Scope) -> Iterator[NodeProto]:
    """Find what a sine's or cosine's argument is computed with from positions or from an input, and the sine itself.

    FP16 counts to 2,048 and has no fractions from 1,024 on, where a period has 6.28: rotary positions and time steps.
    What a layer has learned to put into a sine is as small as it has learned.
    """
    inputs = {info.name for info in scope.graph.input if scope.types[info.name] == FLOAT}
    counts = set[str]()
    for node in scope.graph.node:
        if node.op_type == "Range" or (node.op_type == "Cast" and scope.types.get(node.input[0]) in WHOLE):
            counts.update(node.output)
        elif node.op_type in ARITHMETIC | {"Einsum", "MatMul"} and (inputs | counts).intersection(node.input):
            counts.update(node.output)
            counts |= inputs.intersection(node.input)
    todo = [node for node in scope.graph.node if node.op_type in PERIODIC and counts.intersection(node.input)]
    found = {node.name for node in todo}
    while todo:
        node = todo.pop()
        yield node
        makers = [scope.makers[name] for name in node.input if name in counts and name in scope.makers]
        new = {maker.name: maker for maker in makers if maker.name not in found}
        found |= new.keys()
        todo += new.values()


def _crashing(scope: Scope) -> Iterator[NodeProto]:
    """Find transpositions that move the batch to the end, before a product by a weight.

    From 1.23 on ONNX Runtime dies as it loads them: https://github.com/microsoft/onnxruntime/issues/15494
    """
    for node in scope.graph.node:
        for name in node.input if node.op_type == "MatMul" and scope.constants.keys() & set(node.input) else ():
            maker = scope.makers.get(name)
            order = attribute(maker, "perm", []) if maker is not None and maker.op_type == "Transpose" else []
            last = len(order) - 1
            if maker is not None and last > 1 and order[:-2] == list(range(1, last)) and set(order[-2:]) == {0, last}:
                yield maker


def settle(source: Prepared, choice: Choice) -> None:
    """Leave in FP32 what FP16 would serve nothing: what is given FP32 and decides by differences, and moves in between."""
    for scope in source.scopes:
        takers: dict[str, list[NodeProto]] = defaultdict(list)
        for node in scope.graph.node:
            for name in node.input:
                takers[name].append(node)
            given = scope.makers.get(node.input[0]) if node.input else None
            if node.name in choice.slots and (given is None or given.name not in choice.slots):
                if node.op_type in {"LogSoftmax", "Softmax"} or not choice.slots[node.name].outputs:
                    choice.keep([node.name], "exact")
                largest = scope.makers.get(node.input[1]) if node.op_type == "Sub" else None
                if largest is not None and largest.op_type == "ReduceMax" and largest.input[0] == node.input[0]:
                    choice.keep([node.name, largest.name], "exact")
        ends = {info.name for info in scope.graph.output}
        for node in chain(scope.graph.node, reversed(scope.graph.node)):
            if node.name in choice.slots and node.op_type in MOVES and not ends.intersection(node.output):
                makers = [scope.makers.get(name) for name in node.input if scope.types.get(name) == FLOAT]
                around = [*filter(None, makers), *(one for name in node.output for one in takers[name])]
                if around and all(one.name not in choice.slots for one in around) and None not in makers:
                    del choice.slots[node.name]


# ------------------------------------------------------------------ constants


def _beyond(source: Prepared, scope: Scope, choice: Choice) -> Iterator[str]:
    """Yield the nodes that take a constant which FP16 cannot hold, or carry on what it makes."""
    wide = set[str]()
    for node in scope.graph.node:
        part = choice.slots.get(node.name, Slots())
        for at, name in enumerate(node.input):
            if at not in part.inputs or name not in scope.constants:
                continue
            bound = node.op_type == "Clip" and at > 0  # one beyond FP16 bounds nothing, so its largest number will do
            if not bound and not fits(_content(source, scope, name), divides=node.op_type == "Div" and at == 1):
                wide.add(name)
        if wide.intersection(node.input[at] for at in part.inputs):
            yield node.name


def _content(source: Prepared, scope: Scope, name: str) -> NDArray[np.float32]:
    if name in source.weights and scope.constants[name].name == name:
        return source.weight(name)
    found = numbers(scope.constants[name])
    return np.zeros(0, np.float32) if found is None else found


def fits(array: NDArray[np.float32], *, divides: bool = False) -> bool:
    """Return whether FP16 holds an array: nothing too large, and nothing that counts too small."""
    peak = _peak(array)
    least = peak * SIGNIFICANT
    if peak > LARGEST:
        return False
    if least < ROUNDED_AWAY or divides:
        sizes = np.abs(array)
        small = (sizes > 0) & (sizes < ROUNDED_AWAY)
        return not bool((small & ((sizes >= least) | divides)).any())
    return True


def _peak(array: NDArray[np.float32]) -> float:
    """Return the largest size among the finite numbers; infinities and NaN are the same in FP16."""
    if not array.size:
        return 0.0
    high = max(float(array.max()), -float(array.min()))  # no copy, as weights may be as large as memory
    return high if math.isfinite(high) else float(np.abs(array[np.isfinite(array)]).max(initial=0))


def halved(array: NDArray[np.float32]) -> NDArray[np.float16]:
    """Return numbers in FP16; those beyond its range, as bounds of a Clip may be, become its largest."""
    if _peak(array) > LARGEST:
        array = np.where(np.isfinite(array), np.clip(array, -LARGEST, LARGEST), array)
    return array.astype(np.float16)


def half_weight(source: Prepared, name: str) -> NDArray[np.float16]:
    """Return a large weight in FP16, which is kept for the next time."""
    if name not in source.halves:
        source.halves[name] = halved(source.weight(name))
    return source.halves[name]


# ------------------------------------------------------------------ writing


@dataclass
class _Frame:
    """One graph while it is written: FP16 versions of values by name, and those of which no FP32 version is made yet."""

    graph: GraphProto
    parent: _Frame | None
    weights: dict[str, TensorProto]
    half: dict[str, str] = field(default_factory=dict)
    narrow: set[str] = field(default_factory=set)
    nodes: list[NodeProto] = field(default_factory=list)


class Writer:
    """Writes a model with one choice of nodes in FP16: one Cast a value at most, weights converted, names kept.

    Large weights stay without content; `origin` tells which weight is behind the name of one in FP16, and `halves`
    all values in FP16.
    """

    def __init__(self, source: Prepared, chosen: Mapping[str, Slots], *, keep_io_types: bool = True) -> None:
        self._source, self._chosen = source, chosen
        self._names = {name for scope in source.scopes for name in scope.types}
        self._names |= {node.name for scope in source.scopes for node in scope.graph.node}
        self.halves = {name for scope in source.scopes for name, kind in scope.types.items() if kind == HALF}
        self.origin: dict[str, str] = {}
        graph = source.model.graph
        borders = () if keep_io_types else (*graph.input, *graph.output)
        floats = [info.name for info in borders if info.type.tensor_type.elem_type == FLOAT]
        self._full = {name: unique_name(f"{name}_fp32", self._names) for name in floats}
        self._halved = dict[str, str]()

    def write(self) -> ModelProto:
        """Return the converted model."""
        model = ModelProto()
        model.CopyFrom(self._source.model)
        graph = model.graph
        for info in (*graph.input, *graph.output):
            if info.name in self._full:
                info.type.tensor_type.elem_type = HALF
        self._graph(graph, None)
        self._drop_unused(model)
        return model

    def _graph(self, graph: GraphProto, parent: _Frame | None) -> None:
        given = self._source.given if parent is None else frozenset()
        frame = _Frame(graph, parent, {one.name: one for one in graph.initializer if one.name not in given})
        for info in graph.input if parent is None else ():
            if info.name in self._full:
                frame.half[info.name] = info.name
                frame.narrow.add(info.name)
        for node in graph.node:
            self._node(node, frame)
        for info in graph.output:
            if parent is None and info.name in self._full:
                self._as_half(info.name, frame)
            else:
                self._as_full(info.name, frame)
        del graph.node[:]
        graph.node.extend(frame.nodes)
        infos = [info for info in graph.value_info if info.name not in self.halves and info.name not in frame.half]
        del graph.value_info[:]
        graph.value_info.extend(infos)

    def _node(self, given: NodeProto, frame: _Frame) -> None:
        part = self._chosen.get(given.name, Slots())
        node = NodeProto()
        node.CopyFrom(given)
        for name in consumed(given) - set(given.input):
            self._as_full(name, frame)
        for at, name in enumerate(given.input):
            if at in part.inputs:
                node.input[at] = self._as_half(name, frame)
            elif given.op_type in FOLLOWS and name in frame.narrow:
                node.input[at] = frame.half[name]
            elif name:
                node.input[at] = self._as_full(name, frame)
        for inner in subgraphs(node):
            self._graph(inner, frame)
        frame.nodes.append(node)
        for at, name in enumerate(given.output):
            if at in part.outputs:
                node.output[at] = frame.half[name] = self._half_name(name)
                frame.narrow.add(name)
            elif name:
                node.output[at] = self._full.get(name, name)
        if part.outputs and node.op_type in CHOOSES_TYPE:
            _choose_half(node)
        for at in range(1, len(node.output)) if part.outputs and node.op_type == "LayerNormalization" else ():
            if name := node.output[at]:  # FP32 by definition, but ONNX's own evaluator gives it the input's type
                node.output[at] = unique_name(f"{name}_given", self._names)
                self._cast(node.output[at], name, FLOAT, frame)

    def _half_name(self, name: str) -> str:
        if name not in self._halved:
            self._halved[name] = name if name in self._full else unique_name(f"{name}_fp16", self._names)
            self.halves.add(self._halved[name])
        return self._halved[name]

    def _as_half(self, name: str, frame: _Frame) -> str:
        """Return the name of a value in FP16, which is made here where there is none yet."""
        at: _Frame | None = frame
        while at is not None:
            if name in at.half:
                return at.half[name]
            if name in at.weights:
                at.half[name] = self._half_name(name)
                at.graph.initializer.append(self._half_weight(at, name))
                return at.half[name]
            at = at.parent
        frame.half[name] = self._half_name(name) if frame.parent is None else unique_name(f"{name}_fp16", self._names)
        self.halves.add(frame.half[name])
        self._cast(self._full.get(name, name), frame.half[name], HALF, frame)
        return frame.half[name]

    def _as_full(self, name: str, frame: _Frame) -> str:
        """Return the name of a value in FP32, or whatever its own type is; it is made here where there is none yet."""
        full = self._full.get(name, name)
        if name in frame.narrow:
            frame.narrow.remove(name)
            self._cast(frame.half[name], full, FLOAT, frame)
        return full

    def _cast(self, name: str, made: str, kind: int, frame: _Frame) -> None:
        node = helper.make_node("Cast", [name], [made], name=unique_name(f"{made}_cast", self._names), to=kind)
        frame.nodes.append(node)

    def _half_weight(self, frame: _Frame, name: str) -> TensorProto:
        half = frame.half[name]
        if frame.parent is None and name in self._source.weights:
            self.origin[half] = name
            return TensorProto(name=half, dims=frame.weights[name].dims, data_type=HALF)
        return numpy_helper.from_array(halved(numpy_helper.to_array(frame.weights[name])), half)

    def _drop_unused(self, model: ModelProto) -> None:
        """Drop weights that nothing takes in their type any more, and call their FP16 version by their name."""
        used = {name for body in bodies(model) for node in body.node for name in node.input}
        used |= {info.name for body in bodies(model) for info in body.output} | self._source.given
        held = {one.name for body in bodies(model) for one in body.initializer}
        renamed = {half: name for name, half in self._halved.items() if half in held and name in held - used}
        self.origin = {renamed.get(half, half): name for half, name in self.origin.items()}
        self.halves |= set(renamed.values())
        for body in bodies(model):
            for node in body.node:
                if any(name in renamed for name in node.input):
                    node.input[:] = [renamed.get(name, name) for name in node.input]
            left = [one for one in body.initializer if one.name in used]
            for tensor in left:
                tensor.name = renamed.get(tensor.name, tensor.name)
            copies = [TensorProto.FromString(one.SerializeToString()) for one in left]
            del body.initializer[:]
            body.initializer.extend(copies)


def _choose_half(node: NodeProto) -> None:
    """Let a node that chooses its own type choose FP16."""
    if node.op_type == "Cast":
        next(entry for entry in node.attribute if entry.name == "to").i = HALF
        return
    content = attribute(node, "value")
    number = numpy_helper.to_array(content) if content is not None else np.zeros(1, np.float32)
    del node.attribute[:]
    node.attribute.append(helper.make_attribute("value", numpy_helper.from_array(halved(number), "value")))


# ------------------------------------------------------------------ converting


@dataclass
class Converted:
    """A model in FP16, and how it went.

    `loaded` is whether ONNX Runtime loads it with its own settings, None where that was not tried, and `reason` why
    not, although it loads the source.
    """

    source: Prepared
    choice: Choice
    keep_io_types: bool = True
    obstacle: Obstacle = ""
    loaded: bool | None = None
    reason: str = ""

    @cached_property
    def model(self) -> ModelProto:
        """The model with all weights in it."""
        writer = Writer(self.source, self.choice.slots, keep_io_types=self.keep_io_types)
        model = writer.write()
        for tensor in model.graph.initializer:
            if tensor.name in writer.origin:
                tensor.raw_data = half_weight(self.source, writer.origin[tensor.name]).tobytes()
            elif tensor.name in self.source.weights:
                tensor.raw_data = self.source.weight(tensor.name).tobytes()
        return model


def to_fp16(
    model: ModelProto, *, keep_io_types: bool = True, samples: Sequence[Feeds] = (), keep: Iterable[str] = ()
) -> ModelProto:
    """Convert a model to FP16 and return the new one; `model` stays as it is.

    What FP16 cannot hold, and what a run shows to change the results, stays FP32. `samples` are inputs to prove it
    with, made up where there are none. `keep` names nodes or operators that stay FP32.
    """
    return convert_prepared(prepare(model), keep=keep, samples=samples, keep_io_types=keep_io_types).model


@uncollected()
def convert_prepared(
    source: Prepared, *, keep: Iterable[str] = (), samples: Sequence[Feeds] = (), keep_io_types: bool = True
) -> Converted:
    """Convert a model, prove it by runs, and load it: what changes the results or crashes the runtime stays FP32."""
    choice = choose(source, keep)
    original = Original(source, samples)
    _leave_outside(source, choice, original.outside)
    if not original.obstacle:
        choice.keep(_disproved(source, choice, original), "proof")
        settle(source, choice)
    made = Converted(source, choice, keep_io_types, original.obstacle)
    _load(made)
    return made


def _load(made: Converted) -> None:
    """Load the result with ONNX Runtime's own settings; what crashes it, or what it refuses, goes back to FP32.

    Nothing is to be said against a result where the runtime does not load the source either.
    """
    choice, source = made.choice, made.source
    reason = loads(made.model.SerializeToString())
    if reason and not loads(source.filled().SerializeToString()):

        def loads_without(kept: Iterable[str]) -> bool:
            rest = Choice(choice.without(kept))
            return not loads(replace(made, choice=rest).model.SerializeToString())

        moves = [node.name for scope in source.scopes for node in scope.graph.node if node.op_type == "Transpose"]
        moves = [name for name in moves if name in choice.slots]
        # The most frequent defect is a product behind a transposition.
        choice.keep(fewest(moves if loads_without(moves) else list(choice.slots), loads_without), "crash")
        del made.model
        made.reason = loads(made.model.SerializeToString()) or ""
        reason = made.reason
    made.loaded = None if reason is None else not reason


def _leave_outside(source: Prepared, choice: Choice, outside: set[str]) -> None:
    """Leave in FP32 what takes or makes a value that may leave FP16's range."""
    for scope in source.scopes:
        for node in scope.graph.node:
            part = choice.slots.get(node.name, Slots())
            names = {node.name, *(node.input[at] for at in part.inputs), *(node.output[at] for at in part.outputs)}
            if names & outside:
                choice.keep([node.name], "proof")
    settle(source, choice)


def _disproved(source: Prepared, choice: Choice, original: Original) -> list[str]:
    """Return the nodes that have to stay FP32 so that the results agree; what told last is asked first."""

    def holds(kept: Iterable[str], share: float = 1.0) -> bool:
        with contextlib.suppress(Exception):  # the runtime's errors share no base: what it refuses does not hold
            writer = Writer(source, choice.without(kept))
            model, weights = writer.write(), Weights()
            for name in (tensor.name for tensor in model.graph.initializer):
                if name in writer.origin:
                    weights[name] = half_weight(source, writer.origin[name])
                elif name in source.weights:
                    weights[name] = source.weight(name)
            session = opened(rounded(model, writer.halves), weights)
            found = ((one, run(session, one.given, original.names)) for one in original.runs)
            against = next((one for one, results in found if not one.agrees(results, share)), None)
            original.runs.sort(key=lambda one: one is not against)
            return against is None
        return False

    if holds((), SURE):
        return []
    original.repeat()
    _leave_outside(source, choice, original.outside)
    return [] if holds(()) else fewest(list(choice.slots), holds)
