"""Refuses models that nothing could run, or that would grow beyond any memory.

ONNX's checker would not do: it refuses nodes that are not sorted, which ONNX Runtime takes, and its words are for the
authors of exporters.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import onnx
from google.protobuf.message import Message
from onnx import FunctionProto, GraphProto, ModelProto, SparseTensorProto, TensorProto, TypeProto
from onnx.external_data_helper import uses_external_data

from assistant.i18n import _
from assistant.model.errors import BadInput
from assistant.onnx.graph import bodies, nested, opsets, ordered, plain_domain, stored, undefined

LIMIT = 2**31 - 1  # protobuf reads and writes no more: https://protobuf.dev/programming-guides/proto-limits/
# All chosen, far above what networks have:
MOST_PARTS = 1_000_000  # nodes, weights or values of a graph: the largest language models have a tenth of that
MOST_DEPTH = 200  # functions calling one another: exporters nest them as deep as a network's modules, which is 20
MOST_NUMBERS = 2**48  # of one tensor: more than any machine's memory
MOST_AXES = 32  # NumPy before 2.0 has no more
OPEN = -1  # what some exporters, such as Paddle's, write for a size that is open

Call = tuple[str, str, str]


def refuse_crowds(model: ModelProto, path: Path) -> None:
    """Refuse a model of more parts than any network has."""
    count = len(model.functions)
    for body in bodies(model):
        count += len(body.node) + len(body.value_info) + len(body.input) + len(body.output)
        if isinstance(body, GraphProto):
            count += len(body.initializer) + len(body.sparse_initializer)
        if count > MOST_PARTS:
            raise _too_large(path)


def refuse_garbled(model: ModelProto, path: Path) -> None:
    """Refuse names that are no text, which protobuf lets through until they are read."""
    try:
        if all(isinstance(text, str) for text in _texts(model)):
            return
    except UnicodeDecodeError as error:
        raise not_onnx(path) from error
    raise not_onnx(path)


def _texts(message: Message) -> Iterator[object]:
    """Yield every text in a message; of a tensor its names only, as reading its other fields copies the weights."""
    if isinstance(message, TensorProto):
        yield from (message.name, *(text for entry in message.external_data for text in (entry.key, entry.value)))
        return
    for field, content in message.ListFields():
        parts = (content,) if isinstance(content, str | bytes | Message) else content
        if field.type == field.TYPE_STRING:
            yield from parts
        elif field.type == field.TYPE_MESSAGE:
            for part in parts:
                yield from _texts(part)


def refuse_newer(model: ModelProto, path: Path) -> None:
    """Refuse a model that is newer than the installed onnx."""
    hint = _("Update the package onnx, or export the model for an older version.")
    if model.ir_version > onnx.IR_VERSION:
        message = _("{file} uses IR version {version}; versions up to {known} are supported.")
        raise BadInput(message.format(file=path, version=model.ir_version, known=onnx.IR_VERSION), hint=hint)
    used, known = opsets(model).get("", 1), onnx.defs.onnx_opset_version()
    if used > known:
        message = _("{file} uses opset {version}; opsets up to {known} are supported.")
        raise BadInput(message.format(file=path, version=used, known=known), hint=hint)


def refuse_bombs(model: ModelProto, path: Path) -> None:
    """Refuse functions that call one another in a cycle, and those that grow beyond bounds where they are called."""
    functions = {_key(one.domain, one.name, one.overload): one for one in model.functions}
    calls = {key: [call for call in _calls(one) if call in functions] for key, one in functions.items()}
    try:
        order = list(TopologicalSorter(calls).static_order())
    except CycleError as error:
        raise BadInput(
            _("Functions in {file} call one another in a cycle.", file=path),
            hint=_("The file is damaged or was put together wrongly: export it again."),
        ) from error
    nodes, held, depth = dict[Call, int](), dict[Call, int](), dict[Call, int]()
    for key in order:
        nodes[key] = sum(len(body.node) for body in nested(functions[key])) + sum(nodes[one] for one in calls[key])
        held[key] = functions[key].ByteSize() + sum(held[one] for one in calls[key])
        depth[key] = 1 + max((depth[one] for one in calls[key]), default=0)
    called = [call for call in _calls(model.graph) if call in functions]
    if (
        sum(nodes[one] for one in called) > MOST_PARTS
        or sum(held[one] for one in called) > LIMIT
        or max(depth.values(), default=0) > MOST_DEPTH
    ):
        raise _too_large(path)


def refuse_shapes(model: ModelProto, path: Path) -> None:
    """Refuse tensors and values of shapes that nothing can have."""
    for one in stored(model):
        if isinstance(one, SparseTensorProto):
            _refuse_shape(one.dims, one.values.name, path)
        for tensor in (one.values, one.indices) if isinstance(one, SparseTensorProto) else (one,):
            _refuse_shape(tensor.dims, tensor.name, path)
    for body in bodies(model):
        sides = (body.value_info, body.input, body.output) if isinstance(body, GraphProto) else (body.value_info,)
        for info in (info for side in sides for info in side):
            for sizes in _shapes(info.type):
                _refuse_shape((size for size in sizes if size != OPEN), info.name, path)


def refuse_broken(model: ModelProto, path: Path) -> None:
    """Refuse cycles, names made twice, and names that nothing makes."""
    hint = _("The file is damaged or was put together wrongly: export it again.")
    for body in bodies(model):
        makes = Counter(name for node in body.node for name in node.output if name)
        twice = next((name for name, count in makes.items() if count > 1), None)
        if twice is not None:
            raise BadInput(_("{file} makes the value {name} twice.", file=path, name=twice), hint=hint)
        if ordered(body.node) is None:
            raise BadInput(_("The nodes of {file} form a cycle.", file=path), hint=hint)
    for whole in (model.graph, *model.functions):
        lacking = sorted(undefined(whole))
        if lacking:
            message = _("{file} uses the value {name}, which nothing in it makes.")
            raise BadInput(message.format(file=path, name=lacking[0]), hint=hint)


def refuse_scattered(model: ModelProto, path: Path) -> None:
    """Refuse sparse weights whose numbers lie outside their shape."""
    for body in bodies(model):
        for sparse in body.sparse_initializer if isinstance(body, GraphProto) else ():
            try:
                if not uses_external_data(sparse.values):
                    onnx.checker.check_sparse_tensor(sparse)
            except onnx.checker.ValidationError as error:
                raise damaged(sparse.values, path) from error


def _refuse_shape(sizes: Iterable[int], name: str, path: Path) -> None:
    sizes = tuple(sizes)
    if len(sizes) > MOST_AXES or min(sizes, default=0) < 0 or math.prod(size or 1 for size in sizes) > MOST_NUMBERS:
        raise BadInput(
            _("{file} gives {name} an impossible shape.", file=path, name=name),
            hint=_("Do not trust it; get it from its source again."),
        )


def _shapes(kind: TypeProto) -> Iterator[list[int]]:
    """Yield the shapes in a type: of each the sizes that it names."""
    which = kind.WhichOneof("value")
    if which in {"tensor_type", "sparse_tensor_type"}:
        yield [dim.dim_value for dim in getattr(kind, which).shape.dim if dim.HasField("dim_value")]
    elif which in {"sequence_type", "optional_type"}:
        yield from _shapes(getattr(kind, which).elem_type)
    elif which == "map_type":
        yield from _shapes(kind.map_type.value_type)


def _calls(body: GraphProto | FunctionProto) -> Iterator[Call]:
    for inner in nested(body):
        for node in inner.node:
            yield _key(node.domain, node.op_type, node.overload)


def _key(domain: str, name: str, overload: str) -> Call:
    return plain_domain(domain), name, overload


def _too_large(path: Path) -> BadInput:
    return BadInput(
        _("{file} is larger than any network once its functions are inlined.", file=path),
        hint=_("Do not trust it; get it from its source again."),
    )


def not_onnx(path: Path) -> BadInput:
    """Return the refusal of a file that is no model."""
    message = _("{file} is not an ONNX model, or only a part of one.", file=path)
    return BadInput(message, hint=_("Download or export it again."))


def damaged(tensor: TensorProto, path: Path) -> BadInput:
    """Return the refusal of weights whose data do not fit their shape."""
    message = _("The weights {name} of {file} are not as long as their shape says.", name=tensor.name, file=path)
    return BadInput(message, hint=_("Download or export the model again, with all its files."))
