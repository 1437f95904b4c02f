"""Writes a model in FP16, one Cast a value, and proves it by runs: what changes the results stays FP32."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnx.external_data_helper import uses_external_data

from assistant_addons.onnx.graph import subgraphs, unique_name
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
from assistant_addons.onnx.proof import SEARCHED, SURE, Obstacle, Original, fewest, loading, opened, rounded, run

# ------------------------------------------------------------------ writing


class Writer:
    """Writes a model with one choice of nodes in FP16: one Cast a value at most, right behind what makes the value.

    Its `model` has no content of large weights: `content` gives that. `chosen` are the nodes, `halves` all values in
    FP16.
    """

    def __init__(self, source: Prepared, chosen: Mapping[str, Slots]) -> None:
        self._source, self._slots, self.chosen = source, chosen, chosen.keys()
        self._names = {name for scope in source.scopes for name in scope.types}
        self._names |= {node.name for scope in source.scopes for node in scope.graph.node}
        self.halves = {name for scope in source.scopes for name, kind in scope.types.items() if kind == HALF}
        self._half_of: dict[str, str] = {}  # of a value or weight its FP16 version, as far as the model is written
        self._narrow: set[str] = set()  # values that are made in FP16
        self._origin: dict[str, str] = {}  # of an FP16 weight without content the weight that it is made of
        self._wants_half, self._wants_full = set[str](), set[str]()
        for scope in source.scopes:
            self._wants_full |= {info.name for info in scope.graph.output}
            for node in scope.graph.node:
                part = chosen.get(node.name, Slots())
                for at, name in enumerate(node.input):
                    (self._wants_half if at in part.inputs else self._wants_full).add(name)
        self.model = ModelProto()
        self.model.CopyFrom(source.model)
        self._graph(self.model.graph)

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

    def _graph(self, graph: GraphProto) -> None:
        nodes, weights = list[NodeProto](), list[TensorProto]()
        for info in graph.input:
            nodes += self._cast_made(info.name, FLOAT)
        for tensor in graph.initializer:
            half = tensor.data_type == FLOAT and tensor.name in self._wants_half
            weights += [self._half_weight(tensor)] if half else []
            weights += [tensor] if tensor.name in self._wants_full else []
        for given in graph.node:
            node = self._node(given)
            nodes.append(node)
            for name, made in zip(given.output, node.output, strict=True):
                nodes += self._cast_made(name, HALF if made != name else FLOAT)
        replace_nodes(graph, nodes)
        replace_all(graph.initializer, [TensorProto.FromString(one.SerializeToString()) for one in weights])
        replace_all(graph.value_info, [info for info in graph.value_info if info.name not in self.halves])

    def _node(self, given: NodeProto) -> NodeProto:
        """Write a node with the names of the values that it takes and makes."""
        part, node = self._slots.get(given.name, Slots()), NodeProto()
        node.CopyFrom(given)
        for at, name in enumerate(given.input):
            follows = given.op_type in FOLLOWS and name in self._narrow
            node.input[at] = self._half_of[name] if at in part.inputs or follows else name
        for inner in subgraphs(node):
            self._graph(inner)
        for at, name in enumerate(given.output):
            self._narrow.discard(name)
            if at in part.outputs:
                node.output[at] = self._new_half(name)
                self._narrow.add(name)
        if part.outputs and node.op_type in CHOOSES_TYPE:
            _choose_half(node)
        return node

    def _new_half(self, name: str) -> str:
        self._half_of[name] = unique_name(f"{name}_fp16", self._names)
        self.halves.add(self._half_of[name])
        return self._half_of[name]

    def _cast_made(self, name: str, kind: int) -> list[NodeProto]:
        """Return the Cast behind what makes a value, where somebody wants it in the other type."""
        if kind == HALF and name in self._wants_full:
            return [self._cast(self._half_of[name], name, FLOAT)]
        if kind == FLOAT and name in self._wants_half:
            return [self._cast(name, self._new_half(name), HALF)]
        return []

    def _cast(self, name: str, made: str, kind: int) -> NodeProto:
        return helper.make_node("Cast", [name], [made], name=unique_name(f"{made}_cast", self._names), to=kind)

    def _half_weight(self, tensor: TensorProto) -> TensorProto:
        name = self._new_half(tensor.name)
        if tensor.name in self._source.weights:
            self._origin[name] = tensor.name
            return TensorProto(name=name, dims=tensor.dims, data_type=HALF)
        return numpy_helper.from_array(halved(numpy_helper.to_array(tensor)), name)


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

    def stay_inside() -> None:
        for node in (node for scope in source.scopes for node in scope.graph.node):
            part = choice.slots.get(node.name, Slots())
            values = (*(node.input[at] for at in part.inputs), *(node.output[at] for at in part.outputs))
            if not original.outside.isdisjoint((node.name, *values)):
                choice.keep([node.name], "proof")
        settle(source, choice)

    def holds(kept: Iterable[str], share: float = SEARCHED) -> bool:
        with contextlib.suppress(Exception):  # the runtime's errors share no base: what it refuses does not hold
            writer = Writer(source, choice.without(kept)) if kept else made.writer
            session = opened(rounded(writer.model, writer.halves), writer.content)
            found = ((one, run(session, one.given, original.names)) for one in original.runs)
            against = next((one for one, results in found if not one.agrees(results, share)), None)
            original.runs.sort(key=lambda one: one is not against)  # what told last is asked first
            return against is None
        return False

    stay_inside()
    if not holds((), SURE):
        original.draw(1)
        stay_inside()
        if not holds((), share=1.0):
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

        # First what is known to do it: https://github.com/microsoft/onnxruntime/issues/15494
        moves = [node.name for scope in source.scopes for node in scope.graph.node if node.op_type == "Transpose"]
        choice.keep(moves if loads_without(moves) else fewest(list(choice.slots), loads_without), "crash")
        reason = made.reason = loading(made.filled().SerializeToString())() or ""
    made.loaded = None if reason is None else not reason


# ------------------------------------------------------------------ numbers


def halved(array: NDArray[np.float32]) -> NDArray[np.float16]:
    """Return numbers in FP16; those beyond its range, as bounds of a Clip may be, become its largest."""
    if peak(array) > LARGEST:
        array = np.where(np.isfinite(array), np.clip(array, -LARGEST, LARGEST), array)
    return array.astype(np.float16)
