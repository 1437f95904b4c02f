"""Reads ONNX models with their external data, refusing what nothing could run, and writes them, never over a source.

ONNX's checker would not do: it refuses nodes that are not sorted, which ONNX Runtime takes, and its words are for the
authors of exporters.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import IO

import onnx
from google.protobuf.message import DecodeError, Message
from onnx import FunctionProto, GraphProto, ModelProto, SparseTensorProto, TensorProto
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

MARGIN = 2**27  # of the 2 GB, for everything in a model but its weights (chosen)
KEPT_BYTES = 2**20  # a smaller tensor is always read: its values may decide where a node runs
INLINE_BYTES = 1024  # a smaller tensor stays in the model file, as onnx.save does it
# A page: ONNX Runtime can map weights that begin at one instead of reading them.
ALIGNMENT = 4096
FIRST_IMPORTING_IR = 3  # before, models named no opset: https://github.com/onnx/onnx/blob/main/docs/Versioning.md
# By name, as older releases of onnx lack the newest types; what is not here is as large as NumPy says.
PACKED_BITS = {"INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "INT2": 2, "UINT2": 2}
UNSIZED = {"STRING", "FLOAT6E2M3", "FLOAT6E3M2"}
TYPE_NAMES: dict[int, str] = {number: name for name, number in TensorProto.DataType.items()}
MOST_DIGITS = 19  # of 2**63
LIMIT = 2**31 - 1  # protobuf reads and writes no more: https://protobuf.dev/programming-guides/proto-limits/
# All chosen, far above what networks have:
MOST_PARTS = 1_000_000  # nodes, weights or values of a graph: the largest language models have a tenth of that
MOST_DEPTH = 200  # functions calling one another: exporters nest them as deep as a network's modules, which is 20
MOST_NUMBERS = 2**48  # of one tensor: more than any machine's memory
MOST_AXES = 32  # NumPy before 2.0 has no more
OPEN = -1  # what some exporters, such as Paddle's, write for a size that is open

_AGAIN = _("Download or export it again.")
_ALL_FILES = _("Download or export the model again, with all its files.")
_MISTRUST = _("Do not trust it; get it from its source again.")
_DAMAGED = _("The file is damaged or was put together wrongly: export it again.")
_NEWER = _("Update the package onnx, or export the model for an older version.")

Call = tuple[str, str, str]


def load_model(path: str | Path, *, weights: bool = True) -> ModelProto:
    """Read a model with its external data; raise `BadInput` for one that no runtime could load.

    With `weights=False` external tensors of more than 1 MB are looked for but not read, so that a model of many GB
    can be examined in little memory.
    """
    path = Path(path)
    model = _parse(path)
    _refuse_crowds(model, path)
    try:
        garbled = not all(isinstance(text, str) for text in _texts(model))
    except UnicodeDecodeError:  # protobuf lets names through that are no text, until they are read
        garbled = True
    if garbled:
        raise _not_onnx(path)
    if model.ir_version > onnx.IR_VERSION:
        message = _("{file} uses IR version {version}; versions up to {known} are supported.")
        raise BadInput(message.format(file=path, version=model.ir_version, known=onnx.IR_VERSION), hint=_NEWER)
    used, known = opsets(model).get("", 1), onnx.defs.onnx_opset_version()
    if used > known:
        message = _("{file} uses opset {version}; opsets up to {known} are supported.")
        raise BadInput(message.format(file=path, version=used, known=known), hint=_NEWER)
    _refuse_bombs(model, path)
    _refuse_shapes(model, path)
    _refuse_broken(model, path)
    try:
        for tensor in tensors(model):
            _complete(tensor, path, weights=weights)
    except OSError as error:
        raise unreadable_error(path, error) from error
    for one in stored(model):
        try:
            if isinstance(one, SparseTensorProto) and not uses_external_data(one.values):
                onnx.checker.check_sparse_tensor(one)
        except onnx.checker.ValidationError as error:
            raise _damaged(one.values, path) from error
    return model


def invalid_model_error(path: str | Path) -> BadInput | None:
    """Return what is wrong with a model by the words of ONNX's own checker; None where it finds no fault with it."""
    try:
        onnx.checker.check_model(load_model(path, weights=False), full_check=True)
    except BadInput as error:
        return error
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError, ValueError, RuntimeError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        return BadInput(_("{file} is not a valid model: {reason}.", file=path, reason=reason), hint=_AGAIN)
    return None


def _parse(path: Path) -> ModelProto:
    """Read a model's own file, which may be a link, as caches of models are full of them."""
    data = None
    try:
        with open_regular(path, follow=True) as file:
            if os.fstat(file.fileno()).st_size <= LIMIT:
                data = file.read(LIMIT)
    except OSError as error:
        raise unreadable_error(path, error) from error
    if data is None:
        raise BadInput(
            _("{file} is over 2 GB, which no ONNX file can be.", file=path), hint=_("Export it with external data.")
        )
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


def _texts(message: Message) -> Iterator[object]:
    """Yield every text in a message; of a tensor its names only, as reading its other fields copies the weights."""
    if isinstance(message, TensorProto):
        yield from (message.name, *(text for entry in message.external_data for text in (entry.key, entry.value)))
        return
    for field, content in message.ListFields():
        if field.type in {field.TYPE_STRING, field.TYPE_MESSAGE}:
            parts = (content,) if isinstance(content, str | bytes | Message) else content
            for part in parts:
                yield from _texts(part) if isinstance(part, Message) else (part,)


def _refuse_crowds(model: ModelProto, path: Path) -> None:
    """Refuse a model of more parts than any network has."""
    count = len(model.functions)
    for body in bodies(model):
        count += sum(len(getattr(body, side, ())) for side in ("node", "value_info", "input", "output", "initializer"))
        count += len(getattr(body, "sparse_initializer", ()))
        if count > MOST_PARTS:
            raise _too_large(path)


def _refuse_bombs(model: ModelProto, path: Path) -> None:
    """Refuse functions that call one another in a cycle, and those that grow beyond bounds where they are called."""
    functions = {(plain_domain(one.domain), one.name, one.overload): one for one in model.functions}

    def calls(body: GraphProto | FunctionProto) -> list[Call]:
        """Return the functions that a body calls, once for each call."""
        nodes = (node for inner in nested(body) for node in inner.node)
        keys = ((plain_domain(node.domain), node.op_type, node.overload) for node in nodes)
        return [key for key in keys if key in functions]

    callees = {key: calls(one) for key, one in functions.items()}
    try:
        order = list(TopologicalSorter(callees).static_order())
    except CycleError as error:
        raise BadInput(_("Functions in {file} call one another in a cycle.", file=path), hint=_DAMAGED) from error
    nodes, size, depth = dict[Call, int](), dict[Call, int](), dict[Call, int]()
    for key in order:
        nodes[key] = sum(len(body.node) for body in nested(functions[key])) + sum(nodes[one] for one in callees[key])
        size[key] = functions[key].ByteSize() + sum(size[one] for one in callees[key])
        depth[key] = 1 + max((depth[one] for one in callees[key]), default=0)
    called = calls(model.graph)
    sums = sum(nodes[one] for one in called), sum(size[one] for one in called), max(depth.values(), default=0)
    if any(found > most for found, most in zip(sums, (MOST_PARTS, LIMIT, MOST_DEPTH), strict=True)):
        raise _too_large(path)


def _refuse_shapes(model: ModelProto, path: Path) -> None:
    """Refuse weights and values of shapes that nothing can have."""
    shapes: list[tuple[str, Sequence[int]]] = [(tensor.name, tensor.dims) for tensor in tensors(model)]
    shapes += [(one.values.name, one.dims) for one in stored(model) if isinstance(one, SparseTensorProto)]
    for body in bodies(model):
        for info in (*body.value_info, *((*body.input, *body.output) if isinstance(body, GraphProto) else ())):
            kind = info.type
            while (which := kind.WhichOneof("value")) in {"sequence_type", "optional_type", "map_type"}:
                kind = kind.map_type.value_type if which == "map_type" else getattr(kind, which).elem_type
            if which in {"tensor_type", "sparse_tensor_type"}:
                named = (dim.dim_value for dim in getattr(kind, which).shape.dim if dim.HasField("dim_value"))
                shapes.append((info.name, [size for size in named if size != OPEN]))
    for name, sizes in shapes:
        if len(sizes) > MOST_AXES or min(sizes, default=0) < 0 or math.prod(size or 1 for size in sizes) > MOST_NUMBERS:
            raise BadInput(_("{file} gives {name} an impossible shape.", file=path, name=name), hint=_MISTRUST)


def _refuse_broken(model: ModelProto, path: Path) -> None:
    """Refuse cycles, names made twice, and names that nothing makes."""
    for body in bodies(model):
        makes = Counter(name for node in body.node for name in node.output if name)
        twice = next((name for name, count in makes.items() if count > 1), None)
        if twice is not None:
            raise BadInput(_("{file} makes the value {name} twice.", file=path, name=twice), hint=_DAMAGED)
        if ordered(body.node) is None:
            raise BadInput(_("The nodes of {file} form a cycle.", file=path), hint=_DAMAGED)
    for whole in (model.graph, *model.functions):
        if lacking := undefined(whole):
            message = _("{file} uses the value {name}, which nothing in it makes.")
            raise BadInput(message.format(file=path, name=min(lacking)), hint=_DAMAGED)


def _complete(tensor: TensorProto, path: Path, *, weights: bool) -> None:
    """Read a tensor's external data, and refuse a tensor whose data are not as long as its shape says."""
    kind = TYPE_NAMES.get(tensor.data_type, "UNDEFINED")
    if kind == "UNDEFINED":
        message = _("The weights {name} of {file} have an unknown number type.", name=tensor.name, file=path)
        raise BadInput(message, hint=_ALL_FILES)
    size = None
    if kind not in UNSIZED:
        bits = PACKED_BITS.get(kind) or 8 * int(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize)
        size = -(-math.prod(tensor.dims) * bits // 8)
    if not uses_external_data(tensor):
        if not _holds(tensor, kind, size):
            raise _damaged(tensor, path)
        return
    entries = _entries(tensor)
    file = _inside(entries.get("location", ""), path)
    offset, length = entries.get("offset", "0"), entries.get("length", str(size or 0))
    # Python refuses to read a number of thousands of digits.
    counts = all(text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS for text in (offset, length))
    if not counts or int(offset) + int(length) > file.stat().st_size or size not in {None, int(length)}:
        raise _damaged(tensor, path)
    if weights or int(length) <= KEPT_BYTES:
        with open_regular(file, follow=True) as data:
            data.seek(int(offset))
            tensor.raw_data = data.read(int(length))
        tensor.data_location = TensorProto.DEFAULT
        del tensor.external_data[:]


def _holds(tensor: TensorProto, kind: str, size: int | None) -> bool:
    """Return whether a tensor holds as much as its shape asks for: `size` bytes, or as many entries of a list."""
    if size is not None and tensor.HasField("raw_data"):
        return len(tensor.raw_data) == size
    if size is None and kind != "STRING":
        return True
    entries = math.prod(tensor.dims) * (2 if kind.startswith("COMPLEX") else 1)
    field = onnx.helper.tensor_dtype_to_field(tensor.data_type)
    return len(getattr(tensor, field)) == (size if kind in PACKED_BITS else entries)


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
        raise BadInput(message.format(file=path, location=repr(location)), hint=_MISTRUST)
    if not file.is_file():
        raise BadInput(
            _("The weights of {file} are missing: {location}.", file=path, location=location),
            hint=_("Put that file into the model's folder."),
        )
    return file


def result_path(source: Path, output: str | Path | None, *, force: bool) -> Path:
    """Return where a result goes, beside its source unless `output` says otherwise; refuse one that is there."""
    path = Path(output) if output else default_output(source)
    if path.exists() and not force:
        message = _("{file} exists already.", file=path)
        raise BadInput(message, hint=_("Name another file, or replace this one.", option="--to, --force"))
    return path


def save_model(
    model: ModelProto,
    path: str | Path,
    *,
    source: str | Path | None = None,
    external: bool = False,
    folder: Path | None = None,
) -> Path:
    """Write a model whole or not at all and return its path; the model in memory stays as it is.

    Weights go into a file beside it where `external` asks so or the model would exceed 2 GB. With `folder` the files
    are left there under the same names. Raises `BadInput` when a file to be written is the `source` or holds its
    weights, and `WorkFailed` when it cannot be written.
    """
    path = Path(path)
    weights = sum(len(tensor.raw_data) or tensor.ByteSize() for tensor in tensors(model))
    data = path.with_name(f"{path.name}.data") if external or weights > LIMIT - MARGIN else None
    if source is not None:
        _refuse_source([path, *[data] * bool(data)], Path(source))
    place = folder or path.parent
    try:
        if data is None:
            write_atomically(place / path.name, model.SerializeToString())
        else:
            _write_apart(model, place / path.name, place / data.name)
    except OSError as error:
        raise unwritable_error(path, error) from error
    return path


def _refuse_source(written: Sequence[Path | None], source: Path) -> None:
    locations = (_entries(tensor).get("location", "") for tensor in tensors(_parse(source)) if tensor.external_data)
    own = {source.resolve(), *((source.parent / location).resolve() for location in locations)}
    for path in written:
        if path is not None and (path.resolve() in own or (path.exists() and path.samefile(source))):
            raise BadInput(
                _("{file} belongs to the model itself, which is never overwritten.", file=path),
                hint=_("Name another file for the result."),
            )


def _write_apart(model: ModelProto, path: Path, data: Path) -> None:
    """Write model and weights under other names and rename both at the end; an older model goes before its weights.

    Until the weights are put back, the model in memory holds none of those that were moved.
    """
    moved: list[tuple[TensorProto, bytes]] = []

    def write_weights(file: IO[bytes]) -> None:
        """Write the large weights, each from a page of its own on."""
        for tensor in tensors(model):
            if len(tensor.raw_data) >= INLINE_BYTES:
                moved.append((tensor, tensor.raw_data))
                file.write(bytes(-file.tell() % ALIGNMENT))
                set_external_data(tensor, data.name, file.tell(), len(tensor.raw_data))
                file.write(moved[-1][1])
                tensor.ClearField("raw_data")

    try:
        weights = write_draft(data, write_weights)
        try:
            part = write_draft(path, lambda file: file.write(model.SerializeToString()))
        except BaseException:
            discard(weights)
            raise
    finally:
        for tensor, content in moved:
            tensor.raw_data = content
            tensor.data_location = TensorProto.DEFAULT
            del tensor.external_data[:]
    discard(path)
    put_in_place(weights, data)
    put_in_place(part, path)


def _too_large(path: Path) -> BadInput:
    return BadInput(_("{file} is larger than any network once its functions are inlined.", file=path), hint=_MISTRUST)


def _not_onnx(path: Path) -> BadInput:
    return BadInput(_("{file} is not an ONNX model, or only a part of one.", file=path), hint=_AGAIN)


def _damaged(tensor: TensorProto, path: Path) -> BadInput:
    message = _("The weights {name} of {file} are not as long as their shape says.", name=tensor.name, file=path)
    return BadInput(message, hint=_ALL_FILES)
