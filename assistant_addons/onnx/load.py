"""Reads ONNX models with their external data, refusing what nothing could run, and writes them, never over a source."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import IO

import onnx
from google.protobuf.message import DecodeError
from onnx import FunctionProto, GraphProto, ModelProto, SparseTensorProto, TensorProto, helper
from onnx.external_data_helper import set_external_data, uses_external_data

from assistant.api import BadInput, _
from assistant.api.system import (
    open_regular,
    put_in_place,
    unreadable_error,
    unwritable_error,
    write_atomically,
    write_draft,
)
from assistant_addons.onnx.answers import default_output
from assistant_addons.onnx.graph import bodies, nested, opsets, ordered, plain_domain, stored, tensors
from assistant_addons.onnx.prepare import Content, replace_all, replace_nodes, skeleton

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

Call = tuple[str, str, str]  # a function by domain, name and overload
PARTS = ("node", "value_info", "input", "output", "initializer", "sparse_initializer")


def load_model(path: str | Path, *, weights: bool = True) -> ModelProto:
    """Read a model with its external data; raise `BadInput` for one that no runtime could load.

    With `weights=False` external tensors of more than 1 MB are looked for but not read, so that a model of many GB
    can be examined in little memory.
    """
    path = Path(path)
    try:
        model = _parse(path)
        _refuse_large(model, path)
        for tensor in tensors(model):
            _complete(tensor, path, weights=weights)
    except OSError as error:
        raise unreadable_error(path, error) from error
    refuse_invalid(model, path)
    return model


def refuse_invalid(model: ModelProto, path: str | Path, *, in_full: bool = False) -> None:
    """Raise `BadInput` with the words of ONNX's own checker where it finds fault with a model; weights do not matter.

    Its nodes may be in any order, as ONNX Runtime takes them so.
    """
    used, known = opsets(model).get("", 1), onnx.defs.onnx_opset_version()
    if used > known:
        message = _(
            "{file} uses opset {version}; opsets up to {known} are supported.", file=path, version=used, known=known
        )
        raise BadInput(message, hint=_("Update the package onnx, or export the model for an older version."))
    bare, weights = skeleton(model)
    replace_all(bare.graph.initializer, [one for one in bare.graph.initializer if one.name not in weights])
    given = {info.name for info in bare.graph.input}
    for one in (one for one in weights.values() if one.name not in given):
        bare.graph.input.append(helper.make_tensor_value_info(one.name, one.data_type, one.dims))
    for body in bodies(bare):
        replace_nodes(body, ordered(body.node) or list(body.node))
    try:
        if not all(isinstance(name, str) for body in bodies(bare) for node in body.node for name in node.input):
            raise ValueError("a name is no text")  # noqa: TRY301 - as the checker would, which lets it through
        onnx.checker.check_model(bare, full_check=in_full)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError, ValueError, RuntimeError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        message = _("{file} is not a valid model: {reason}.", file=path, reason=reason)
        raise BadInput(message, hint=_AGAIN) from error


def _parse(path: Path) -> ModelProto:
    """Read a model's own file, which may be a link, as caches of models are full of them."""
    with open_regular(path, follow=True) as file:
        if os.fstat(file.fileno()).st_size > LIMIT:
            message = _("{file} is over 2 GB, which no ONNX file can be.", file=path)
            raise BadInput(message, hint=_("Export it with external data."))
        data = file.read(LIMIT)
    if data.startswith(b"version https://git-lfs"):
        message = _("{file} is only a Git LFS pointer, not the model itself.", file=path)
        raise BadInput(message, hint=_("Fetch it with `git lfs pull`."))
    none = BadInput(_("{file} is not an ONNX model, or only a part of one.", file=path), hint=_AGAIN)
    model = ModelProto()
    try:
        model.ParseFromString(data)
    except (DecodeError, UnicodeDecodeError) as error:  # some versions of protobuf raise for a name that is no text
        raise none from error
    versioned = model.opset_import or 0 < model.ir_version < FIRST_IMPORTING_IR
    if not (model.ir_version and versioned and model.graph.output):
        raise none
    return model


def _refuse_large(model: ModelProto, path: Path) -> None:
    """Refuse more parts than any network has, functions where they are called included, and numbers than any memory."""
    wholes: dict[Call | None, GraphProto | FunctionProto] = {None: model.graph}
    wholes |= {(plain_domain(one.domain), one.name, one.overload): one for one in model.functions}
    calls: dict[Call | None, list[Call]] = {}  # a call that is made twice is there twice
    for key, whole in wholes.items():
        nodes = (node for body in nested(whole) for node in body.node)
        called = ((plain_domain(node.domain), node.op_type, node.overload) for node in nodes)
        calls[key] = [one for one in called if one in wholes]
    share, depth = dict[Call | None, float](), dict[Call | None, int]()
    try:
        for key in TopologicalSorter(calls).static_order():
            parts = sum(len(getattr(body, side, ())) for body in nested(wholes[key]) for side in PARTS)
            size = wholes[key].ByteSize() if key else 0
            share[key] = parts / MOST_PARTS + size / LIMIT + sum(share[one] for one in calls[key])
            depth[key] = 1 + max((depth[one] for one in calls[key]), default=0)
    except CycleError as error:
        raise BadInput(_("Functions in {file} call one another in a cycle.", file=path), hint=_AGAIN) from error
    if max(share.values()) > 1 or max(depth.values()) > MOST_DEPTH:
        message = _("{file} is larger than any network once its functions are inlined.", file=path)
        raise BadInput(message, hint=_MISTRUST)
    for name, sizes in _shapes(model):
        if len(sizes) > MOST_AXES or min(sizes, default=0) < 0 or math.prod(size or 1 for size in sizes) > MOST_NUMBERS:
            raise BadInput(_("{file} gives {name} an impossible shape.", file=path, name=name), hint=_MISTRUST)


def _shapes(model: ModelProto) -> Iterator[tuple[str, Sequence[int]]]:
    """Yield the shapes of weights and values, of those without the sizes that are open."""
    yield from ((one.name, one.dims) for one in tensors(model))
    yield from ((one.values.name, one.dims) for one in stored(model) if isinstance(one, SparseTensorProto))
    for body in bodies(model):
        for info in (*body.value_info, *((*body.input, *body.output) if isinstance(body, GraphProto) else ())):
            named = (dim.dim_value for dim in info.type.tensor_type.shape.dim if dim.HasField("dim_value"))
            yield info.name, [size for size in named if size != OPEN]


def _complete(tensor: TensorProto, path: Path, *, weights: bool) -> None:
    """Read a tensor's external data, and refuse a tensor whose data are not as long as its shape says."""
    text = _("The weights {name} of {file} are not as long as their shape says.", name=tensor.name, file=path)
    short = BadInput(text, hint=_ALL_FILES)
    if TYPE_NAMES.get(tensor.data_type, "UNDEFINED") == "UNDEFINED":
        message = _("The weights {name} of {file} have an unknown number type.", name=tensor.name, file=path)
        raise BadInput(message, hint=_ALL_FILES)
    if not uses_external_data(tensor):
        if not _is_filled(tensor):
            raise short
        return
    entries, size = _entries(tensor), _size(tensor)
    file = _inside(entries.get("location", ""), path)
    offset, length = entries.get("offset", "0"), entries.get("length", str(size or 0))
    # Python refuses to read a number of thousands of digits.
    counts = all(text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS for text in (offset, length))
    if not counts or int(offset) + int(length) > file.stat().st_size or size not in {None, int(length)}:
        raise short
    if weights or int(length) <= KEPT_BYTES:
        with open_regular(file, follow=True) as data:
            data.seek(int(offset))
            tensor.raw_data = data.read(int(length))
        tensor.data_location = TensorProto.DEFAULT
        del tensor.external_data[:]


def _size(tensor: TensorProto) -> int | None:
    """Return the bytes that a tensor's shape and type ask for; None where a type has no fixed size."""
    kind = TYPE_NAMES[tensor.data_type]
    if kind in UNSIZED:
        return None
    bits = PACKED_BITS.get(kind) or 8 * int(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize)
    return int(-(-math.prod(tensor.dims) * bits // 8))


def _is_filled(tensor: TensorProto) -> bool:
    """Return whether a tensor holds as much as its shape asks for: so many bytes, or as many entries of a list."""
    kind, size = TYPE_NAMES[tensor.data_type], _size(tensor)
    if size is not None and tensor.HasField("raw_data"):
        return len(tensor.raw_data) == size
    entries = size if kind in PACKED_BITS else math.prod(tensor.dims) * (2 if kind.startswith("COMPLEX") else 1)
    field = onnx.helper.tensor_dtype_to_field(tensor.data_type)
    return (size is None and kind != "STRING") or len(getattr(tensor, field)) == entries


def _entries(tensor: TensorProto) -> dict[str, str]:
    return {entry.key: entry.value for entry in tensor.external_data}


def _inside(location: str, path: Path) -> Path:
    """Find a file of external data, which must lie in the model's folder once all links are followed."""
    try:
        file = (path.parent / location).resolve()
    except (TypeError, ValueError, OSError, RuntimeError):  # what no file can be called, or a circle of links
        file = Path()
    # Caches hold the model and its weights as links into one folder: that folder is the model's as well.
    if not location or not any(file.is_relative_to(one) for one in (path.parent.resolve(), path.resolve().parent)):
        message = _("{file} wants its weights from {location}, outside its own folder.")
        message = message.format(file=path, location=repr(location))
        raise BadInput(message, hint=_MISTRUST)
    if not file.is_file():
        message = _("The weights of {file} are missing: {location}.", file=path, location=location)
        raise BadInput(message, hint=_("Put that file into the model's folder."))
    return file


def result_path(source: Path, output: str | Path | None, *, force: bool) -> Path:
    """Return where a result goes, beside its source unless `output` says otherwise; refuse one that is there."""
    path = Path(output) if output else default_output(source)
    if path.exists() and not force:
        message = _("{file} exists already.", file=path)
        raise BadInput(message, hint=_("Name another file, or replace this one.", option="--to, --force"))
    return path


def save_model(model: ModelProto, path: Path, source: Path, folder: Path, content: Content) -> None:
    """Write a model, which is used up, under the name of `path` into a folder from which it is put in place.

    Weights lie in a file beside it where it would exceed 2 GB. `content` gives the numbers of tensors that lack them,
    one after another, None for all others. Raises `BadInput` where a file would be replaced that is the `source` or
    holds its weights, and `WorkFailed` when it cannot be written.
    """
    sizes = (max(tensor.ByteSize(), _size(tensor) or 0) for tensor in tensors(model))
    data = path.with_name(f"{path.name}.data") if sum(sizes) > LIMIT - MARGIN else None
    _refuse_source([path, data] if data else [path], source)
    try:
        if data is None:
            for tensor in tensors(model):
                _fill(tensor, content)
        else:
            weights = write_draft(folder / data.name, lambda file: _write_weights(model, data.name, file, content))
            put_in_place(weights, folder / data.name)
        write_atomically(folder / path.name, model.SerializeToString())
    except OSError as error:
        raise unwritable_error(path, error) from error


def _fill(tensor: TensorProto, content: Content) -> None:
    """Give a tensor that lacks its numbers those of `content`, if any."""
    if (array := content(tensor)) is not None:
        tensor.raw_data = array.tobytes()


def _refuse_source(written: Sequence[Path], source: Path) -> None:
    """Refuse to replace a model, or weights, by what is made of them."""
    if not any(path.exists() for path in written):
        return
    locations = (_entries(tensor).get("location", "") for tensor in tensors(_parse(source)) if tensor.external_data)
    own = {source.resolve(), *((source.parent / location).resolve() for location in locations)}
    for path in written:
        if path.resolve() in own or (path.exists() and path.samefile(source)):
            raise BadInput(
                _("{file} belongs to the model itself, which is never overwritten.", file=path),
                hint=_("Name another file for the result."),
            )


def _write_weights(model: ModelProto, name: str, file: IO[bytes], content: Content) -> None:
    """Move the large weights into a file of this name, each from a page of its own on."""
    for tensor in tensors(model):
        _fill(tensor, content)
        if len(raw := tensor.raw_data) >= INLINE_BYTES:
            file.write(bytes(-file.tell() % ALIGNMENT))
            set_external_data(tensor, name, file.tell(), len(raw))
            file.write(raw)
            tensor.ClearField("raw_data")
