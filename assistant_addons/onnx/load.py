"""Reads ONNX models with their external data, refusing what nothing could run, and writes them, never over a source.

ONNX's checker would not do: it refuses nodes that are not sorted, which ONNX Runtime takes, and its words are for the
authors of exporters.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import IO

import onnx
from google.protobuf.message import DecodeError, Message
from onnx import FunctionProto, GraphProto, ModelProto, SparseTensorProto, TensorProto, TypeProto
from onnx.external_data_helper import set_external_data, uses_external_data

from assistant.api import BadInput, _
from assistant.api.system import (
    discard,
    open_regular,
    put_in_place,
    unreadable_error,
    unwritable_error,
    write_atomically,
    write_draft,
)
from assistant_addons.onnx.answers import default_output
from assistant_addons.onnx.graph import bodies, nested, opsets, ordered, plain_domain, stored, tensors, undefined
from assistant_addons.onnx.prepare import Content

MARGIN = 2**27  # of the 2 GB, for everything in a model but its weights (chosen)
KEPT_BYTES = 2**20  # a smaller tensor is always read: its values may decide where a node runs
INLINE_BYTES = 1024  # a smaller tensor stays in the model file, as onnx.save does it
# A page: ONNX Runtime can map weights that begin at one instead of reading them.
ALIGNMENT = 4096
FIRST_IMPORTING_IR = 3  # before, models named no opset: https://github.com/onnx/onnx/blob/main/docs/Versioning.md
# By name, as older releases of onnx lack the newest types; what is not here is as large as NumPy says.
PACKED_BITS = {"INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "INT2": 2, "UINT2": 2}
UNSIZED = {"UNDEFINED", "STRING", "FLOAT6E2M3", "FLOAT6E3M2"}
TYPE_NAMES: dict[int, str] = {number: name for name, number in TensorProto.DataType.items()}
ENTRIES = {"COMPLEX64": 2, "COMPLEX128": 2}  # of a list, for each number; of all others it is one
MOST_DIGITS = 19  # of 2**63
LIMIT = 2**31 - 1  # protobuf reads and writes no more: https://protobuf.dev/programming-guides/proto-limits/
# All chosen, far above what networks have:
MOST_PARTS = 1_000_000  # nodes, weights or values of a graph: the largest language models have a tenth of that
MOST_DEPTH = 200  # functions calling one another: exporters nest them as deep as a network's modules, which is 20
MOST_NUMBERS = 2**48  # of one tensor: more than any machine's memory
MOST_AXES = 32  # NumPy before 2.0 has no more
OPEN = -1  # what some exporters, such as Paddle's, write for a size that is open

Call = tuple[str, str, str]


def load_model(path: str | Path, *, weights: bool = True) -> ModelProto:
    """Read a model with its external data; raise `BadInput` for one that no runtime could load.

    With `weights=False` external tensors of more than 1 MB are looked for but not read, so that a model of many GB
    can be examined in little memory.
    """
    path = Path(path)
    model = _parsed(path)
    _refuse_crowds(model, path)
    _refuse_garbled(model, path)
    _refuse_newer(model, path)
    _refuse_bombs(model, path)
    _refuse_shapes(model, path)
    _refuse_broken(model, path)
    try:
        for tensor in tensors(model):
            _complete(tensor, path, weights=weights)
    except OSError as error:
        raise unreadable_error(path, error) from error
    _refuse_scattered(model, path)
    return model


def save_model(
    model: ModelProto,
    path: str | Path,
    *,
    source: str | Path | None = None,
    external: bool = False,
    folder: Path | None = None,
    content: Content = lambda _tensor: None,
) -> Path:
    """Write a model whole or not at all and return its path; the model in memory stays as it is.

    `content` gives the numbers of weights that it has without; they are made one at a time where they go into a file
    beside it.

    Weights go into a file beside it where `external` asks so or the model would exceed 2 GB. With `folder` the files
    are left there under the same names. Raises `BadInput` when a file to be written is the `source` or holds its
    weights, and `WorkFailed` when it cannot be written.
    """
    path = Path(path)
    weights = sum(math.prod(tensor.dims) * 4 if tensor.dims else tensor.ByteSize() for tensor in tensors(model))
    data = path.with_name(f"{path.name}.data") if external or weights > LIMIT - MARGIN else None
    if source is not None:
        _refuse_source({path, data} - {None}, Path(source))
    try:
        place = folder or path.parent
        _write(model, place / path.name, place / data.name if data else None, content)
    except OSError as error:
        raise unwritable_error(path, error) from error
    return path


def result_path(source: Path, output: str | Path | None, *, force: bool) -> Path:
    """Return where a result goes, beside its source unless `output` says otherwise; refuse one that is there."""
    path = Path(output) if output else default_output(source)
    if path.exists() and not force:
        message = _("{file} exists already.", file=path)
        raise BadInput(message, hint=_("Name another file, or replace this one.", option="--to, --force"))
    return path


def _content(path: Path) -> bytes:
    """Read a model's own file whole; raise `OSError` where it is no regular file and `BadInput` where it is over 2 GB.

    It may be a link, as caches of models are full of them.
    """
    with open_regular(path, follow=True) as file:
        size = os.fstat(file.fileno()).st_size
        if size <= LIMIT:
            return file.read(size)
    raise BadInput(
        _("{file} is over 2 GB, which no ONNX file can be.", file=path),
        hint=_("Export it with external data."),
    )


def _parsed(path: Path) -> ModelProto:
    try:
        data = _content(path)
    except OSError as error:
        raise unreadable_error(path, error) from error
    if data.startswith(b"version https://git-lfs"):
        raise BadInput(
            _("{file} is only a Git LFS pointer, not the model itself.", file=path),
            hint=_("Fetch it with `git lfs pull`."),
        )
    model = ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError as error:
        raise _not_onnx(path) from error
    versioned = model.opset_import or 0 < model.ir_version < FIRST_IMPORTING_IR
    if not (model.ir_version and versioned and model.graph.output):
        raise _not_onnx(path)
    return model


def _complete(tensor: TensorProto, path: Path, *, weights: bool) -> None:
    """Read a tensor's external data, and refuse a tensor whose data are not as long as its shape says."""
    if TYPE_NAMES.get(tensor.data_type, "UNDEFINED") == "UNDEFINED":
        message = _("The weights {name} of {file} have an unknown number type.", name=tensor.name, file=path)
        raise BadInput(message, hint=_("Download or export the model again, with all its files."))
    size = _size(tensor)
    if not uses_external_data(tensor):
        if not _holds(tensor, size):
            raise _damaged(tensor, path)
        return
    entries = _entries(tensor)
    file = _inside(entries.get("location", ""), path)
    offset, length = entries.get("offset", "0"), entries.get("length", str(size or 0))
    if not (_is_count(offset) and _is_count(length) and int(offset) + int(length) <= file.stat().st_size):
        raise _damaged(tensor, path)
    if size not in {None, int(length)}:
        raise _damaged(tensor, path)
    if weights or int(length) <= KEPT_BYTES:
        with open_regular(file, follow=True) as data:
            data.seek(int(offset))
            tensor.raw_data = data.read(int(length))
        tensor.data_location = TensorProto.DEFAULT
        del tensor.external_data[:]


def _size(tensor: TensorProto) -> int | None:
    """Return the bytes that a tensor's shape and type ask for; None where a type has no fixed size."""
    name = TYPE_NAMES.get(tensor.data_type, "UNDEFINED")
    if name in UNSIZED:
        return None
    bits = PACKED_BITS.get(name) or 8 * int(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize)
    return -(-int(math.prod(tensor.dims)) * bits // 8)


def _holds(tensor: TensorProto, size: int | None) -> bool:
    """Return whether a tensor holds as much as its shape asks for: `size` bytes, or as many entries of a list."""
    if size is not None and tensor.HasField("raw_data"):
        return len(tensor.raw_data) == size
    name = TYPE_NAMES.get(tensor.data_type, "UNDEFINED")
    if name in UNSIZED - {"STRING"}:
        return True
    wanted = math.prod(tensor.dims) * ENTRIES.get(name, 1)
    if name in PACKED_BITS and size is not None:
        wanted = size
    return bool(len(getattr(tensor, onnx.helper.tensor_dtype_to_field(tensor.data_type))) == wanted)


def _is_count(text: str) -> bool:
    """Return whether a text is a number of bytes; Python refuses to read one of thousands of digits."""
    return text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS


def _entries(tensor: TensorProto) -> dict[str, str]:
    return {entry.key: entry.value for entry in tensor.external_data}


def _inside(location: str, path: Path) -> Path:
    """Find a file of external data, which must lie in the model's folder once all links are followed."""
    try:
        file = (path.parent / location).resolve()
    except (ValueError, OSError, RuntimeError):  # what no file can be called, or a circle of links
        file = Path()
    # Caches hold the model and its weights as links into one folder: that folder is the model's as well.
    folders = (path.parent.resolve(), path.resolve().parent)
    if not location or not any(file.is_relative_to(folder) for folder in folders):
        message = _("{file} wants its weights from {location}, outside its own folder.")
        raise BadInput(
            message.format(file=path, location=repr(location)),
            hint=_("Do not trust it; get it from its source again."),
        )
    if not file.is_file():
        raise BadInput(
            _("The weights of {file} are missing: {location}.", file=path, location=location),
            hint=_("Put that file into the model's folder."),
        )
    return file


def _refuse_source(written: set[Path | None], source: Path) -> None:
    own = {source.resolve()} | {
        (source.parent / _entries(tensor).get("location", "")).resolve()
        for tensor in tensors(_parsed(source))
        if uses_external_data(tensor)
    }
    for path in written:
        if path is not None and (path.resolve() in own or (path.exists() and path.samefile(source))):
            raise BadInput(
                _("{file} belongs to the model itself, which is never overwritten.", file=path),
                hint=_("Name another file for the result."),
            )


def _write(model: ModelProto, path: Path, data: Path | None, content: Content) -> None:
    """Write beside the names and rename at the end; an older model goes before its data are replaced."""
    if data is None:
        whole = ModelProto()
        whole.CopyFrom(model)
        for tensor in whole.graph.initializer:
            if (array := content(tensor)) is not None:
                tensor.raw_data = array.tobytes()
        write_atomically(path, whole.SerializeToString())
        return
    moved: list[tuple[TensorProto, bytes]] = []
    try:
        weights = write_draft(data, lambda file: _move_weights(model, file, data.name, moved, content))
        try:
            part = write_draft(path, lambda file: file.write(model.SerializeToString()))
        except BaseException:
            discard(weights)
            raise
    finally:
        for tensor, raw in moved:
            tensor.raw_data = raw
            tensor.data_location = TensorProto.DEFAULT
            del tensor.external_data[:]
    discard(path)
    put_in_place(weights, data)
    put_in_place(part, path)


def _move_weights(
    model: ModelProto, file: IO[bytes], name: str, moved: list[tuple[TensorProto, bytes]], content: Content
) -> None:
    """Write weights apart from the rest; until they are put back, the model in memory holds none of those `moved`."""
    for tensor in tensors(model):
        array = content(tensor)
        raw = tensor.raw_data if array is None else array.tobytes()
        if len(raw) >= INLINE_BYTES:
            if array is None:
                moved.append((tensor, raw))
            file.write(bytes(-file.tell() % ALIGNMENT))
            tensor.raw_data = raw
            set_external_data(tensor, name, file.tell(), len(raw))
            file.write(raw)
            tensor.ClearField("raw_data")


def _refuse_crowds(model: ModelProto, path: Path) -> None:
    """Refuse a model of more parts than any network has."""
    count = len(model.functions)
    for body in bodies(model):
        count += len(body.node) + len(body.value_info) + len(body.input) + len(body.output)
        if isinstance(body, GraphProto):
            count += len(body.initializer) + len(body.sparse_initializer)
        if count > MOST_PARTS:
            raise _too_large(path)


def _refuse_garbled(model: ModelProto, path: Path) -> None:
    """Refuse names that are no text, which protobuf lets through until they are read."""
    try:
        if all(isinstance(text, str) for text in _texts(model)):
            return
    except UnicodeDecodeError as error:
        raise _not_onnx(path) from error
    raise _not_onnx(path)


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


def _refuse_newer(model: ModelProto, path: Path) -> None:
    """Refuse a model that is newer than the installed onnx."""
    hint = _("Update the package onnx, or export the model for an older version.")
    if model.ir_version > onnx.IR_VERSION:
        message = _("{file} uses IR version {version}; versions up to {known} are supported.")
        raise BadInput(message.format(file=path, version=model.ir_version, known=onnx.IR_VERSION), hint=hint)
    used, known = opsets(model).get("", 1), onnx.defs.onnx_opset_version()
    if used > known:
        message = _("{file} uses opset {version}; opsets up to {known} are supported.")
        raise BadInput(message.format(file=path, version=used, known=known), hint=hint)


def _refuse_bombs(model: ModelProto, path: Path) -> None:
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


def _refuse_shapes(model: ModelProto, path: Path) -> None:
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


def _refuse_broken(model: ModelProto, path: Path) -> None:
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


def _refuse_scattered(model: ModelProto, path: Path) -> None:
    """Refuse sparse weights whose numbers lie outside their shape."""
    for body in bodies(model):
        for sparse in body.sparse_initializer if isinstance(body, GraphProto) else ():
            try:
                if not uses_external_data(sparse.values):
                    onnx.checker.check_sparse_tensor(sparse)
            except onnx.checker.ValidationError as error:
                raise _damaged(sparse.values, path) from error


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


def _not_onnx(path: Path) -> BadInput:
    """Return the refusal of a file that is no model."""
    message = _("{file} is not an ONNX model, or only a part of one.", file=path)
    return BadInput(message, hint=_("Download or export it again."))


def _damaged(tensor: TensorProto, path: Path) -> BadInput:
    """Return the refusal of weights whose data do not fit their shape."""
    message = _("The weights {name} of {file} are not as long as their shape says.", name=tensor.name, file=path)
    return BadInput(message, hint=_("Download or export the model again, with all its files."))
