"""Places the nodes of a model as ONNX Runtime would: on the device, on the CPU, or nowhere.

What DirectML takes is told by its table, and by the `Query…` functions of the provider's operators, such as `QueryPad`
in DmlOperatorPadding.cpp:
https://github.com/microsoft/onnxruntime/tree/main/onnxruntime/core/providers/dml/DmlExecutionProvider/src/Operators
Of the CPU ONNX Runtime itself is asked, node by node.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from onnx import ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto, helper

from assistant.api import Message, Text, _, sentences
from assistant_addons.onnx.answers import SHAPES, Provider
from assistant_addons.onnx.graph import KNOWN_IR, subgraphs, undefined
from assistant_addons.onnx.operators import (
    Kernel,
    Types,
    ask,
    has_runtime,
    is_foreign,
    match,
    since,
    table,
    takes,
    unknown_domain,
)
from assistant_addons.onnx.prepare import NO_TENSOR, UNKNOWN, Prepared, Scope, attribute, numbers, prepare, written_out

TENSORS = {number: f"tensor({name.lower()})" for name, number in TensorProto.DataType.items() if number}
# An initializer of so many numbers does not keep a node on the device, nor does a type of 16 or 8 bits let it go: both
# from onnxruntime/core/framework/fallback_cpu_capability.cc.
SMALL_ELEMENTS = 100
NARROW_FLOATS = ("tensor(float16)", "tensor(bfloat16)", "tensor(float8e4", "tensor(float8e5")
# DML_TENSOR_DIMENSION_COUNT_MAX1 and GetSupportedDeviceDataTypeMask in the DirectML provider's DmlCommon.h and .cpp.
MOST_DIMENSIONS = 8
NEVER_ON_DML = ("tensor(string)", "tensor(complex", "tensor(bfloat16)", "tensor(float8", "tensor(float4")


@dataclass(eq=False, slots=True)
class Node:
    """A placed node: `device` is "dml", "cpu" or "none", `why` a sentence where it is not the wanted one.

    `types` are those of its inputs and of its outputs. `kernel` is DirectML's row that takes it. `changed` says that
    another version of the operator has a kernel, `preferred` that the CPU is chosen for a node that the device could
    take. `ran` are the operators that the CPU runs for it, which are simpler ones for a function without a kernel.
    """

    proto: NodeProto
    scope: Scope
    types: tuple[Types, Types]
    device: str = ""
    why: Text = ""
    kernel: Kernel | None = None
    changed: bool = False
    preferred: bool = False
    ran: tuple[str, ...] = ()

    @property
    def op(self) -> str:
        """The operator's name."""
        return self.proto.op_type

    def has_negative_pads(self) -> bool:
        """Return whether its constant pads cut something off."""
        given = self.proto.input[1] if self.has_input(1) else ""
        pads = numbers(self.scope.constants.get(given)) if given else attribute(self.proto, "pads", [])
        return pads is not None and min(pads, default=0) < 0

    def has_input(self, *places: int) -> bool:
        """Return whether any of these inputs is there."""
        return any(self.proto.input[place : place + 1] not in ([], [""]) for place in places)


def place(source: Prepared, provider: Provider) -> list[Node]:
    """Place every node of a model, those of the main graph first."""
    kinds = {
        info.name: info.type
        for scope in source.scopes
        for info in (*scope.graph.value_info, *scope.graph.output, *scope.graph.input)
    }
    graphs = [
        [
            Node(proto, scope, (_types(proto.input, scope, kinds), _types(proto.output, scope, kinds)))
            for proto in scope.graph.node
        ]
        for scope in source.scopes
    ]
    for node in (node for nodes in graphs for node in nodes):
        if provider == "cpu" or not _is_on_directml(node, kinds):
            _place_on_cpu(node, kinds, provider)
    for nodes in graphs if provider == "dml" else ():
        _prefer_cpu(nodes)
    return [node for nodes in graphs for node in nodes]


def _types(names: Sequence[str], scope: Scope, kinds: Mapping[str, TypeProto]) -> Types:
    """Return the types of values, by the names in ONNX Runtime's tables; "" for no value, None for no known type."""
    numbers = (scope.types.get(name, UNKNOWN) for name in names)
    return tuple(
        (_type_name(kinds[name]) if number == NO_TENSOR else TENSORS.get(number)) if name else ""
        for name, number in zip(names, numbers, strict=True)
    )


def _type_name(kind: TypeProto) -> str:
    """Return a type such as "seq(tensor(float))"."""
    which = kind.WhichOneof("value")
    if which in {"sequence_type", "optional_type"}:
        return f"{'seq' if which[0] == 's' else 'optional'}({_type_name(getattr(kind, which).elem_type)})"
    return TENSORS.get(kind.tensor_type.elem_type, "") if which == "tensor_type" else str(which)


def _is_on_directml(node: Node, kinds: Mapping[str, TypeProto]) -> bool:
    """Return whether DirectML takes a node; say why not otherwise."""
    domain, opset = node.proto.domain, node.scope.versions.get(node.proto.domain, 1)
    version = since(domain, node.op, opset)
    if version is None:
        node.why = _("{op} is not an operator of opset {opset}.", op=node.op, opset=opset)
        return False
    node.kernel, node.why = match(domain, node.op, version, *node.types)
    if node.kernel is None:
        rows = table()["operators"].get(domain, {}).get(node.op, ())
        node.changed = bool(rows) and not any(takes(row, version) for row in rows)
        return False
    strange = next((kind for side in node.types for kind in side if kind and kind.startswith(NEVER_ON_DML)), None)
    shapes = [kinds[name].tensor_type.shape for name in (*node.proto.input, *node.proto.output) if name in kinds]
    if strange is not None:
        node.why = _("DirectML does not support {type}.", type=strange)
    elif any(len(shape.dim) > MOST_DIMENSIONS for shape in shapes):
        node.why = _("DirectML's tensors have at most {most} dimensions.", most=MOST_DIMENSIONS)
    else:
        node.why = _refusal(node)
    node.device = "" if node.why else "dml"
    return not node.why


def _place_on_cpu(node: Node, kinds: Mapping[str, TypeProto], provider: Provider) -> None:
    """Place a node where ONNX Runtime says: on the CPU or nowhere, or on the device where its pieces have kernels."""
    domain = node.proto.domain
    node.device, question = "cpu", _question(node, kinds)
    if is_foreign(domain):
        node.device, node.why = "none", unknown_domain(domain)[0]
    elif question and has_runtime():
        node.ran, refusal = ask(question)
        node.device = "none" if refusal else "cpu"
        node.why = sentences((node.why, refusal)) if node.why and refusal else node.why or refusal
        others = sorted({*node.ran} - {node.op, "Constant"})
        if others and node.op not in node.ran:
            pieces = _pieces(question, node) if provider == "dml" else []
            worst = next((piece for piece in pieces if piece.device != "dml"), None)
            node.device = "dml" if pieces and worst is None else "cpu"
            node.why = _("It has no kernel and runs as {operators}.", operators=", ".join(others))
            node.why = sentences((node.why, worst.why)) if worst else node.why


def _pieces(question: bytes, node: Node) -> list[Node]:
    """Place on DirectML what a function of ONNX consists of."""
    whole = written_out(ModelProto.FromString(question), [(node.proto.domain, node.op)])
    return place(prepare(whole), "dml")


def _question(node: Node, kinds: Mapping[str, TypeProto]) -> bytes:
    """Return a model of one node, without names; b"" where a type is not known, or more than inputs is taken."""
    proto, inputs, weights = NodeProto(), list[ValueInfoProto](), list[TensorProto]()
    proto.CopyFrom(node.proto)
    proto.name = ""
    for at, name in enumerate(node.proto.input):
        constant, kind = node.scope.constants.get(name), TypeProto()
        if name and constant is not None and numbers(constant) is not None and _is_small(constant):
            weights.append(TensorProto.FromString(constant.SerializeToString()))
            weights[-1].name = f"i{at}"
        elif name:
            kind.CopyFrom(kinds.get(name, TypeProto()))
            if not kind.WhichOneof("value"):
                kind.tensor_type.elem_type = max(node.scope.types.get(name, 0), 0)
            kind.tensor_type.ClearField("shape") if kind.HasField("tensor_type") else None
            inputs.append(ValueInfoProto(name=f"i{at}", type=kind))
            if kind.HasField("tensor_type") and not kind.tensor_type.elem_type:
                return b""
        proto.input[at] = f"i{at}" if name else ""
    proto.output[:] = [f"o{at}" if name else "" for at, name in enumerate(node.proto.output)]
    if any(undefined(inner) for inner in subgraphs(proto)):
        return b""
    graph = helper.make_graph(
        [proto], "g", inputs, [ValueInfoProto(name=name) for name in proto.output if name], weights
    )
    imports = [helper.make_opsetid(*one) for one in node.scope.versions.items()]
    return bytes(helper.make_model(graph, opset_imports=imports, ir_version=KNOWN_IR).SerializeToString())


def _is_small(tensor: TensorProto) -> bool:
    return bool(math.prod(tensor.dims) <= SMALL_ELEMENTS)


def _prefer_cpu(nodes: Sequence[Node]) -> None:
    """Move to the CPU what only computes shapes, as ONNX Runtime does, for each graph on its own.

    The walk begins at what takes the outputs of Shape and Size, which lie on the CPU, and goes on as long as a node
    has no other inputs than such ones, small weights and the graph's inputs, and none in FP16.
    """
    on_host = set[str]()
    for node in nodes:  # in order, so that what a node takes has been looked at
        follows = not on_host.isdisjoint(node.proto.input)
        places = range(len(node.proto.input))
        if follows and node.device == "dml" and all(_is_on_host(node, place, on_host) for place in places):
            node.device, node.preferred = "cpu", True
            node.why = _("It only computes shapes, which is faster on the CPU.", SHAPES)
        if (follows and node.device == "cpu") or (node.device == "dml" and node.op in {"Shape", "Size"}):
            on_host.update(filter(None, node.proto.output))


def _is_on_host(node: Node, place: int, on_host: set[str]) -> bool:
    """Return whether an input stays on the CPU anyway."""
    name, graph = node.proto.input[place], node.scope.graph
    if not name or (node.types[0][place] or "").startswith(NARROW_FLOATS):
        return False
    if name in node.scope.constants:
        return _is_small(node.scope.constants[name])
    given = any(info.name == name for info in graph.input)
    return given or (name in on_host and place not in (node.kernel or {}).get("cpu_inputs", ()))


def _refusal(node: Node) -> Text:
    """Return why DirectML's kernel refuses a node although it takes its types; "" where nothing stands against it."""
    query = node.kernel.get("query", "") if node.kernel else ""
    for name, allowed in ATTRIBUTES.get(query, {}).items():
        if attribute(node.proto, name, allowed[0]) not in allowed:
            shown = ", ".join(str(one.decode() if isinstance(one, bytes) else one) for one in allowed)
            return _("DirectML's {op} takes no other {name} than {allowed}.", op=node.op, name=name, allowed=shown)
    return next((why for name, refuses, why in FORMS if name == query and refuses(node)), "")


def _is_ragged(node: Node) -> bool:
    """Return whether weights are not packed in whole blocks."""
    size, block = (attribute(node.proto, name, default) for name, default in (("K", 0), ("block_size", 1)))
    return bool(size % (block or 1))


# The attributes that kernels take, by their query: the default comes first.
ATTRIBUTES: dict[str, dict[str, tuple[object, ...]]] = {
    "Attention": {"unidirectional": (0,), "do_rotary": (0,), "past_present_share_buffer": (0,)},
    "BatchNormalization": {"training_mode": (0,)},
    "MatMulNBits": {"bits": (4, 8)},
    "MaxPool": {"storage_order": (0,)},
    "QAttention": {"do_rotary": (0,), "past_present_share_buffer": (0,)},
    "RecurrentNeuralNetwork": {"layout": (0,)},
    "Resize": {"mode": (b"nearest", b"linear"), "exclude_outside": (0,), "extrapolation_value": (0.0,)},
    "Scatter": {"reduction": (b"none",)},
}
# What else they refuse: the query of a kernel, a test for the nodes that it refuses, the sentence that says so.
FORMS: tuple[tuple[str, Callable[[Node], bool], Message], ...] = (
    (
        "Attention",
        lambda node: node.has_input(4, 6) or any(node.proto.output[1:2]),
        _("DirectML's Attention takes no past."),
    ),
    (
        "BatchNormalization",
        lambda node: len(set(node.types[0]) - {""}) > 1,
        _("DirectML's BatchNormalization takes five inputs of one type."),
    ),
    (
        "EinSum",
        lambda node: len(node.proto.input) > 2 or b"..." in attribute(node.proto, "equation", b""),  # noqa: PLR2004
        _("DirectML's Einsum takes at most two operands, and no ellipsis."),
    ),
    (
        "LayerNormalization",
        lambda node: any(node.proto.output[1:3]),
        _("DirectML's layer normalisation has one output only."),
    ),
    ("MatMulNBits", _is_ragged, _("DirectML multiplies packed weights only in whole blocks.")),
    (
        "Pad",
        lambda node: min(attribute(node.proto, "pads", []), default=0) < 0,
        _("DirectML's Pad takes no negative pads."),
    ),
    (
        "QAttention",
        lambda node: node.has_input(5) and bool(attribute(node.proto, "unidirectional")),
        _("DirectML's QAttention takes no causal form with a mask."),
    ),
    (
        "QLinearSigmoid",
        lambda node: not (node.has_input(2) and node.has_input(4)),
        _("DirectML's QLinearSigmoid needs its zero points."),
    ),
    (
        "SkipLayerNormalization",
        lambda node: any(node.proto.output[1:3]),
        _("DirectML's layer normalisation has one output only."),
    ),
    (
        "Slice",
        lambda node: len(node.proto.input) > 5,  # noqa: PLR2004 - as the sentence says
        _("DirectML's Slice takes at most five inputs."),
    ),
)
