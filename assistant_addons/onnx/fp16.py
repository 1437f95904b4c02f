"""Writes a model in FP16, one Cast a value, and proves it by runs: what changes the results stays FP32."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnx.external_data_helper import uses_external_data

from assistant_addons.onnx.graph import bodies, consumed, subgraphs, unique_name
from assistant_addons.onnx.inputs import Feeds
from assistant_addons.onnx.keep import CHOOSES_TYPE, FOLLOWS, Choice, Slots, choose, peak, settle
from assistant_addons.onnx.prepare import (
    FLOAT,
    HALF,
    LARGEST,
    Content,
    Prepared,
    attribute,
    prepare,
    replace_all,
    replace_nodes,
)
from assistant_addons.onnx.proof import Obstacle, Original, fewest, loading, opened, rounded, run

# ------------------------------------------------------------------ writing


@dataclass
class _Frame:
    """One graph while it is written: the FP16 versions of values by name, and values of which there is no other yet."""

    graph: GraphProto
    parent: _Frame | None
    weights: frozenset[str]
    half: dict[str, str] = field(default_factory=dict)
    narrow: set[str] = field(default_factory=set)
    nodes: list[NodeProto] = field(default_factory=list)


class Writer:
    """Writes a model with one choice of nodes in FP16: one Cast a value at most, weights converted.

    Its `model` has no content of large weights: `content` gives that. `chosen` are the nodes, `halves` all values in
    FP16.
    """

    def __init__(self, source: Prepared, chosen: Mapping[str, Slots]) -> None:
        self._source, self._slots, self.chosen = source, chosen, chosen.keys()
        self._names = {name for scope in source.scopes for name in scope.types}
        self._names |= {node.name for scope in source.scopes for node in scope.graph.node}
        self.halves = {name for scope in source.scopes for name, kind in scope.types.items() if kind == HALF}
        self._half_of: dict[str, str] = {}
        self._origin: dict[str, str] = {}
        self.model = ModelProto()
        self.model.CopyFrom(source.model)
        self._graph(self.model.graph, None)
        self._drop_unused()

    def content(self, tensor: TensorProto) -> NDArray[Any] | None:
        """Return the numbers of a weight of the model that has no content; None for any other."""
        if tensor.name not in self._origin:
            return self._source.content(tensor)
        halves, origin = self._source.halves, self._source.weights[self._origin[tensor.name]]
        half, full = halves.get(origin.name), self._source.content(origin)
        if half is None and full is not None:
            half = halved(full)
            halves |= {} if uses_external_data(origin) else {origin.name: half}
        return half

    def _graph(self, graph: GraphProto, parent: _Frame | None) -> None:
        given = self._source.given if parent is None else frozenset()
        frame = _Frame(graph, parent, frozenset(one.name for one in graph.initializer) - given)
        for node in graph.node:
            self._node(node, frame)
        for info in graph.output:
            self._as_full(info.name, frame)
        replace_nodes(graph, frame.nodes)
        replace_all(graph.value_info, [info for info in graph.value_info if info.name not in self.halves])

    def _node(self, given: NodeProto, frame: _Frame) -> None:
        part, follows = self._slots.get(given.name, Slots()), given.op_type in FOLLOWS
        node = NodeProto()
        node.CopyFrom(given)
        for name in consumed(given) - set(given.input):
            self._as_full(name, frame)
        for at, name in enumerate(given.input):
            half = at in part.inputs or (follows and name in frame.narrow)
            node.input[at] = (self._as_half if half else self._as_full)(name, frame)
        for inner in subgraphs(node):
            self._graph(inner, frame)
        for at, name in enumerate(given.output):
            node.output[at] = self._half_name(name) if at in part.outputs else name
        if part.outputs and node.op_type in CHOOSES_TYPE:
            _choose_half(node)
        frame.nodes.append(node)
        for at, name in enumerate(given.output):
            if at in part.outputs:
                frame.half[name] = node.output[at]
                frame.narrow.add(name)

    def _half_name(self, name: str) -> str:
        if name not in self._half_of:
            self._half_of[name] = unique_name(f"{name}_fp16", self._names)
            self.halves.add(self._half_of[name])
        return self._half_of[name]

    def _as_half(self, name: str, frame: _Frame) -> str:
        """Return the name of a value in FP16, which is made where there is none yet."""
        at: _Frame | None = frame
        while at is not None:
            if name in at.weights and name not in at.half:
                at.half[name] = self._half_name(name)
                tensor = next(one for one in at.graph.initializer if one.name == name)
                at.graph.initializer.append(self._half_weight(tensor, at.half[name]))
            if name in at.half:
                return at.half[name]
            at = at.parent
        half = self._half_name(name) if frame.parent is None else unique_name(f"{name}_fp16", self._names)
        frame.half[name] = half
        self.halves.add(half)
        self._cast(name, half, HALF, frame)
        return half

    def _as_full(self, name: str, frame: _Frame) -> str:
        """Return the name of a value in FP32, or whatever its own type is; it is made where there is none yet."""
        if name in frame.narrow:
            frame.narrow.remove(name)
            self._cast(frame.half[name], name, FLOAT, frame)
        return name

    def _cast(self, name: str, made: str, kind: int, frame: _Frame) -> None:
        node = helper.make_node("Cast", [name], [made], name=unique_name(f"{made}_cast", self._names), to=kind)
        frame.nodes.append(node)

    def _half_weight(self, tensor: TensorProto, name: str) -> TensorProto:
        if tensor.name in self._source.weights:
            self._origin[name] = tensor.name
            return TensorProto(name=name, dims=tensor.dims, data_type=HALF)
        return numpy_helper.from_array(halved(numpy_helper.to_array(tensor)), name)

    def _drop_unused(self) -> None:
        """Drop weights that nothing takes in their type any more."""
        graphs = list(bodies(self.model))
        used = {name for graph in graphs for node in graph.node for name in node.input}
        used |= {info.name for graph in graphs for info in graph.output} | self._source.given
        for graph in graphs:
            left = [TensorProto.FromString(one.SerializeToString()) for one in graph.initializer if one.name in used]
            replace_all(graph.initializer, left)


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
    obstacle: Obstacle = ""
    loaded: bool | None = None
    reason: str = ""
    _writer: Writer | None = None

    @property
    def writer(self) -> Writer:
        """The writer of the model, whose large weights have no content."""
        if self._writer is None or self._writer.chosen != self.choice.slots.keys():
            self._writer = Writer(self.source, dict(self.choice.slots))
        return self._writer

    def filled(self) -> ModelProto:
        """Return the model with all weights in it."""
        return _filled(self.writer.model, self.writer.content)


def _filled(model: ModelProto, content: Content) -> ModelProto:
    whole = ModelProto()
    whole.CopyFrom(model)
    for tensor in whole.graph.initializer:
        if (array := content(tensor)) is not None:
            tensor.raw_data = array.tobytes()
    return whole


def to_fp16(model: ModelProto, *, samples: Sequence[Feeds] = (), keep: Iterable[str] = ()) -> ModelProto:
    """Convert a model to FP16 and return the new one; `model` stays as it is.

    What FP16 cannot hold, and what a run shows to change the results, stays FP32. `samples` are inputs to prove it
    with, made up where there are none. `keep` names nodes or operators that stay FP32.
    """
    return convert_prepared(prepare(model), keep, samples).filled()


def convert_prepared(source: Prepared, keep: Iterable[str] = (), samples: Sequence[Feeds] = ()) -> Converted:
    """Convert a model, prove it by runs, and load it: what changes the results or crashes the runtime stays FP32."""
    choice = choose(source, keep)
    made = Converted(source, choice)
    answer = None if source.is_giant else loading(made.filled().SerializeToString())  # beside the runs
    original, chosen = Original(source, samples), len(choice.slots)
    made.obstacle = original.obstacle
    if not original.obstacle:
        _prove(made, original)
    del original  # and its session, which has a copy of the weights
    if answer:
        reason = answer()
        if len(choice.slots) < chosen:
            reason = loading(made.filled().SerializeToString())()
        _settle_load(made, reason)
    return made


def _prove(made: Converted, original: Original) -> None:
    """Leave in FP32 what may leave FP16's range, and what has to stay so that the results agree."""
    source, choice = made.source, made.choice
    for node in (node for scope in source.scopes for node in scope.graph.node):
        part = choice.slots.get(node.name, Slots())
        values = (*(node.input[at] for at in part.inputs), *(node.output[at] for at in part.outputs))
        if not original.outside.isdisjoint((node.name, *values)):
            choice.keep([node.name], "proof")
    settle(source, choice)

    def holds(kept: Iterable[str]) -> bool:
        with contextlib.suppress(Exception):  # the runtime's errors share no base: what it refuses does not hold
            writer = Writer(source, choice.without(kept)) if kept else made.writer
            session = opened(rounded(writer.model, writer.halves), writer.content)
            found = ((one, run(session, one.given, original.names)) for one in original.runs)
            against = next((one for one, results in found if not one.agrees(results)), None)
            original.runs.sort(key=lambda one: one is not against)  # what told last is asked first
            return against is None
        return False

    if not holds(()):
        choice.keep(fewest(list(choice.slots), holds), "proof")
        settle(source, choice)


def _settle_load(made: Converted, reason: str | None) -> None:
    """Take how ONNX Runtime loaded the result; what crashes it, or what it refuses, goes back to FP32.

    Nothing is to be said against a result where the runtime does not load the source either.
    """
    choice, source = made.choice, made.source
    if reason and not loading(_filled(source.model, source.content).SerializeToString())():

        def loads_without(kept: Iterable[str]) -> bool:
            part = replace(made, choice=Choice(choice.without(kept)))
            return not loading(part.filled().SerializeToString())()

        choice.keep(fewest(list(choice.slots), loads_without), "crash")
        reason = made.reason = loading(made.filled().SerializeToString())() or ""
    made.loaded = None if reason is None else not reason


# ------------------------------------------------------------------ numbers


def halved(array: NDArray[np.float32]) -> NDArray[np.float16]:
    """Return numbers in FP16; those beyond its range, as bounds of a Clip may be, become its largest."""
    if peak(array) > LARGEST:
        array = np.where(np.isfinite(array), np.clip(array, -LARGEST, LARGEST), array)
    return array.astype(np.float16)
