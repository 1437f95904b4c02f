"""Places the nodes of a model as ONNX Runtime would: on the device, on the CPU, or nowhere.

What DirectML's kernels ask of a node beside its types are the `Query…` functions of the provider's operators, such as
`QueryPad` in DmlOperatorPadding.cpp:
https://github.com/microsoft/onnxruntime/tree/main/onnxruntime/core/providers/dml/DmlExecutionProvider/src/Operators
"""

from __future__ import annotations

import contextlib
import heapq
import math
from collections import ChainMap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
import onnx.inliner
from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)

from assistant.api import Message, Text, _, sentences
from assistant_addons.onnx.answers import SHAPES, Provider
from assistant_addons.onnx.graph import bodies, defaults, opsets, ordered, plain_domain, subgraphs
from assistant_addons.onnx.operators import (
    FLAVOURS,
    Kernel,
    Types,
    late,
    match,
    runtime,
    signature,
    since,
    table,
    takes,
    unknown_domain,
)
from assistant_addons.onnx.prepare import (
    add_defaults,
    attribute,
    definition,
    numbers,
    replace_nodes,
    skeleton,
    write_defaults,
)

TENSORS = {number: f"tensor({name.lower()})" for name, number in TensorProto.DataType.items()}
NUMBERS = {
    **dict.fromkeys((AttributeProto.FLOAT, AttributeProto.FLOATS), np.float32),
    **dict.fromkeys((AttributeProto.INT, AttributeProto.INTS), np.int64),
}
# An initializer of so many numbers does not keep a node on the device, nor does a type of 16 or 8 bits let it go: both
# from onnxruntime/core/framework/fallback_cpu_capability.cc.
SMALL_ELEMENTS = 100
NARROW_FLOATS = ("tensor(float16)", "tensor(bfloat16)", "tensor(float8e4", "tensor(float8e5")
# DML_TENSOR_DIMENSION_COUNT_MAX1 and GetSupportedDeviceDataTypeMask in the DirectML provider's DmlCommon.h and .cpp.
MOST_DIMENSIONS = 8
NEVER_ON_DML = ("tensor(string)", "tensor(complex", "tensor(bfloat16)", "tensor(float8", "tensor(float4")


@dataclass(eq=False, slots=True)
class Value:
    """A value: its type by the name in ONNX Runtime's tables (None: not known), the tensor of a constant, its takers.

    `source` is the graph of an input or a weight, None for what a node makes.
    """

    proto: TypeProto
    tensor: TensorProto | None = None
    source: GraphProto | None = None
    takers: list[Node] = field(default_factory=list)
    type: str | None = field(init=False)

    def __post_init__(self) -> None:
        self.type = type_name(self.proto) or None


@dataclass(eq=False, slots=True)
class Node:
    """A placed node: `device` is "dml", "cpu" or "none", `why` a sentence where it is not the wanted one.

    `kernel` is the row that takes it. `changed` says that another version of the operator has a kernel, `preferred`
    that the CPU is chosen for a node that the device could take, `widened` that it runs in FP32 between casts. `pieces`
    are the simpler operators that a function without a kernel is replaced by.
    """

    proto: NodeProto
    domain: str
    op: str
    graph: GraphProto
    inputs: list[Value | None]
    outputs: list[Value | None] = field(default_factory=list)
    device: str = ""
    why: Text = ""
    kernel: Kernel | None = None
    changed: bool = False
    preferred: bool = False
    widened: bool = False
    pieces: list[Node] = field(default_factory=list)

    def values(self) -> Iterator[Value]:
        """Yield what it takes and makes."""
        return (value for value in (*self.inputs, *self.outputs) if value is not None)

    def types(self) -> tuple[Types, Types]:
        """Return the types of its inputs and of its outputs."""
        inputs, outputs = (
            tuple("" if one is None else one.type for one in side) for side in (self.inputs, self.outputs)
        )
        return inputs, outputs

    def has_negative_pads(self) -> bool:
        """Return whether its constant pads cut something off."""
        constant = self.inputs[1].tensor if self.has_input(1) and self.inputs[1] else None
        pads = attribute(self.proto, "pads", []) if constant is None else numbers(constant)
        return pads is not None and min(pads, default=0) < 0

    def has_input(self, *places: int) -> bool:
        """Return whether any of these inputs is there."""
        return any(place < len(self.inputs) and self.inputs[place] is not None for place in places)


def place(model: ModelProto, provider: Provider) -> list[Node]:
    """Place every node, those of the main graph first; calls of local functions are replaced by their bodies.

    The model stays as it is. A node without a name is called after its operator and its place in its graph.
    """
    whole = _infer(model)
    placer, graphs = _Placer(provider, opsets(whole)), list(_read(whole))
    for node in (node for nodes in graphs for node in nodes):
        placer.place(node)
    for nodes in graphs if provider == "dml" else ():
        _prefer_cpu(nodes)
    return [node for nodes in graphs for node in nodes]


def _infer(model: ModelProto) -> ModelProto:
    """Return a copy with names for all nodes, functions inlined, nodes sorted and types inferred.

    It lacks the contents of large weights, and the shapes of inner values that were declared: they may be stale.
    """
    bare, _weights = skeleton(model)
    for body in bodies(bare):
        for index, node in enumerate(body.node):
            node.name = node.name or f"{node.op_type}#{index}"
    if bare.functions:
        versions = opsets(bare)  # given to functions, too, so that all of them can be inlined
        for entry in (entry for function in bare.functions for entry in function.opset_import):
            entry.version = versions.get(plain_domain(entry.domain), entry.version)
        write_defaults(bare)
        bare = onnx.inliner.inline_local_functions(bare)
    for graph in bodies(bare):
        _tidy(graph)
    for entry in bare.opset_import:
        entry.domain = plain_domain(entry.domain)
    for domain in {node.domain for graph in bodies(bare) for node in graph.node} - {*opsets(bare)}:
        bare.opset_import.add(domain=domain, version=1)
    with contextlib.suppress(onnx.shape_inference.InferenceError, RuntimeError, ValueError):
        bare = onnx.shape_inference.infer_shapes(bare)
    return bare


def _tidy(graph: GraphProto) -> None:
    """Sort a graph's nodes, make sparse weights dense, as every runtime does, and drop declared inner shapes."""
    given = list(graph.node)
    nodes = ordered(given) or given
    if any(one is not other for one, other in zip(nodes, given, strict=True)):
        replace_nodes(graph, nodes)
    for node in graph.node:
        node.domain = plain_domain(node.domain)
    for sparse in graph.sparse_initializer:
        graph.initializer.add(name=sparse.values.name, dims=sparse.dims, data_type=sparse.values.data_type)
    del graph.sparse_initializer[:]
    weights = {tensor.name for tensor in graph.initializer}
    for info in graph.value_info:
        if info.name not in weights and info.type.HasField("tensor_type"):
            info.type.tensor_type.ClearField("shape")


def _read(model: ModelProto) -> Iterator[list[Node]]:
    """Yield the nodes of each graph, outer ones first, with the values that they take and make."""
    versions = opsets(model)
    todo = [(model.graph, ChainMap[str, Value](), defaults(model))]
    while todo:
        graph, outer, loose = todo.pop()
        values, nodes = outer.new_child(), list[Node]()
        declared = {info.name: info.type for info in (*graph.value_info, *graph.output, *graph.input)}
        values.update((info.name, Value(info.type, source=graph)) for info in graph.input)
        for tensor in graph.initializer:
            if tensor.name not in loose:
                kind = helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
                values[tensor.name] = Value(kind, tensor, graph)
        for proto in graph.node:
            for name in proto.input:
                if name and name not in values:  # nothing makes it
                    values[name] = Value(TypeProto(), source=graph)
            inputs = [values[name] if name else None for name in proto.input]
            node = Node(proto, proto.domain, proto.op_type, graph, inputs)
            for value in {id(value): value for value in node.inputs if value is not None}.values():
                value.takers.append(node)
            _add_outputs(node, declared, versions.get(node.domain, 1))
            values.update((name, value) for name, value in zip(proto.output, node.outputs, strict=True) if value)
            nodes.append(node)
        yield nodes
        todo += [(inner, values, frozenset()) for node in nodes for inner in subgraphs(node.proto)]


def _add_outputs(node: Node, declared: dict[str, TypeProto], version: int) -> None:
    """Add the values that a node makes.

    The type of one that inference left open is that of an input, where the operator's definition says that they share
    it; ONNX Runtime's own operators, which ONNX does not define, are defined by the runtime's tables.
    """
    for name in node.proto.output:
        kind = declared.get(name, TypeProto())
        node.outputs.append(Value(kind) if name else None)
    if (node.op, node.domain) == ("Constant", "") and node.outputs and node.outputs[0]:
        node.outputs[0].tensor = next(map(_held, node.proto.attribute), None)
    if all(value is None or value.type for value in node.outputs):
        return
    taken, made = signature(node.domain, node.op, version)
    bound: dict[str, TypeProto] = {}
    for index, value in enumerate(node.inputs if taken else ()):
        if value is not None and value.type is not None:
            bound.setdefault(taken[min(index, len(taken) - 1)][1], value.proto)
    for index, value in enumerate(node.outputs if made else ()):
        if value is not None and value.type is None:
            kind = bound.get(made[min(index, len(made) - 1)][1], TypeProto())
            node.outputs[index] = Value(helper.make_tensor_type_proto(kind.tensor_type.elem_type, None))


def _held(entry: AttributeProto) -> TensorProto | None:
    """Return the tensor in the attribute of a Constant node, of a sparse one its shape alone; None for text."""
    if entry.type == AttributeProto.TENSOR:
        return entry.t
    if entry.type == AttributeProto.SPARSE_TENSOR:
        return TensorProto(dims=entry.sparse_tensor.dims, data_type=entry.sparse_tensor.values.data_type)
    kind = NUMBERS.get(entry.type)
    return None if kind is None else numpy_helper.from_array(np.asarray(helper.get_attribute_value(entry), kind))


def type_name(kind: TypeProto) -> str:
    """Return a type as ONNX Runtime's tables write it, such as "seq(tensor(float))"; "" for one that is not known."""
    which = kind.WhichOneof("value")
    if which == "tensor_type":
        return TENSORS.get(kind.tensor_type.elem_type, "") if kind.tensor_type.elem_type else ""
    if which == "sparse_tensor_type":
        return f"sparse_{TENSORS.get(kind.sparse_tensor_type.elem_type, 'tensor(undefined)')}"
    if which == "map_type":
        return f"map({TENSORS[kind.map_type.key_type][7:-1]},{type_name(kind.map_type.value_type)})"
    if which in {"sequence_type", "optional_type"}:
        return f"{'seq' if which[0] == 's' else 'optional'}({type_name(getattr(kind, which).elem_type)})"
    return ""


class _Placer:
    """Places one node after another by the tables of one provider."""

    def __init__(self, provider: Provider, imports: dict[str, int]) -> None:
        self.provider, self.imports = provider, imports
        self.release = runtime(provider).version
        self.known_pieces: dict[object, list[Node]] = {}

    def place(self, node: Node) -> None:
        """Place one node without regard to its neighbours."""
        domain, opset = node.domain, self.imports.get(node.domain, 1)
        newer = late(domain, node.op, self.release)
        version = since(domain, node.op, min(opset, newer["since"] - 1) if newer else opset)
        strange = {one.name for one in node.proto.attribute}.intersection(newer["attributes"] if newer else ())
        node.device = "none"
        if (domain, node.op) == ("", "Constant"):
            node.device, node.why = self.provider, _("It becomes a weight when the model is loaded.")
        elif not any(domain in table(provider)["operators"] for provider in FLAVOURS):
            node.why = unknown_domain(domain)[0]
        elif version is None:
            node.why = _("{op} is not an operator of opset {opset}.", op=node.op, opset=opset)
        elif strange:
            message = _("ONNX Runtime {version} does not know the attribute {attribute} of {op}.")
            node.why = message.format(version=self.release, attribute=min(strange), op=node.op)
        elif self.provider == "dml" and _is_on_directml(node, version):
            node.device = "dml"
        else:
            self._place_on_cpu(node, version)

    def _place_on_cpu(self, node: Node, version: int) -> None:
        """Place on the CPU, in FP32 or in pieces where that is needed, what the device does not take."""
        domain, types = node.domain, node.types()
        node.kernel, lacking = match("cpu", domain, node.op, version, *types, self.release)
        if node.kernel is None and self._replace_by_pieces(node):
            return
        if node.kernel is None and "tensor(float16)" in types[0]:
            wide = [tuple(kind and kind.replace("float16", "float") for kind in side) for side in types]
            node.kernel, _why = match("cpu", domain, node.op, version, wide[0], wide[1], self.release)
            node.widened = node.kernel is not None
            if node.widened and self.provider == "cpu":
                node.why = _("The CPU has no FP16 kernel of {op}: it runs in FP32, between casts.", op=node.op)
        if node.kernel is not None:
            lacking = _refusal(node)
        node.device = "none" if lacking else "cpu"
        node.why = sentences((node.why, lacking)) if node.why and lacking not in ("", node.why) else node.why or lacking

    def _replace_by_pieces(self, node: Node) -> bool:
        """Replace a function that has no kernel by what it consists of; the worst placed piece decides."""
        attributes = tuple(sorted(entry.SerializeToString() for entry in node.proto.attribute))
        key = (node.domain, node.op, node.types()[0], len(node.outputs), attributes)
        if key not in self.known_pieces:
            self.known_pieces[key] = self._pieces(node)
        node.pieces = self.known_pieces[key]
        if not node.pieces:
            return False
        devices = {piece.device for piece in node.pieces}
        node.device = next(device for device in ("none", "cpu", self.provider) if device in devices)
        others = sorted({piece.op for piece in node.pieces if piece.op != "Constant"})
        node.why = _("It has no kernel and runs as {operators}.", operators=", ".join(others))
        worst = next((piece for piece in node.pieces if piece.device == node.device != self.provider), None)
        if worst is not None:
            node.why = sentences((node.why, worst.why))
        return True

    def _pieces(self, node: Node) -> list[Node]:
        """Place what a function of ONNX consists of for these types; [] where ONNX Runtime would not open it."""
        domain, op, opset = node.domain, node.op, self.imports.get(node.domain, 1)
        schema = definition(domain, op, opset)
        if schema is None or any(value is not None and value.type is None for value in node.inputs):
            return []
        call = NodeProto.FromString(node.proto.SerializeToString())
        add_defaults(call, schema)
        infos = {
            name: ValueInfoProto(name=name, type=value.proto)
            for name, value in zip(node.proto.input, node.inputs, strict=True)
            if value
        }
        outputs = [ValueInfoProto(name=name) for name in node.proto.output if name]
        left_out = ValueInfoProto(name="", type=TypeProto())  # onnx's inliner asks for its type, too
        graph = helper.make_graph([call], op, list(infos.values()), outputs, value_info=[left_out])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(*one) for one in self.imports.items()])
        try:
            model = onnx.inliner.inline_selected_functions(model, [(domain, op)], inline_schema_functions=True)
        except (RuntimeError, ValueError):  # onnx could not build the body for these types
            return []
        ops = {one.op_type for one in model.graph.node if not one.domain}
        if op in ops or not model.graph.node:
            return []
        if not schema.has_context_dependent_function:  # type: ignore[attr-defined]
            # ONNX Runtime leaves a definition alone that was written for older operators.
            versions = [one for one in schema.function_opset_versions if one <= opset]  # type: ignore[attr-defined]
            if not versions or any(since("", one, versions[-1]) != since("", one, opset) for one in ops):
                return []
        return place(model, self.provider)


def _is_on_directml(node: Node, version: int) -> bool:
    """Return whether DirectML takes a node; say why not otherwise."""
    domain, (inputs, outputs) = node.domain, node.types()
    node.kernel, node.why = match("dml", domain, node.op, version, inputs, outputs)
    if node.kernel is None:
        rows = table("dml")["operators"].get(domain, {}).get(node.op, ())
        node.changed = bool(rows) and not any(takes(row, version) for row in rows)
        return False
    strange = next((kind for kind in (*inputs, *outputs) if kind and kind.startswith(NEVER_ON_DML)), None)
    if strange is not None:
        node.why = _("DirectML does not support {type}.", type=strange)
    elif any(len(value.proto.tensor_type.shape.dim) > MOST_DIMENSIONS for value in node.values()):
        node.why = _("DirectML's tensors have at most {most} dimensions.", most=MOST_DIMENSIONS)
    else:
        node.why = _refusal(node)
    return not node.why


def _prefer_cpu(nodes: Sequence[Node]) -> None:
    """Move to the CPU what only computes shapes, as ONNX Runtime does, for each graph on its own.

    The walk begins at what takes the outputs of Shape and Size, which lie on the CPU, and goes on as long as a node
    has no other inputs than such ones, small weights and the graph's inputs, and none in FP16.
    """
    order = {id(node): index for index, node in enumerate(nodes)}
    on_host, waiting, seen = set[Value](), list[int](), set[int]()

    def follow(node: Node) -> None:
        for value in filter(None, node.outputs):
            on_host.add(value)
            for index in {order[id(taker)] for taker in value.takers if id(taker) in order} - seen:
                seen.add(index)
                heapq.heappush(waiting, index)

    for node in nodes:
        if node.device == "dml" and node.op in {"Shape", "Size"}:
            follow(node)
    while waiting:
        node = nodes[heapq.heappop(waiting)]
        if node.device == "dml" and all(_is_on_host(node, place, on_host) for place in range(len(node.inputs))):
            node.device, node.preferred = "cpu", True
            node.why = _("It only computes shapes, which is faster on the CPU.", SHAPES)
        if node.device == "cpu":
            follow(node)


def _is_on_host(node: Node, place: int, on_host: set[Value]) -> bool:
    """Return whether an input stays on the CPU anyway."""
    value = node.inputs[place]
    if value is None or (value.type or "").startswith(NARROW_FLOATS):
        return False
    if value.tensor is not None:
        return bool(math.prod(value.tensor.dims) <= SMALL_ELEMENTS)
    return value.source is node.graph or (value in on_host and place not in (node.kernel or {}).get("cpu_inputs", ()))


def count_copies(nodes: Sequence[Node]) -> int:
    """Count the values that are copied between device and CPU in every run, once each, without inputs and outputs."""
    return sum(
        any(_is_copied(node, value, taker) for taker in value.takers)
        for node in nodes
        if node.op != "Constant" and node.device != "none"
        for value in filter(None, node.outputs)
    )


def _is_copied(node: Node, value: Value, taker: Node) -> bool:
    """Return whether a node takes a value elsewhere than where it lies."""
    lies_on_host = (
        node.device == "cpu" or node.op in {"Shape", "Size"} or (node.kernel is not None and "host" in node.kernel)
    )
    kernel = taker.kernel if taker.device == "dml" else None
    places = {place for place, one in enumerate(taker.inputs) if one is value}
    wants_device = kernel is not None and "host" not in kernel and bool(places.difference(kernel.get("cpu_inputs", ())))
    return taker.device != "none" and lies_on_host == wants_device


def _refusal(node: Node) -> Text:
    """Return why a node's kernel refuses it although it takes its types; "" where nothing stands against it."""
    query = node.kernel.get("query") if node.kernel else None
    return next((why for name, refuses, why in CONDITIONS if name == query and refuses(node)), "")


def _other(name: str, *allowed: object) -> Callable[[Node], bool]:
    """Return a test for an attribute with another value than these, the first of which is its default."""
    return lambda node: attribute(node.proto, name, allowed[0]) not in allowed


def _is_ragged(node: Node) -> bool:
    """Return whether weights are not packed in whole blocks."""
    size, block = (attribute(node.proto, name, default) for name, default in (("K", 0), ("block_size", 1)))
    return bool(size % (block or 1))


_ATTENTION = _("DirectML's Attention takes neither a past nor a causal or rotary form.")
_QUANTISED = _("DirectML's QAttention takes neither a causal form with a mask nor a rotary form.")
_TRAINING = _("DirectML normalises batches for inference only: export the model in evaluation mode.")
_ONE_TYPE = _("DirectML's BatchNormalization takes five inputs of one type.")
_EINSUM = _("DirectML's Einsum takes at most two operands, and no ellipsis.")
_ONE_OUTPUT = _("DirectML's layer normalisation has one output only.")
_PACKED = _("DirectML multiplies 4-bit and 8-bit weights only, and only in whole blocks.")
_RESIZE = _("DirectML's Resize supports neither exclude_outside nor an extrapolation value.")
# What kernels refuse: the query of a kernel, a test for the nodes that it refuses, the sentence that says so.
CONDITIONS: tuple[tuple[str, Callable[[Node], bool], Message], ...] = (
    ("Attention", _other("unidirectional", 0), _ATTENTION),
    ("Attention", _other("do_rotary", 0), _ATTENTION),
    ("Attention", _other("past_present_share_buffer", 0), _ATTENTION),
    ("Attention", lambda node: node.has_input(4, 6) or any(node.outputs[1:2]), _ATTENTION),
    ("BatchNormalization", _other("training_mode", 0), _TRAINING),
    ("BatchNormalization", lambda node: len({value.type for value in node.inputs if value}) > 1, _ONE_TYPE),
    ("EinSum", lambda node: len(node.inputs) > 2, _EINSUM),  # noqa: PLR2004 - as the sentence says
    ("EinSum", lambda node: b"..." in attribute(node.proto, "equation", b""), _EINSUM),
    ("LayerNormalization", lambda node: any(node.outputs[1:3]), _ONE_OUTPUT),
    ("MatMulNBits", _other("bits", 4, 8), _PACKED),
    ("MatMulNBits", _is_ragged, _PACKED),
    ("MaxPool", _other("storage_order", 0), _("DirectML's MaxPool counts in row-major order only.")),
    (
        "Pad",
        lambda node: min(attribute(node.proto, "pads", []), default=0) < 0,
        _("DirectML's Pad takes no negative pads."),
    ),
    ("QAttention", lambda node: node.has_input(5) and bool(attribute(node.proto, "unidirectional")), _QUANTISED),
    ("QAttention", _other("do_rotary", 0), _QUANTISED),
    ("QAttention", _other("past_present_share_buffer", 0), _QUANTISED),
    ("QLinearSigmoid", lambda node: not node.has_input(2), _("DirectML's QLinearSigmoid needs its zero points.")),
    ("QLinearSigmoid", lambda node: not node.has_input(4), _("DirectML's QLinearSigmoid needs its zero points.")),
    ("RecurrentNeuralNetwork", _other("layout", 0), _("Recurrent operators run with layout 0 only.")),
    ("Resize", lambda node: attribute(node.proto, "mode") == b"cubic", _("DirectML has no cubic interpolation.")),
    ("Resize", _other("exclude_outside", 0), _RESIZE),
    ("Resize", _other("extrapolation_value", 0.0), _RESIZE),
    ("Scatter", _other("reduction", b"none"), _("DirectML scatters only without a reduction.")),
    ("SkipLayerNormalization", lambda node: any(node.outputs[1:3]), _ONE_OUTPUT),
    ("Slice", lambda node: len(node.inputs) > 5, _("DirectML's Slice takes at most five inputs.")),  # noqa: PLR2004
)
