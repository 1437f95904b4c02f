"""Brings a model into one form: functions inlined, nodes sorted and named, constants as weights, types known.

Imports nothing of the assistant, as a child in another Python needs it, too.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.inliner
import onnx.version_converter
from numpy.typing import NDArray
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper
from onnx.external_data_helper import uses_external_data

from assistant_addons.onnx.graph import (
    FIRST_FREE_IR,
    KNOWN_IR,
    bodies,
    opsets,
    ordered,
    plain_domain,
    subgraphs,
    unique_name,
)

FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16
UNKNOWN, NO_TENSOR = 0, -1  # beside the element types of TensorProto
RUNTIME = "com.microsoft"
SMALL_BYTES = 4096  # a smaller weight stays in the graph, where shape inference may read it (chosen)
LARGEST = 65504.0  # of FP16
MOST_BYTES = 2**31 - 2**27  # protobuf ends at 2 GB
# Of those that ONNX Runtime guarantees to run: https://onnxruntime.ai/docs/reference/compatibility.html
FIRST_OPSET = 7
# The newest rows of data/dml.json are for opset 21; later than here, an operator, or what it is fused to, leaves the
# device.
LAST_MATCHED = 21
LAST_OF = {"Erf": 19, "Gelu": 19, "GridSample": 19, "ScatterElements": 17, "ScatterND": 17}
# The converter has no sound way back from these opsets (onnx 1.23): the scale of GroupNormalization had another
# meaning, AveragePool another last window, and the definition of AffineGrid is one that ONNX Runtime refuses.
NO_WAY_BACK = {"AffineGrid": 20, "AveragePool": 19, "GroupNormalization": 21}
# Nor has it one for these, which were given types, an input, an attribute, or new names of modes, and can stay.
RESTAMPED = {"ConstantOfShape", "GlobalMaxPool", "GridSample", "LpPool", "Pad"}
MODES = {b"linear": b"bilinear", b"cubic": b"bicubic"}  # of GridSample from opset 20 on, and before
ASIDE = "assistant.aside"  # the domain of nodes that the converter leaves alone

# They move numbers about and change none.
MOVES = frozenset({
    "Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Reshape",
    "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze",
})  # fmt: skip
# From an integer, a size, a threshold or a condition back to what it is computed from, the way leads through these.
ARITHMETIC = MOVES | {
    "Abs", "Add", "And", "Cast", "Ceil", "Clip", "ConstantOfShape", "CumSum", "Div", "Equal", "Exp", "Floor", "Greater",
    "GreaterOrEqual", "Less", "LessOrEqual", "Log", "Max", "Min", "Mod", "Mul", "Neg", "Not", "Or", "Pow", "Range",
    "Reciprocal", "ReduceMax", "ReduceMin", "ReduceSum", "Round", "Sigmoid", "Sign", "Sqrt", "Sub", "Sum", "Tanh",
    "Where",
}  # fmt: skip

# What gives the numbers of an initializer that has none in its model, and None for any other.
Content = Callable[[TensorProto], NDArray[Any] | None]


@dataclass
class Scope:
    """One graph with what is visible in it by name: element types, the nodes that make values, constants."""

    graph: GraphProto
    types: dict[str, int]
    makers: dict[str, NodeProto]
    constants: dict[str, TensorProto]
    versions: dict[str, int]  # of operators, by domain


@dataclass
class Prepared:
    """A model in one form, whose large weights lie beside it: `weights` are the main graph's by name.

    `folder` is where external data lie; `changes` tell the opset that was tried, and why it was not possible.
    """

    model: ModelProto
    weights: dict[str, TensorProto]
    folder: Path
    scopes: list[Scope] = field(default_factory=list)
    changes: list[tuple[str, str]] = field(default_factory=list)
    halves: dict[str, NDArray[np.float16]] = field(default_factory=dict)  # of weights in memory, once they were made

    @property
    def is_giant(self) -> bool:
        """Whether its weights are too large to be handed over in one piece."""
        return bool(sum(math.prod(tensor.dims) * 4 for tensor in self.weights.values()) > MOST_BYTES)

    def content(self, tensor: TensorProto) -> NDArray[Any] | None:
        """Return the numbers of a weight that lies beside, None for any other; a file is mapped, not read."""
        if tensor.name not in self.weights:
            return None
        tensor = self.weights[tensor.name]
        if not uses_external_data(tensor):
            return np.asarray(numpy_helper.to_array(tensor))
        entries = {entry.key: entry.value for entry in tensor.external_data}
        file, offset = self.folder / entries["location"], int(entries.get("offset", "0"))
        return np.memmap(file, helper.tensor_dtype_to_np_dtype(tensor.data_type), "r", offset, tuple(tensor.dims))


def attribute(node: NodeProto, name: str, default: object = None) -> Any:  # noqa: ANN401 - as onnx has them
    """Return the value of a node's attribute, or `default`."""
    return next((helper.get_attribute_value(one) for one in node.attribute if one.name == name), default)


def numbers(tensor: TensorProto | None) -> NDArray[Any] | None:
    """Return a tensor's numbers; None for none, for text, and where they were not read (see `load_model`)."""
    if tensor is None or uses_external_data(tensor) or tensor.data_type == TensorProto.STRING:
        return None
    try:
        return np.asarray(numpy_helper.to_array(tensor))
    except ValueError:  # it holds no more than its shape
        return None


def prepare(model: ModelProto, folder: Path = Path(), *, lower: bool = False) -> Prepared:
    """Bring a model, which stays as it is, into one form; with `lower` to the opset that suits DirectML best.

    `folder` is where its external data lie.
    """
    bare, weights = skeleton(model)
    made = Prepared(inlined(bare), weights, folder)
    _tidy(made.model)
    if lower or opsets(bare).get("", 0) < FIRST_OPSET:
        made.model = _at_best_opset(made.model, made.changes)
    for tensor in made.model.graph.initializer:  # what were constants
        if tensor.data_type == FLOAT and tensor.ByteSize() > SMALL_BYTES:
            made.weights[tensor.name] = TensorProto.FromString(tensor.SerializeToString())
            tensor.ClearField("raw_data")
            tensor.ClearField("float_data")
    _open_sizes(made.model.graph)
    made.model = inferred(made.model)
    for info in made.model.graph.output:
        if info.type.HasField("tensor_type"):
            info.type.tensor_type.shape.SetInParent()  # which onnx's checker asks for
    made.scopes = scopes(made.model)
    return made


def _open_sizes(graph: GraphProto) -> None:
    """Leave open what is no size: Paddle writes -1 for an open one, and a scalar where it knows no shape."""
    for info in (info for info in (*graph.input, *graph.output) if info.type.HasField("tensor_type")):
        kind = info.type.tensor_type
        for dim in (dim for dim in kind.shape.dim if dim.dim_value < 0):
            dim.Clear()
        if not kind.shape.dim and info in graph.output:
            kind.ClearField("shape")


def inferred(model: ModelProto) -> ModelProto:
    """Return a model with types for its inner values, as far as onnx can tell them."""
    with contextlib.suppress(onnx.shape_inference.InferenceError, RuntimeError, ValueError):
        return onnx.shape_inference.infer_shapes(model)
    return model


def skeleton(model: ModelProto) -> tuple[ModelProto, dict[str, TensorProto]]:
    """Copy a model without the contents of its large FP32 weights, and of those that were not read; return both."""
    bare, weights = ModelProto(), {}
    for descriptor, content in model.ListFields():
        if descriptor.name != "graph":
            _set(bare, descriptor.name, content)
    for descriptor, content in model.graph.ListFields():
        if descriptor.name != "initializer":
            _set(bare.graph, descriptor.name, content)
    for tensor in model.graph.initializer:
        large = math.prod(tensor.dims) * 4 > SMALL_BYTES and tensor.data_type == FLOAT
        if large or uses_external_data(tensor):
            weights[tensor.name] = tensor
            bare.graph.initializer.add(name=tensor.name, dims=tensor.dims, data_type=tensor.data_type)
        else:
            bare.graph.initializer.add().CopyFrom(tensor)
    return bare, weights


def _set(message: Any, name: str, content: Any) -> None:  # noqa: ANN401 - protobuf's
    if isinstance(content, int | str | bytes | float):
        setattr(message, name, content)
    else:
        getattr(message, name).MergeFrom(content)


# ------------------------------------------------------------------ opset


def _at_best_opset(model: ModelProto, changes: list[tuple[str, str]]) -> ModelProto:
    """Bring a model that is too old up, and one that is too new down; say where no way leads there."""
    current, target = opsets(model).get("", 0), best_opset(model)
    if current in {0, target}:
        return model
    try:
        made = at_opset(model, target)
    except (RuntimeError, ValueError, onnx.checker.ValidationError) as error:
        changes.append((f"{current} → {target} ✗", str(error).strip().splitlines()[0].rpartition("failed: ")[2]))
        return model
    changes.append((f"{current} → {target}", ""))
    return made


def best_opset(model: ModelProto) -> int:
    """Return the opset that suits DirectML best, the nearest one to the model's."""
    most = min([LAST_MATCHED, *(LAST_OF.get(node.op_type, LAST_MATCHED) for node in model.graph.node)])
    return min(max(opsets(model).get("", 0), FIRST_OPSET), most)


def at_opset(model: ModelProto, target: int) -> ModelProto:
    """Return a model at another opset; operators that an older one lacks are written out, by their definition.

    Raises `RuntimeError`, `ValueError` or `ValidationError` where an operator has no form there.
    """
    made = ModelProto()
    made.CopyFrom(model)
    current = opsets(model).get("", 0)
    ops = {node.op_type for body in bodies(made) for node in body.node if not node.domain}
    if stuck := [op for op, since in NO_WAY_BACK.items() if op in ops and target < since <= current]:
        raise ValueError(stuck[0])
    if lacking := [("", op) for op in ops if definition("", op, target) is None]:
        made = written_out(made, lacking)
    for node in (node for body in bodies(made) for node in body.node if target < current):
        node.domain = ASIDE if node.op_type in RESTAMPED else node.domain
        for entry in node.attribute if node.op_type == "GridSample" else ():
            entry.s = MODES.get(entry.s, entry.s)
    made.opset_import.add(domain=ASIDE, version=1)
    made = onnx.version_converter.convert_version(made, target)
    replace_all(made.opset_import, [entry for entry in made.opset_import if entry.domain != ASIDE])
    context = onnx.checker.C.CheckerContext()
    context.ir_version, context.opset_imports = KNOWN_IR, opsets(made)
    for node in (node for body in bodies(made) for node in body.node):
        node.domain = "" if node.domain == ASIDE else node.domain
        if not any(subgraphs(node)):
            onnx.checker.check_node(node, context)
    _tidy(made)
    return made


def inlined(model: ModelProto) -> ModelProto:
    """Return a model, which is used up, with the bodies of its local functions where they are called.

    A node without a name is called after its operator and its place in its graph.
    """
    for body in bodies(model):
        for place, node in enumerate(body.node):
            node.name = node.name or f"{node.op_type}#{place}"
    known = {(plain_domain(one.domain), one.name, one.overload): one.attribute_proto for one in model.functions}
    versions = opsets(model)  # given to functions, too, so that all of them can be inlined: they have to be compatible
    for entry in (entry for one in model.functions for entry in one.opset_import):
        entry.version = versions.get(plain_domain(entry.domain), entry.version)
    for node in (node for body in bodies(model) for node in body.node if known):
        _add_defaults(node, known.get((plain_domain(node.domain), node.op_type, node.overload), ()))
    return onnx.inliner.inline_local_functions(model) if known else model


def written_out(model: ModelProto, ops: list[tuple[str, str]]) -> ModelProto:
    """Return a model, which is used up, with the definitions of these operators in their place."""
    for node in (node for body in bodies(model) for node in body.node if (node.domain, node.op_type) in ops):
        form = schema(node, opsets(model))
        _add_defaults(node, [one.default_value for one in form.attributes.values()] if form else [])
    model.graph.value_info.add(name="")  # the inliner asks for the types of what is left out, and of weights
    for tensor in model.graph.initializer:
        model.graph.value_info.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    made = onnx.inliner.inline_selected_functions(model, ops, inline_schema_functions=True)
    for body in bodies(made):
        replace_all(body.value_info, [info for info in body.value_info if info.name])
    return made


def _add_defaults(node: NodeProto, defaults: Iterable[AttributeProto]) -> None:
    """Write the default attributes of what a node calls out, as onnx's inliner forgets them."""
    given = {entry.name for entry in node.attribute}
    node.attribute.extend(entry for entry in defaults if entry.name and entry.name not in given)


# ------------------------------------------------------------------ form


def _tidy(model: ModelProto) -> None:
    """Sort and name nodes, make weights of constants, drop weights from the inputs and shapes that may be stale."""
    model.ir_version = min(max(model.ir_version, FIRST_FREE_IR), KNOWN_IR)
    for entry in model.opset_import:
        entry.domain = plain_domain(entry.domain)
    if "" not in opsets(model):
        model.opset_import.add(domain="", version=17)
    names = set[str]()
    for graph in bodies(model):
        ends, nodes = {info.name for info in graph.output}, []
        for node in ordered(graph.node) or list(graph.node):
            node.domain = plain_domain(node.domain)
            node.name = unique_name(node.name or node.op_type, names)
            content = _constant(node) if node.op_type == "Constant" and not node.domain else None
            if content is None or node.output[0] in ends:
                nodes.append(node)
            else:
                content.name = node.output[0]
                graph.initializer.append(content)
        replace_nodes(graph, nodes)
        weights = {tensor.name for tensor in graph.initializer}
        for side in (graph.input, graph.value_info):
            replace_all(side, [info for info in side if info.name not in weights])
        for info in graph.value_info:
            if info.type.HasField("tensor_type"):
                info.type.tensor_type.ClearField("shape")
    if RUNTIME not in opsets(model) and any(node.domain == RUNTIME for body in bodies(model) for node in body.node):
        model.opset_import.add(domain=RUNTIME, version=1)


def replace_nodes(graph: GraphProto, nodes: list[NodeProto]) -> None:
    """Put these nodes, which may be the graph's own, in place of all that a graph has."""
    replace_all(graph.node, [NodeProto.FromString(node.SerializeToString()) for node in nodes])


def replace_all(entries: Any, new: list[Any]) -> None:  # noqa: ANN401 - protobuf's
    """Put messages in place of all in a field."""
    del entries[:]
    entries.extend(new)


def _constant(node: NodeProto) -> TensorProto | None:
    """Return what a Constant node holds; None for text, and for what is sparse."""
    entry = node.attribute[0] if node.attribute else None
    content = helper.get_attribute_value(entry) if entry is not None else None
    if isinstance(content, TensorProto):
        return content
    if entry is None or entry.name not in {"value_float", "value_floats", "value_int", "value_ints"}:
        return None
    return numpy_helper.from_array(np.asarray(content, np.float32 if "float" in entry.name else np.int64))


# ------------------------------------------------------------------ what is where


def scopes(model: ModelProto) -> list[Scope]:
    """Return the scope of every graph, outer ones first; types that onnx could not infer follow from the inputs'."""
    return list(_scopes(model.graph, Scope(model.graph, {}, {}, {}, opsets(model))))


def _scopes(graph: GraphProto, outer: Scope) -> Iterator[Scope]:
    scope = Scope(graph, dict(outer.types), dict(outer.makers), dict(outer.constants), outer.versions)
    for info in chain(graph.value_info, graph.output, graph.input):
        scope.types[info.name] = _kind(info)
        scope.makers.pop(info.name, None)
        scope.constants.pop(info.name, None)
    inputs = {info.name for info in graph.input}
    for tensor in chain(graph.initializer, (sparse.values for sparse in graph.sparse_initializer)):
        scope.types[tensor.name] = tensor.data_type
    scope.constants |= {tensor.name: tensor for tensor in graph.initializer if tensor.name not in inputs}
    for node in graph.node:
        scope.makers |= dict.fromkeys(filter(None, node.output), node)
        _complete(node, scope)
    yield scope
    for node in graph.node:
        for inner in subgraphs(node):
            yield from _scopes(inner, scope)


def _kind(info: ValueInfoProto) -> int:
    which = info.type.WhichOneof("value")
    return info.type.tensor_type.elem_type if which == "tensor_type" else UNKNOWN if which is None else NO_TENSOR


def _complete(node: NodeProto, scope: Scope) -> None:
    """Set the types of outputs that inference left open: those of an input, where the definition says that they share.

    ONNX Runtime's own operators, which ONNX does not define, make what their first input is.
    """
    form, types = schema(node, scope.versions), scope.types
    for at, name in enumerate(node.output):
        if name and not types.get(name):
            shared = [
                types.get(one, UNKNOWN)
                for place, one in enumerate(node.input)
                if (formal(form.inputs, place) == formal(form.outputs, at) if form else node.domain == RUNTIME)
            ]
            types[name] = next((kind for kind in shared if kind > 0), UNKNOWN)


def schema(node: NodeProto, versions: dict[str, int]) -> onnx.defs.OpSchema | None:
    """Return ONNX's definition of a node's operator; None where it has none."""
    return definition(node.domain, node.op_type, versions.get(node.domain, 1))


@cache
def definition(domain: str, op: str, opset: int) -> onnx.defs.OpSchema | None:
    """Return ONNX's definition of an operator at an opset; None where it has none."""
    try:
        return onnx.defs.get_schema(op, opset, domain)
    except onnx.defs.SchemaError:
        return None


def formal(formals: Any, index: int) -> str:  # noqa: ANN401 - onnx's
    """Return the type, or the name of the variable for it, of one argument; the last one may repeat."""
    return str(formals[min(index, len(formals) - 1)].type_str) if formals else ""
