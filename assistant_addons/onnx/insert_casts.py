"""Writes a model whose chosen steps compute in FP16: one Cast per value at most, constants converted, names kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from assistant_addons.onnx.fp16_policy import OPERATORS, Constant, Constants, Slots
from assistant_addons.onnx.graph import FIRST_FREE_IR, given_inputs, opsets, subgraphs, unique_name
from assistant_addons.onnx.program import FLOAT, HALF, Program, Scope, Step, Value, attribute


class Writer:
    """Writes one program with one choice of steps."""

    def __init__(
        self, program: Program, converted: Mapping[Step, Slots], constants: Constants, *, keep_io_types: bool = True
    ) -> None:
        self.program, self.constants, self.keep_io_types = program, constants, keep_io_types
        self.converted = converted
        self.taken = {name for scope in program.scopes() for name in scope.values}
        self.taken |= {step.node.name for step in program.steps()}
        self.narrow = {
            v for step, part in converted.items() for i in part.outputs if (v := step.outputs[i]) is not None
        }
        if not keep_io_types:
            given = {info.name for info in given_inputs(program.model.graph)} | program.defaults
            self.narrow |= {one for name in given if (one := program.main.values[name]).kind == FLOAT}
        self.wants: dict[Value, set[bool]] = defaultdict(set)
        for step in sorted(program.steps(), key=lambda step: step.op in OPERATORS.follows):
            for index, value in enumerate(step.inputs):
                if value is not None and value.kind == FLOAT:
                    self.wants[value].add(self._wanted(step, index, value))
        self.named: dict[tuple[Value, bool], str] = {}
        for scope in program.scopes():
            for value in scope.values.values():
                if value.kind == FLOAT:
                    self._name(value)

    def write(self) -> ModelProto:
        """Return the converted model."""
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
        """Return whether a step takes a value in FP16; one that only measures it takes what is there for others."""
        if step.op in OPERATORS.follows:
            only_half = self.wants[value] == {True} and not value.output and step.op != "Cast"
            return value in self.narrow or only_half
        return step in self.converted and index in self.converted[step].inputs

    def _name(self, value: Value) -> None:
        """Name a value's FP16 and FP32 versions: the one that must, or that came first, keeps the name."""
        wants = self.wants[value]
        if value.output:
            keeps_name = not self.keep_io_types and value.scope is self.program.main
            wants.add(keeps_name)
        elif value.tensor is not None:
            keeps_name = wants == {True}
        else:
            keeps_name = value in self.narrow
        self.named[value, keeps_name] = value.name
        self.named[value, not keeps_name] = unique_name(f"{value.name}_{'fp32' if keeps_name else 'fp16'}", self.taken)

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
        if step in self.converted and step.op in OPERATORS.chooses_type:
            _choose_half(node)
        for scope, graph in zip(step.inner, subgraphs(node), strict=True):
            self._graph(scope, graph)
        yield node
        if step in self.converted and step.op == "LayerNormalization":
            yield from self._statistics(node)

    def _statistics(self, node: NodeProto) -> Iterator[NodeProto]:
        """Make FP32 of the further outputs, which are so by definition: ONNX's own evaluator gives the input's type."""
        for index, name in enumerate(node.output):
            if index and name:
                node.output[index] = unique_name(f"{name}_given", self.taken)
                yield self._node("Cast", [node.output[index]], name, "cast", to=FLOAT)

    def _constant(self, value: Value, node: NodeProto) -> Iterator[NodeProto]:
        wants = self.wants[value]
        if wants != {True}:
            node.output[0] = self.named[value, False]
            yield node
        if True in wants:
            yield self._node("Constant", [], self.named[value, True], "constant", value=self._half(value))

    def _casts(self, value: Value) -> Iterator[NodeProto]:
        """Yield the Cast to a value's other type, where somebody wants it."""
        native = value in self.narrow
        if value.kind == FLOAT and value.tensor is None and (not native) in self.wants[value]:
            kind = FLOAT if native else HALF
            yield self._node("Cast", [self.named[value, native]], self.named[value, not native], "cast", to=kind)

    def _node(self, op: str, inputs: list[str], output: str, hint: str, **attributes: Any) -> NodeProto:  # noqa: ANN401 - as onnx has them
        name = unique_name(f"{output}_{hint}", self.taken)
        return helper.make_node(op, inputs, [output], name=name, **attributes)

    def _weights(self, scope: Scope, graph: GraphProto) -> None:
        """Put the weights in, each in the types that are wanted; only those that a caller may give stay inputs."""
        defaults = self.program.defaults if scope.parent is None else frozenset()
        weights = {tensor.name for tensor in graph.initializer} - defaults
        inputs = [info for info in graph.input if info.name not in weights]
        del graph.input[:]
        graph.input.extend(inputs)
        held = [scope.values[tensor.name] for tensor in graph.initializer]
        del graph.initializer[:]
        for value in held:
            if value.name in defaults:
                graph.initializer.append(self._default(value))
                continue
            wants = self.wants[value] if value.kind == FLOAT else {False}
            if wants != {True} and value.tensor is not None:
                graph.initializer.add().CopyFrom(value.tensor)
                graph.initializer[-1].name = self.named.get((value, False), value.name)
            if True in wants:
                graph.initializer.append(self._half(value))

    def _default(self, value: Value) -> TensorProto:
        """Return what stands where a caller gives nothing, in the type of the input."""
        tensor = self.program.weights[value.name]
        return numpy_helper.from_array(Constant(tensor).half, value.name) if value in self.narrow else tensor

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


def _choose_half(node: NodeProto) -> None:
    """Let a node that chooses its own type choose FP16."""
    if node.op_type == "Cast":
        next(entry for entry in node.attribute if entry.name == "to").i = HALF
        return
    given = attribute(node, "value")
    number = numpy_helper.to_array(given) if isinstance(given, TensorProto) else np.zeros(1, np.float32)
    del node.attribute[:]
    node.attribute.append(helper.make_attribute("value", numpy_helper.from_array(number.astype(np.float16), "value")))
