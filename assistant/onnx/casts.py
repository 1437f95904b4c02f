"""Writes a model whose chosen steps compute in FP16: one Cast per value at most, constants converted, names kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from assistant.onnx.graph import fresh, given_inputs, opsets, subgraphs
from assistant.onnx.halves import FOLLOWS, MAKES, Slots
from assistant.onnx.ranges import Constants
from assistant.onnx.values import FLOAT, HALF, Program, Scope, Step, Value, attribute

FIRST_FREE_IR = 4  # from here on a weight need not be listed among the inputs


class Writer:
    """Writes one program with one choice of steps; `names` tells the name of each value in its own type."""

    def __init__(
        self, program: Program, halves: Mapping[Step, Slots], constants: Constants, *, keep_io_types: bool = True
    ) -> None:
        self.program, self.constants, self.keep_io_types = program, constants, keep_io_types
        self.halves = halves
        self.taken = {name for scope in program.scopes() for name in scope.values}
        self.taken |= {step.node.name for step in program.steps()}
        self.narrow = {v for step, part in halves.items() for i in part.outputs if (v := step.outputs[i]) is not None}
        if not keep_io_types:
            inputs = (program.main.values[info.name] for info in given_inputs(program.model.graph))
            self.narrow |= {value for value in inputs if value.kind == FLOAT}
        self.wants: dict[Value, set[bool]] = defaultdict(set)
        for step in sorted(program.steps(), key=lambda step: step.op in FOLLOWS):
            for index, value in enumerate(step.inputs):
                if value is not None and value.kind == FLOAT:
                    self.wants[value].add(self._wanted(step, index, value))
        self.named: dict[tuple[Value, bool], str] = {}
        for scope in program.scopes():
            for value in scope.values.values():
                if value.kind == FLOAT:
                    self._name(value)

    @property
    def names(self) -> dict[Value, str]:
        """Give the name of each FP32 value's first-hand version in the written model."""
        return {value: self.named[value, value in self.narrow] for value, _half in self.named if value.tensor is None}

    def write(self) -> ModelProto:
        """Write the model."""
        model = ModelProto()
        model.CopyFrom(self.program.model)
        model.ir_version = max(model.ir_version, FIRST_FREE_IR)
        if "" not in opsets(model):
            model.opset_import.add(domain="", version=17)
        self._graph(self.program.main, model.graph)
        if not self.keep_io_types:
            for info in (*model.graph.input, *model.graph.output):
                if info.type.tensor_type.elem_type == FLOAT:
                    info.type.tensor_type.elem_type = HALF
        return model

    def _wanted(self, step: Step, index: int, value: Value) -> bool:
        """Tell whether a step takes a value in FP16; one that only measures it takes what is there for others."""
        if step.op in FOLLOWS:
            only_half = self.wants[value] == {True} and not value.output and step.op != "Cast"
            return value in self.narrow or only_half
        return step in self.halves and index in self.halves[step].inputs

    def _output_half(self, value: Value) -> bool:
        return not self.keep_io_types and value.scope is self.program.main

    def _name(self, value: Value) -> None:
        """Name a value's FP16 and FP32 versions: the one that must or came first keeps the name."""
        wants = self.wants[value]
        if value.output:
            wants.add(self._output_half(value))
            owner = self._output_half(value)
        elif value.tensor is not None:
            owner = wants == {True}
        else:
            owner = value in self.narrow
        self.named[value, owner] = value.name
        self.named[value, not owner] = self._fresh(f"{value.name}_{'fp32' if owner else 'fp16'}")

    def _fresh(self, name: str) -> str:
        return fresh(name, self.taken)

    def _graph(self, scope: Scope, graph: GraphProto) -> None:
        self._weights(scope, graph)
        nodes = [node for value in scope.values.values() if value.maker is None for node in self._casts(value)]
        for step, node in zip(scope.steps, list(graph.node), strict=True):
            nodes.extend(self._written(step, node))
            for value in step.outputs:
                if value is not None:
                    nodes.extend(self._casts(value))
        del graph.node[:]
        graph.node.extend(nodes)
        self._infos(scope, graph)

    def _written(self, step: Step, node: NodeProto) -> Iterator[NodeProto]:
        first = step.outputs[0] if step.outputs else None
        if first is not None and first.tensor is not None and first.kind == FLOAT:
            yield from self._constant(first, node)
            return
        for index, value in enumerate(step.inputs):
            if value is not None and value.kind == FLOAT:
                node.input[index] = self.named[value, self._wanted(step, index, value)]
        for index, value in enumerate(step.outputs):
            if value is not None and value.kind == FLOAT:
                node.output[index] = self.named[value, value in self.narrow]
        if step in self.halves and step.op in MAKES:
            _make_half(node)
        for scope, graph in zip(step.inner, subgraphs(node), strict=True):
            self._graph(scope, graph)
        yield node
        if step in self.halves and step.op == "LayerNormalization":
            yield from self._statistics(node)

    def _statistics(self, node: NodeProto) -> Iterator[NodeProto]:
        """Make FP32 of the further outputs, which are so by definition: ONNX's own evaluator gives the input's type."""
        for index, name in enumerate(node.output):
            if index and name:
                node.output[index] = self._fresh(f"{name}_given")
                yield helper.make_node("Cast", [node.output[index]], [name], name=self._fresh(f"{name}_cast"), to=FLOAT)

    def _casts(self, value: Value) -> Iterator[NodeProto]:
        """Give the Cast to a value's other type, where somebody wants it."""
        if value.kind != FLOAT or value.tensor is not None:
            return
        native = value in self.narrow
        if (not native) in self.wants[value]:
            source, result = self.named[value, native], self.named[value, not native]
            yield helper.make_node(
                "Cast", [source], [result], name=self._fresh(f"{result}_cast"), to=FLOAT if native else HALF
            )

    def _constant(self, value: Value, node: NodeProto) -> Iterator[NodeProto]:
        wants = self.wants[value]
        if wants != {True}:
            node.output[0] = self.named[value, False]
            yield node
        if True in wants:
            name = self.named[value, True]
            yield helper.make_node(
                "Constant", [], [name], name=self._fresh(f"{name}_constant"), value=self._half(value)
            )

    def _weights(self, scope: Scope, graph: GraphProto) -> None:
        """Put the weights in, each in the types that are wanted, and take them from the list of inputs."""
        held = {tensor.name for tensor in graph.initializer}
        inputs = given_inputs(graph)
        if len(inputs) < len(graph.input):
            del graph.input[:]
            graph.input.extend(inputs)
        tensors: list[TensorProto] = []
        for tensor in graph.initializer:
            value = scope.values[tensor.name]
            wants = self.wants[value] if value.kind == FLOAT else {False}
            if wants != {True}:
                tensors.append(value.tensor or tensor)
            if True in wants:
                tensors.append(self._half(value))
        own = [
            (value, self.named[value, False])
            for value in map(scope.values.__getitem__, held)
            if (value, False) in self.named
        ]
        renamed = {value.name: name for value, name in own}
        del graph.initializer[:]
        for tensor in tensors:
            graph.initializer.add().CopyFrom(tensor)
            if tensor.data_type == FLOAT:
                graph.initializer[-1].name = renamed.get(tensor.name, tensor.name)

    def _half(self, value: Value) -> TensorProto:
        return numpy_helper.from_array(self.constants[value].half, self.named[value, True])

    def _infos(self, scope: Scope, graph: GraphProto) -> None:
        """Keep the declared types of what runtimes cannot infer; name a subgraph's outputs as they are called now."""
        infos = [info for info in graph.value_info if info.name in scope.values]
        del graph.value_info[:]
        for info in infos:
            value = scope.values[info.name]
            if value.maker is not None and value.maker.signature is None and value.kind == FLOAT:
                kept = graph.value_info.add()
                kept.CopyFrom(info)
                kept.name = self.named[value, value in self.narrow]
                kept.type.tensor_type.elem_type = HALF if value in self.narrow else FLOAT
        for info in graph.output if scope.parent is not None else ():
            value = scope.find(info.name)
            if value.kind == FLOAT and value.scope is not scope:
                info.name = self.named[value, False]


def _make_half(node: NodeProto) -> None:
    """Let a node that chooses its own type choose FP16."""
    if node.op_type == "Cast":
        next(entry for entry in node.attribute if entry.name == "to").i = HALF
        return
    given = attribute(node, "value")
    number = numpy_helper.to_array(given) if isinstance(given, TensorProto) else np.zeros(1, np.float32)
    del node.attribute[:]
    node.attribute.append(helper.make_attribute("value", numpy_helper.from_array(number.astype(np.float16), "value")))
