"""Reads a model's bytes, and refuses what would grow beyond any memory before anything walks through it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from onnx import FunctionProto, GraphProto, ModelProto, SparseTensorProto, TypeProto

from assistant.host.files import open_plain
from assistant.i18n import _
from assistant.model.errors import BadInput
from assistant.onnx.graph import bodies, nested, plain_domain, stored

LIMIT = 2**31 - 1  # protobuf reads and writes no more: https://protobuf.dev/programming-guides/proto-limits/
# All chosen, far above what networks have:
MOST_PARTS = 1_000_000  # nodes, weights or values of a graph: the largest language models have a tenth of that
MOST_DEPTH = 200  # functions calling one another: exporters nest them as deep as a network's modules, which is 20
MOST_NUMBERS = 2**48  # of one tensor: more than any machine's memory
MOST_AXES = 32  # NumPy before 2.0 has no more
OPEN = -1  # what some exporters, such as Paddle's, write for a size that is open

Call = tuple[str, str, str]


def model_bytes(path: str | Path) -> bytes:
    """Read a model's own file whole; raise `OSError` where it is no plain file and `BadInput` where it is over 2 GB.

    It may be a link, as caches of models are full of them.
    """
    with open_plain(Path(path), follow=True) as file:
        data = file.read(LIMIT + 1) if os.fstat(file.fileno()).st_size <= LIMIT else None
    if data is None or len(data) > LIMIT:
        raise BadInput(
            _("{file} is over 2 GB, which no ONNX file can be.", file=path),
            hint=_("Export it with external data."),
        )
    return data


def refuse_crowds(model: ModelProto, path: Path) -> None:
    """Refuse a model of more parts than any network has."""
    count = len(model.functions)
    for body in bodies(model):
        count += len(body.node) + len(body.value_info) + len(body.input) + len(body.output)
        if isinstance(body, GraphProto):
            count += len(body.initializer) + len(body.sparse_initializer)
        if count > MOST_PARTS:
            raise _too_large(path)


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
