"""A model as values and steps: who makes what, who takes it, of which element type, in which scope.

An intermediate form of our own: onnx-ir 1.1.0, the newest on 2026-11-27, drops sparse weights without a word, refuses
models with sparse constants or maps, and infers shapes only by way of protobuf and back.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnx.inliner
from onnx import (
    GraphProto,
    ModelProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
    TensorShapeProto,
    helper,
    numpy_helper,
    shape_inference,
)
from onnx.external_data_helper import uses_external_data

from assistant_addons.onnx.definitions import Signature, signature
from assistant_addons.onnx.graph import bodies, defaults, opsets, ordered, plain_domain, subgraphs
from assistant_addons.onnx.operators import described

FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16
UNKNOWN, NO_TENSOR = 0, -1  # beside the element types of TensorProto
RUNTIME = "com.microsoft"
# Numbers of all sparse tensors together, 1 GB in FP32: a sparse tensor of a few bytes may have any shape (chosen).
MOST_SPREAD = 2**28
# A larger tensor says nothing about shapes, as no list of sizes is longer: shape inference need not see it (chosen).
SMALL_BYTES = 4096


@dataclass(eq=False, slots=True)
class Value:
    """One value of one scope; `kind` is its element type, `UNKNOWN`, or `NO_TENSOR` for sequences, maps and the like.

    `tensor` is set for constants. `shape` holds None for sizes that are not known, and is None itself likewise.
    """

    name: str
    kind: int
    scope: Scope
    tensor: TensorProto | None = None
    shape: tuple[int | None, ...] | None = None
    maker: Step | None = None
    takers: list[Step] = field(default_factory=list)
    output: bool = False


@dataclass(eq=False, slots=True)
class Step:
    """A node with its values; absent optional inputs and outputs are None; `inner` are the scopes of its subgraphs."""

    node: NodeProto
    scope: Scope
    op: str  # with its domain where that is not ONNX's own
    inputs: list[Value | None]
    outputs: list[Value | None] = field(default_factory=list)
    inner: list[Scope] = field(default_factory=list)
    version: int = 1  # of the operator's domain in the model
    signature: Signature | None = None  # None where ONNX does not define the operator

    def floats(self) -> Iterator[Value]:
        """Yield the FP32 tensors that it takes and makes."""
        for value in (*self.inputs, *self.outputs):
            if value is not None and value.kind == FLOAT:
                yield value


@dataclass(eq=False, slots=True)
class Scope:
    """One graph with its values by name; a name that it lacks is its parent's."""

    graph: GraphProto
    parent: Scope | None = None
    values: dict[str, Value] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)

    def find(self, name: str) -> Value:
        """Find a value here or outside; one that nothing makes is of unknown type."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.parent
        return self.values.setdefault(name, Value(name, UNKNOWN, self))


@dataclass(eq=False, slots=True)
class Program:
    """A model whose large weights stay where they were: `weights` are the main graph's tensors by name.

    Those of them in `defaults` are inputs, too, that a caller may leave out, and no constants.
    """

    model: ModelProto
    weights: Mapping[str, TensorProto]
    main: Scope
    defaults: frozenset[str] = frozenset()

    def scopes(self) -> Iterator[Scope]:
        """Yield the scope of every graph, outer ones first."""
        todo = [self.main]
        while todo:
            scope = todo.pop()
            yield scope
            todo.extend(inner for step in scope.steps for inner in step.inner)

    def steps(self) -> Iterator[Step]:
        """Yield the steps of all graphs."""
        for scope in self.scopes():
            yield from scope.steps

    def renewed(self) -> Program:
        """Return the program after its nodes were changed: functions inlined, nodes sorted, types inferred anew."""
        return _analysed(self.model, self.weights)

    def filled(self) -> ModelProto:
        """Return the model with its weights put back."""
        whole = ModelProto()
        whole.CopyFrom(self.model)
        for tensor in whole.graph.initializer:
            if tensor.name in self.weights:
                tensor.CopyFrom(self.weights[tensor.name])
        return whole


def attribute(node: NodeProto, name: str, default: object = None) -> Any:  # noqa: ANN401 - as onnx has them
    """Return the value of a node's attribute, or `default`."""
    for entry in node.attribute:
        if entry.name == name:
            return helper.get_attribute_value(entry)
    return default


def constant_input(step: Step, index: int) -> list[Any] | None:
    """Return the numbers of an input that is a constant; None where it is computed, left out or was not read."""
    value = step.inputs[index] if len(step.inputs) > index else None
    if value is None or value.tensor is None:
        return None
    return numbers(value.tensor)


def numbers(tensor: TensorProto) -> list[Any] | None:
    """Return a tensor's numbers in row-major order; None where they were not read (see `load_model`)."""
    if uses_external_data(tensor):
        return None
    try:
        return list(numpy_helper.to_array(tensor).ravel().tolist())
    except ValueError:  # it holds no more than its shape
        return None


def program(model: ModelProto) -> Program:
    """Analyse a model: functions are inlined, nodes sorted, types inferred. `model` itself stays as it is."""
    return _analysed(skeleton(model), {tensor.name: tensor for tensor in model.graph.initializer})


def skeleton(model: ModelProto) -> ModelProto:
    """Copy a model without the contents of its large weights."""
    bare = ModelProto()
    for name in ("ir_version", "producer_name", "producer_version", "domain", "model_version", "doc_string"):
        setattr(bare, name, getattr(model, name))
    for name in ("opset_import", "metadata_props", "functions", "training_info"):
        getattr(bare, name).extend(getattr(model, name))
    graph = bare.graph
    graph.name, graph.doc_string = model.graph.name, model.graph.doc_string
    for name in ("node", "input", "output", "value_info", "sparse_initializer", "quantization_annotation"):
        getattr(graph, name).extend(getattr(model.graph, name))
    for tensor in model.graph.initializer:
        if tensor.data_type == FLOAT and (len(tensor.raw_data) > SMALL_BYTES or len(tensor.float_data) > SMALL_BYTES):
            graph.initializer.add(name=tensor.name, dims=tensor.dims, data_type=tensor.data_type)
        else:
            graph.initializer.add().CopyFrom(tensor)
    return bare


def _analysed(bare: ModelProto, weights: Mapping[str, TensorProto]) -> Program:
    if bare.functions:
        _write_defaults(bare)
        bare = onnx.inliner.inline_local_functions(bare)
    _complete_imports(bare)
    left = MOST_SPREAD
    for graph in bodies(bare):
        given = list(graph.node)
        nodes = ordered(given)
        if nodes is not None and any(one is not other for one, other in zip(nodes, given, strict=True)):
            replace_nodes(graph, nodes)
        left -= _spread(graph, left)
    bare = _inferred(bare)
    loose = defaults(bare)
    made = Program(bare, weights, _scope(bare.graph, None, opsets(bare), weights, loose), loose)
    for step in made.steps():
        _complete_types(step)
    return made


def replace_nodes(graph: GraphProto | onnx.FunctionProto, nodes: list[NodeProto]) -> None:
    """Put these nodes, which may be the graph's own, in place of all that a graph has."""
    copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)


def _write_defaults(bare: ModelProto) -> None:
    """Write the default attributes of local functions out at each call, as onnx's inliner forgets them."""
    defaults = {(plain_domain(one.domain), one.name, one.overload): one.attribute_proto for one in bare.functions}
    for body in bodies(bare):
        for node in body.node:
            given = {entry.name for entry in node.attribute}
            known = defaults.get((plain_domain(node.domain), node.op_type, node.overload), ())
            node.attribute.extend(entry for entry in known if entry.name not in given)


def _complete_imports(bare: ModelProto) -> None:
    """Call ONNX's own domain by its short name, as the checker wants it, and import ONNX Runtime's where it is used."""
    for entry in bare.opset_import:
        entry.domain = plain_domain(entry.domain)
    for graph in bodies(bare):
        for node in graph.node:
            if node.domain == "ai.onnx":
                node.domain = ""
            elif node.domain == RUNTIME and RUNTIME not in opsets(bare):
                bare.opset_import.add(domain=RUNTIME, version=1)


def _spread(graph: GraphProto | onnx.FunctionProto, most: int) -> int:
    """Write sparse constants out, as every runtime does when it loads them, and return how many numbers that made.

    A broken one stays, and so does one that would make more than `most`.
    """
    made = 0
    for node in graph.node:
        for entry in node.attribute if node.op_type == "Constant" else ():
            if entry.name == "sparse_value" and (whole := _dense(entry.sparse_tensor, most - made)) is not None:
                entry.CopyFrom(helper.make_attribute("value", whole))
                made += math.prod(whole.dims)
    if isinstance(graph, GraphProto):
        for sparse in list(graph.sparse_initializer):
            if (whole := _dense(sparse, most - made)) is not None:
                graph.initializer.append(whole)
                graph.sparse_initializer.remove(sparse)
                made += math.prod(whole.dims)
    return made


def _dense(sparse: SparseTensorProto, most: int) -> TensorProto | None:
    if math.prod(sparse.dims) > most:
        return None
    with contextlib.suppress(ValueError, TypeError):
        return dense(sparse)
    return None


def dense(sparse: SparseTensorProto) -> TensorProto:
    """Write a sparse tensor out; raise `ValueError` for one whose indices and values do not fit its shape."""
    name, shape = sparse.values.name, tuple(sparse.dims)
    if uses_external_data(sparse.values) or uses_external_data(sparse.indices):
        raise ValueError(name)
    values, places = numpy_helper.to_array(sparse.values).ravel(), numpy_helper.to_array(sparse.indices)
    if sparse.values.data_type == TensorProto.STRING or places.dtype.kind not in "iu":
        raise ValueError(name)
    if places.ndim > 1:  # a row of coordinates for each value
        if ((places < 0) | (places >= np.asarray(shape))).any():
            raise ValueError(name)
        places = np.ravel_multi_index(tuple(places.T), shape)
    whole = np.zeros(math.prod(shape), values.dtype)
    if len(places) != len(values) or ((places < 0) | (places >= whole.size)).any():
        raise ValueError(name)
    whole[places] = values
    return numpy_helper.from_array(whole.reshape(shape), name)


def _drop_shapes(bare: ModelProto) -> None:
    """Drop the declared shapes of inner values, as a stale one misleads every runtime.

    Exporters list weights among the inner values, too: those have the shapes of their tensors.
    """
    for graph in bodies(bare):
        weights = {tensor.name for tensor in getattr(graph, "initializer", ())}
        for value in graph.value_info:
            if value.type.HasField("tensor_type") and value.name not in weights:
                value.type.tensor_type.ClearField("shape")


def _inferred(bare: ModelProto) -> ModelProto:
    """Infer types and shapes anew."""
    _drop_shapes(bare)
    try:
        return shape_inference.infer_shapes(bare)
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError):
        return bare


def _scope(
    graph: GraphProto,
    parent: Scope | None,
    versions: dict[str, int],
    weights: Mapping[str, TensorProto],
    given: Collection[str] = (),
) -> Scope:
    scope = Scope(graph, parent)
    declared = {info.name: info for info in (*graph.value_info, *graph.output, *graph.input)}
    outputs = {info.name for info in graph.output}

    def value(name: str, maker: Step | None = None) -> Value:
        kind, shape = _type(declared[name]) if name in declared else (UNKNOWN, None)
        scope.values[name] = Value(name, kind, scope, shape=shape, maker=maker, output=name in outputs)
        return scope.values[name]

    for info in graph.input:
        value(info.name)
    for tensor in graph.initializer:
        if tensor.name not in given:
            _make_constant(value(tensor.name), weights.get(tensor.name, tensor) if parent is None else tensor)
    for node in graph.node:
        inputs = [scope.find(name) if name else None for name in node.input]
        domain = plain_domain(node.domain)
        op = f"{domain}.{node.op_type}" if domain else node.op_type
        version = versions.get(domain, 1)
        step = Step(node, scope, op, inputs, version=version)
        step.signature = signature(domain, node.op_type, version) if described(domain, node.op_type, version) else None
        step.inner = [_scope(inner, scope, versions, weights) for inner in subgraphs(node)]
        for taken in {id(taken): taken for taken in inputs if taken is not None}.values():
            taken.takers.append(step)
        step.outputs = [value(name, step) if name else None for name in node.output]
        if node.op_type == "Constant" and step.outputs and step.outputs[0] is not None:
            for entry in node.attribute:
                if (content := _constant(entry)) is not None:
                    _make_constant(step.outputs[0], content)
        scope.steps.append(step)
    return scope


def _type(info: onnx.ValueInfoProto) -> tuple[int, tuple[int | None, ...] | None]:
    which = info.type.WhichOneof("value")
    if which != "tensor_type":
        return (UNKNOWN if which is None else NO_TENSOR), None
    tensor = info.type.tensor_type
    if not tensor.HasField("shape"):
        return tensor.elem_type, None
    return tensor.elem_type, tuple(size_of(dim) for dim in tensor.shape.dim)


def size_of(dim: TensorShapeProto.Dimension) -> int | None:
    """Return a size that a model names; None for one that is open, which some exporters write as -1."""
    return dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else None


def _make_constant(value: Value, tensor: TensorProto) -> None:
    value.tensor, value.kind, value.shape = tensor, tensor.data_type, tuple(tensor.dims)


def _constant(entry: onnx.AttributeProto) -> TensorProto | None:
    """Return what an attribute of a Constant node holds; None for text, and for what is sparse."""
    content = helper.get_attribute_value(entry)
    if isinstance(content, TensorProto):
        return content
    single = isinstance(content, int | float)
    if not single and entry.name not in {"value_floats", "value_ints"}:
        return None
    held, dims = ([content], []) if single else (content, [len(content)])
    if isinstance(content, int) or entry.name == "value_ints":
        return TensorProto(dims=dims, data_type=TensorProto.INT64, int64_data=held)
    return TensorProto(dims=dims, data_type=FLOAT, float_data=held)


def _complete_types(step: Step) -> None:
    """Set for outputs that inference left open the type of an input, where the definition says that they share it.

    ONNX Runtime's own operators, which ONNX does not define, are defined by the runtime's tables.
    """
    form = step.signature or signature(plain_domain(step.node.domain), step.node.op_type, step.version)
    bound: dict[str, int] = {}
    for index, value in enumerate(step.inputs if form.inputs else ()):
        if value is not None and value.kind > 0:
            bound.setdefault(form.input(index), value.kind)
    for index, value in enumerate(step.outputs if form.outputs else ()):
        if value is not None and value.kind == UNKNOWN:
            value.kind = bound.get(form.output(index), UNKNOWN)
