"""Places the nodes of a model as ONNX Runtime would: on the device, on the CPU, or nowhere.

What DirectML's kernels ask of a node beside its types are the `Query…` functions of the provider's operators, such as
`QueryPad` in DmlOperatorPadding.cpp:
https://github.com/microsoft/onnxruntime/tree/main/onnxruntime/core/providers/dml/DmlExecutionProvider/src/Operators
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import onnx.inliner
from onnx import FunctionProto, ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto, helper
from onnx.defs import OpSchema

from assistant.api import Message, Text, _, sentences
from assistant_addons.onnx.answers import Provider
from assistant_addons.onnx.graph import bodies, opsets, plain_domain
from assistant_addons.onnx.operators import (
    FLAVOURS,
    Kernel,
    Types,
    definition,
    described,
    holds,
    is_function,
    late,
    make_call,
    match,
    runtime,
    since,
    table,
    tensor_type,
    unknown,
)
from assistant_addons.onnx.program import NO_TENSOR, UNKNOWN, Program, Step, Value, attribute, program, skeleton

OPENED = "assistant.opened"  # the domain of a function that is to be replaced by what it consists of
# An initializer of so many numbers does not keep a node on the device, nor does a type of 16 or 8 bits let it go: both
# from onnxruntime/core/framework/fallback_cpu_capability.cc.
SMALL_ELEMENTS = 100
NARROW_FLOATS = {
    TensorProto.FLOAT16,
    TensorProto.BFLOAT16,
    *range(TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2FNUZ + 1),
}
# DML_TENSOR_DIMENSION_COUNT_MAX1 and GetSupportedDeviceDataTypeMask in the DirectML provider's DmlCommon.h and .cpp.
MOST_DIMENSIONS = 8
NEVER_ON_DML = ("tensor(string)", "tensor(complex", "tensor(bfloat16)", "tensor(float8", "tensor(float4")
Rule = tuple[Callable[[Step], bool], Message]  # what refuses a node, and the sentence that says so

MOST_EINSUM_OPERANDS = 2
MOST_SLICE_INPUTS = 5
PACKED_BITS = {4, 8}


@dataclass(eq=False, slots=True)
class Node:
    """A placed node: `device` is "dml", "cpu" or "none", `why` a sentence where it is not the wanted one.

    `op` is the operator without its domain, `kernel` the row that takes it. `changed` says that another version of the
    operator has a kernel, `preferred` that the CPU is chosen for a node that the device could take, `widened` that it
    runs in FP32 between casts. `pieces` are the simpler operators that a function without a kernel is replaced by.
    """

    step: Step
    op: str
    name: str
    device: str
    why: Text = ""
    kernel: Kernel | None = None
    changed: bool = False
    preferred: bool = False
    widened: bool = False
    pieces: list[Node] = field(default_factory=list)


def place(model: ModelProto, provider: Provider) -> tuple[Program, list[Node]]:
    """Place every node, those of the main graph first; calls of local functions are replaced by their bodies.

    The model stays as it is. A node without a name is called after its operator and its place in its graph.
    """
    whole = _named(model)
    placer = _Placer(provider, whole.model)
    nodes = [placer.place(step) for scope in whole.scopes() for step in scope.steps]
    if provider == "dml":
        by_step = {id(node.step): node for node in nodes}
        for scope in whole.scopes():
            _prefer_cpu([by_step[id(step)] for step in scope.steps])
    return whole, nodes


def _named(model: ModelProto) -> Program:
    """Analyse a model with a name for every node; functions are replaced by their bodies."""
    bare = skeleton(model)
    for body in bodies(bare):
        for index, node in enumerate(body.node):
            node.name = node.name or f"{node.op_type}#{index}"
    versions = opsets(bare)  # given to functions, too, so that all of them can be opened
    for entry in (entry for function in bare.functions for entry in function.opset_import):
        entry.version = versions.get(plain_domain(entry.domain), entry.version)
    return program(bare)


def type_name(kind: TypeProto) -> str:
    """Return a type as ONNX Runtime's tables write it, such as "seq(tensor(float))"."""
    which = kind.WhichOneof("value")
    if which in {"tensor_type", "sparse_tensor_type"}:
        return tensor_type(getattr(kind, which).elem_type, which.removesuffix("_type"))
    if which == "map_type":
        key = tensor_type(kind.map_type.key_type).removeprefix("tensor(")
        return f"map({key[:-1]},{type_name(kind.map_type.value_type)})"
    if which in {"sequence_type", "optional_type"}:
        return f"{which[:3] if which[0] == 's' else 'optional'}({type_name(getattr(kind, which).elem_type)})"
    return ""


class _Placer:
    """Places one node after another by the tables of one provider."""

    def __init__(self, provider: Provider, model: ModelProto) -> None:
        self.provider = provider
        self.release = runtime(provider).version
        self.imports = opsets(model)
        self.declared: dict[int, dict[str, ValueInfoProto]] = {}
        self.known_pieces: dict[object, list[Node]] = {}

    def place(self, step: Step) -> Node:
        """Place one node without regard to its neighbours."""
        domain, op = plain_domain(step.node.domain), step.node.op_type
        node = Node(step, op, step.node.name, self.provider)
        opset = self.imports.get(domain, 1)
        newer = late(domain, op, self.release)
        version = since(domain, op, min(opset, newer.since - 1) if newer else opset)
        strange = {one.name for one in step.node.attribute} & newer.attributes if newer else None
        if (domain, op) == ("", "Constant"):
            node.why = _("It becomes a weight when the model is loaded.")
        elif not any(domain in table(provider).operators for provider in FLAVOURS):
            node.device, node.why = "none", unknown(domain)
        elif version is None:
            node.device, node.why = "none", _("{op} is not an operator of opset {opset}.", op=op, opset=opset)
        elif strange:
            message = _("ONNX Runtime {version} does not know the attribute {attribute} of {op}.")
            node.device = "none"
            node.why = message.format(version=self.release, attribute=min(strange), op=op)
        else:
            inputs, outputs = (tuple(self.type_of(value) for value in side) for side in (step.inputs, step.outputs))
            if self.provider == "cpu" or not _on_directml(node, domain, version, inputs, outputs):
                self._on_cpu(node, domain, version, inputs, outputs)
        return node

    def _on_cpu(self, node: Node, domain: str, version: int, inputs: Types, outputs: Types) -> None:
        """Place on the CPU, in FP32 or in pieces where that is needed, what the device does not take."""
        kernel, lacking = match("cpu", domain, node.op, version, inputs, outputs, self.release)
        if kernel is None and self._in_pieces(node, domain, inputs):
            return
        if kernel is None and "tensor(float16)" in inputs:
            wide = (tuple(kind and kind.replace("float16", "float") for kind in side) for side in (inputs, outputs))
            kernel, _why = match("cpu", domain, node.op, version, *wide, self.release)
            node.widened = kernel is not None
            if node.widened and self.provider == "cpu":
                node.why = _("The CPU has no FP16 kernel of {op}: it runs in FP32, between casts.", op=node.op)
        if kernel is not None:
            lacking = refusal(node.step, kernel)
        node.kernel, node.device = kernel, "none" if lacking else "cpu"
        node.why = sentences((node.why, lacking)) if node.why and lacking not in ("", node.why) else node.why or lacking

    def _in_pieces(self, node: Node, domain: str, inputs: Types) -> bool:
        """Replace a function that has no kernel by what it consists of; the worst placed piece decides."""
        attributes = tuple(sorted(entry.SerializeToString() for entry in node.step.node.attribute))
        key = (domain, node.op, inputs, len(node.step.outputs), attributes)
        if key not in self.known_pieces:
            self.known_pieces[key] = self._pieces(node.step, domain)
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

    def _pieces(self, step: Step, domain: str) -> list[Node]:
        opset = self.imports.get(domain, 1)
        schema = described(domain, step.node.op_type, opset)
        infos = [self.info_of(value) if value is not None else ValueInfoProto() for value in step.inputs]
        known = [info for info in infos if info is not None]
        if schema is None or not is_function(schema) or len(known) < len(infos):
            return []
        try:
            body = definition(step.node, schema, opset, [info.type for info in known])
        except RuntimeError:  # onnx could not build the body for these types
            return []
        if body is None or not holds(schema, body, opset) or step.node.op_type in {node.op_type for node in body.node}:
            return []
        return place(_opened(step.node, schema, body, known, self.imports), self.provider)[1]

    def type_of(self, value: Value | None) -> str | None:
        """Return the name of a value's type; "" for no value, None for a type that is not known."""
        if value is None:
            return ""
        if value.kind > UNKNOWN:
            return tensor_type(value.kind)
        info = self._declared(value)
        return type_name(info.type) if info is not None else None

    def info_of(self, value: Value) -> ValueInfoProto | None:
        """Describe a value as a model's input; None where its type is not known."""
        if value.kind > UNKNOWN:
            return helper.make_tensor_value_info(value.name, value.kind, value.shape)
        return self._declared(value)

    def _declared(self, value: Value) -> ValueInfoProto | None:
        """Find the declaration of a value that is no tensor."""
        if value.kind != NO_TENSOR:
            return None
        graph = value.scope.graph
        if id(graph) not in self.declared:
            infos = (*graph.value_info, *graph.output, *graph.input)
            self.declared[id(graph)] = {info.name: info for info in infos}
        return self.declared[id(graph)].get(value.name)


def _opened(
    node: NodeProto, schema: OpSchema, body: FunctionProto, infos: Sequence[ValueInfoProto], imports: Mapping[str, int]
) -> ModelProto:
    """Make a model of a node's definition alone."""
    call = NodeProto()
    call.CopyFrom(node)
    make_call(call, schema, body, (OPENED, node.op_type))
    outputs = [ValueInfoProto(name=name) for name in node.output if name]
    inputs = list({info.name: info for info in infos if info.name}.values())
    versions = [helper.make_opsetid(name, version) for name, version in (*imports.items(), (OPENED, 1))]
    graph = helper.make_graph([call], "one", inputs, outputs)
    return onnx.inliner.inline_local_functions(helper.make_model(graph, functions=[body], opset_imports=versions))


def _on_directml(node: Node, domain: str, version: int, inputs: Types, outputs: Types) -> bool:
    """Place on DirectML if it takes the node; say why not otherwise."""
    node.kernel, node.why = match("dml", domain, node.op, version, inputs, outputs)
    if node.kernel is None:
        rows = table("dml").operators.get(domain, {}).get(node.op, ())
        node.changed = bool(rows) and not any(row.takes(version) for row in rows)
        return False
    strange = next((kind for kind in (*inputs, *outputs) if kind and kind.startswith(NEVER_ON_DML)), None)
    if strange is not None:
        node.why = _("DirectML does not support {type}.", type=strange)
    elif any(value and len(value.shape or ()) > MOST_DIMENSIONS for value in (*node.step.inputs, *node.step.outputs)):
        node.why = _("DirectML's tensors have at most {most} dimensions.", most=MOST_DIMENSIONS)
    else:
        node.why = refusal(node.step, node.kernel)
    return not node.why


def _prefer_cpu(nodes: Sequence[Node]) -> None:
    """Move to the CPU what only computes shapes, as ONNX Runtime does, for each graph on its own.

    The walk begins at what takes the outputs of Shape and Size, which lie on the CPU, and goes on as long as a node
    has no other inputs than such ones, small weights and the graph's inputs, and none in FP16.
    """
    order = {id(node.step): index for index, node in enumerate(nodes)}
    on_host: set[Value] = set()
    waiting: list[int] = []
    seen: set[int] = set()

    def follow(node: Node) -> None:
        for value in filter(None, node.step.outputs):
            on_host.add(value)
            for index in {order[id(taker)] for taker in value.takers if id(taker) in order} - seen:
                seen.add(index)
                heapq.heappush(waiting, index)

    for node in nodes:
        if node.device == "dml" and node.op in {"Shape", "Size"}:
            follow(node)
    while waiting:
        node = nodes[heapq.heappop(waiting)]
        if node.device == "dml" and all(_is_on_host(node, place, on_host) for place in range(len(node.step.inputs))):
            node.device, node.preferred = "cpu", True
            node.why = _("It only computes shapes, which is faster on the CPU.")
        if node.device == "cpu":
            follow(node)


def _is_on_host(node: Node, place: int, on_host: set[Value]) -> bool:
    """Return whether an input stays on the CPU anyway."""
    value = node.step.inputs[place]
    if value is None or value.kind in NARROW_FLOATS:
        return False
    if value.tensor is not None:
        return int(math.prod(value.tensor.dims)) <= SMALL_ELEMENTS
    if value.maker is None and value.scope is node.step.scope:
        return True
    return value in on_host and not (node.kernel and place in node.kernel.cpu_inputs)


def refusal(step: Step, kernel: Kernel) -> Text:
    """Return why a kernel refuses a node whose types it takes; "" where nothing stands against it."""
    rules = CONDITIONS[kernel.query] if kernel.query else []
    return next((why for refuses, why in rules if refuses(step)), "")


def _flag(name: str) -> Callable[[Step], bool]:
    """Return a test for an integer attribute that is neither missing nor 0."""
    return lambda step: bool(_integer(step, name))


def _integer(step: Step, name: str, default: int = 0) -> int:
    found = attribute(step.node, name, default)
    return found if isinstance(found, int) else default


def _is_given(values: Sequence[Value | None], *indexes: int) -> bool:
    """Return whether any of these arguments is there."""
    return any(index < len(values) and values[index] is not None for index in indexes)


def _einsum(step: Step) -> bool:
    equation = attribute(step.node, "equation", b"")
    return len(step.inputs) > MOST_EINSUM_OPERANDS or (isinstance(equation, bytes) and b"..." in equation)


def _attention(step: Step) -> bool:
    flags = ("unidirectional", "do_rotary", "past_present_share_buffer")
    is_given = _is_given(step.inputs, 4, 6) or _is_given(step.outputs, 1)
    return is_given or any(_integer(step, flag) != 0 for flag in flags)


def _quantized_attention(step: Step) -> bool:
    is_causal = _integer(step, "unidirectional") != 0 and _is_given(step.inputs, 5)
    return is_causal or any(_integer(step, flag) != 0 for flag in ("do_rotary", "past_present_share_buffer"))


def _packed_weights(step: Step) -> bool:
    return (
        _integer(step, "bits", 4) not in PACKED_BITS
        or _integer(step, "K") % (_integer(step, "block_size", 1) or 1) != 0
    )


def _negative_pads(step: Step) -> bool:
    pads = attribute(step.node, "pads")
    return isinstance(pads, list) and min(pads, default=0) < 0


def _mixed_types(step: Step) -> bool:
    return len({value.kind for value in step.inputs if value is not None}) > 1


def _lacks_zero_points(step: Step) -> bool:
    return not (_is_given(step.inputs, 4) and _is_given(step.inputs, 2))


def _extrapolates(step: Step) -> bool:
    return bool(_integer(step, "exclude_outside")) or attribute(step.node, "extrapolation_value", 0.0) != 0.0


def _is_cubic(step: Step) -> bool:
    return attribute(step.node, "mode") == b"cubic"


def _reduces(step: Step) -> bool:
    return attribute(step.node, "reduction", b"none") != b"none"


_TRAINING = _("DirectML normalises batches for inference only: export the model in evaluation mode.")
_ONE_OUTPUT = [(lambda step: _is_given(step.outputs, 1, 2), _("DirectML's layer normalisation has one output only."))]
CONDITIONS: dict[str, list[Rule]] = {
    "Attention": [(_attention, _("DirectML's Attention takes neither a past nor a causal or rotary form."))],
    "BatchNormalization": [
        (_flag("training_mode"), _TRAINING),
        (_mixed_types, _("DirectML's BatchNormalization takes five inputs of one type.")),
    ],
    "EinSum": [(_einsum, _("DirectML's Einsum takes at most two operands, and no ellipsis."))],
    "LayerNormalization": _ONE_OUTPUT,
    "MatMulNBits": [
        (_packed_weights, _("DirectML multiplies 4-bit and 8-bit weights only, and only in whole blocks."))
    ],
    "MaxPool": [(_flag("storage_order"), _("DirectML's MaxPool counts in row-major order only."))],
    "Pad": [(_negative_pads, _("DirectML's Pad takes no negative pads."))],
    "QAttention": [
        (_quantized_attention, _("DirectML's QAttention takes neither a causal form with a mask nor a rotary form."))
    ],
    "QLinearSigmoid": [(_lacks_zero_points, _("DirectML's QLinearSigmoid needs its zero points."))],
    "RecurrentNeuralNetwork": [(_flag("layout"), _("Recurrent operators run with layout 0 only."))],
    "Resize": [
        (_is_cubic, _("DirectML has no cubic interpolation.")),
        (_extrapolates, _("DirectML's Resize supports neither exclude_outside nor an extrapolation value.")),
    ],
    "Scatter": [(_reduces, _("DirectML scatters only without a reduction."))],
    "SkipLayerNormalization": _ONE_OUTPUT,
    "Slice": [(lambda step: len(step.inputs) > MOST_SLICE_INPUTS, _("DirectML's Slice takes at most five inputs."))],
}
