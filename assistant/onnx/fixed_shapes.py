"""Writes the sizes that a model leaves open into it: given ones, those that its weights ask for, and chosen ones."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import onnx
from onnx import GraphProto, ModelProto, ValueInfoProto

from assistant.i18n import _
from assistant.model.errors import BadInput
from assistant.onnx.answers import FixedShapes, FixedSize
from assistant.onnx.graph import bodies, given_inputs, opsets, plain_domain
from assistant.onnx.inputs import Inputs, Size
from assistant.onnx.operators import described
from assistant.onnx.program import Program, drop_shapes, program, size_of, skeleton
from assistant.onnx.sizes import Dim, named, solved

Shapes = Mapping[str, Sequence[int]]
Given = dict[str, list[int | None]]  # of each input: its sizes, None for those that are not given

IMAGE_AXES = 4  # batch, channels, height, width
# Tried first where nothing tells a size (chosen): pixels of an image's side, and words or frames.
USUAL = {"image": 224, "other": 64}


def fix_shapes(
    model: ModelProto, sizes: Mapping[str, int] | None = None, shapes: Shapes | None = None, size: Size | None = None
) -> tuple[ModelProto, FixedShapes]:
    """Return a copy of a model with all its sizes written out as far as they can be known, and where each came from.

    `sizes` are by the name that the model gives to an open size, or by input and axis, such as "x#1"; `shapes` by the
    name of an input. What neither they nor the weights tell becomes `size`, or what is usual, and a batch of one.
    Raises `BadInput` for names that the model lacks and for sizes that contradict one another or the weights.
    """
    fixed = ModelProto()
    fixed.CopyFrom(model)
    _shape_bare(fixed, shapes or {})
    source = program(fixed)
    given = given_sizes(source, sizes or {}, shapes or {})
    inputs = Inputs(source, given)
    found = inputs.shapes(size or next(iter(likely(source, inputs))))
    names = named(source.model)[1]
    for info in fixed.graph.input:
        for dim, length in zip(info.type.tensor_type.shape.dim, found.get(info.name, ()), strict=False):
            dim.dim_value = length
    told = dict(_told(source, given, names, found))
    _infer(fixed, {name: one.size for name, one in told.items()})
    outputs = {info.name: _sizes(info) for info in fixed.graph.output}
    return fixed, FixedShapes(
        sizes=tuple(told.values()),
        inputs={name: tuple(shape) for name, shape in found.items()},
        outputs=outputs,
        open=tuple(name for name, dims in outputs.items() if dims is None or None in dims),
    )


def open_sizes(source: Program) -> tuple[FixedSize, ...]:
    """Return the sizes that a model's inputs leave open, each with what would be written in its place."""
    names, inputs = named(source.model)[1], Inputs(source)
    if all(isinstance(dim, int) for dims in names.values() for dim in dims):
        return ()
    return tuple(dict(_told(source, {}, names, inputs.shapes(next(iter(likely(source, inputs)))))).values())


def likely(source: Program, inputs: Inputs) -> list[Size]:
    """Return what to try for sizes that nothing tells: what is usual for such inputs, then all that inputs try."""
    ranks = {len(dims) for dims in named(source.model)[1].values() if any(isinstance(dim, str) for dim in dims[1:])}
    usual = USUAL["image" if IMAGE_AXES in ranks else "other"]
    return sorted(inputs.sizes(), key=lambda size: size.length != usual)


def given_sizes(source: Program, sizes: Mapping[str, int], shapes: Shapes) -> Given:
    """Return the sizes that were given, by input; raise `BadInput` for what does not fit the model."""
    names = named(source.model)[1]
    told: dict[str, int] = {}
    _refuse_unknown(names, sizes, shapes)
    pairs = [pair for name, shape in shapes.items() for pair in _pairs(name, names, shape)]
    for called, size in (*sizes.items(), *pairs):
        if told.setdefault(called, size) != size:
            message = _("The size {name} is given as {one} and as {other}.", name=called, one=told[called], other=size)
            raise BadInput(message, hint=_("Give one size for each name."))
    for name, dims in solved(source)[0].items() if told else ():
        for dim, found in zip(names[name], dims, strict=True):
            if isinstance(dim, str) and isinstance(found, int) and told.get(dim, found) != found:
                message = _("The weights ask for {found} in place of the size {name}, not for {size}.")
                raise BadInput(
                    message.format(found=found, name=dim, size=told[dim]),
                    hint=_("Leave it out, and it is taken from the weights."),
                )
    return {name: [told.get(dim) if isinstance(dim, str) else None for dim in dims] for name, dims in names.items()}


def _refuse_unknown(names: Mapping[str, list[Dim]], sizes: Mapping[str, int], shapes: Shapes) -> None:
    known = list(dict.fromkeys(dim for dims in names.values() for dim in dims if isinstance(dim, str)))
    for name in sizes:
        if name not in known:
            hint = _("It has these: {names}.", names=", ".join(known)) if known else _("All its sizes are fixed.")
            raise BadInput(_("The model's inputs have no open size {name}.", name=name), hint=hint)
    for name in shapes:
        if name not in names:
            raise BadInput(
                _("The model has no input {name}.", name=name),
                hint=_("It has these: {names}.", names=", ".join(names)),
            )


def _pairs(name: str, names: Mapping[str, list[Dim]], shape: Sequence[int]) -> Iterator[tuple[str, int]]:
    """Yield the open sizes of an input with what is given for them; refuse what its own shape contradicts."""
    dims = names[name]
    if len(dims) != len(shape) or any(
        isinstance(dim, int) and dim != size for dim, size in zip(dims, shape, strict=True)
    ):
        wanted, found = (f"[{', '.join(map(str, one))}]" for one in (dims, shape))
        message = _("The input {name} has the shape {wanted}, which {found} does not fit.")
        raise BadInput(
            message.format(name=name, wanted=wanted, found=found), hint=_("Give a size for each of its dimensions.")
        )
    yield from ((dim, size) for dim, size in zip(dims, shape, strict=True) if isinstance(dim, str))


def _told(
    source: Program, given: Given, names: Mapping[str, list[Dim]], found: Mapping[str, list[int]]
) -> Iterator[tuple[str, FixedSize]]:
    """Yield each open size once, by its name, with its value and where that comes from."""
    alone, together = solved(source)[0], solved(source, given)[0] if given else {}
    seen: dict[str, list[str]] = {}
    for name, dims in names.items():
        for dim in dims:
            if isinstance(dim, str):
                seen.setdefault(dim, []).append(name)
    for dim, users in seen.items():
        axis = names[users[0]].index(dim)
        why: Literal["given", "weights", "chosen"] = "chosen"
        if isinstance(alone[users[0]][axis], int):
            why = "weights"
        elif users[0] in together and isinstance(together[users[0]][axis], int):
            why = "given"
        yield dim, FixedSize(name=dim, size=found[users[0]][axis], why=why, inputs=tuple(dict.fromkeys(users)))


def _shape_bare(model: ModelProto, shapes: Shapes) -> None:
    """Write a given shape into an input that names no shape at all."""
    for info in given_inputs(model.graph):
        bare = info.type.WhichOneof("value") == "tensor_type" and not info.type.tensor_type.HasField("shape")
        for size in shapes.get(info.name, ()) if bare else ():
            info.type.tensor_type.shape.dim.add().dim_value = size


def _infer(model: ModelProto, known: Mapping[str, int]) -> None:
    """Write what follows from the inputs' sizes into the outputs and all values between; `known` are open names.

    Where ONNX's inference contradicts itself, as it does after STFT (onnx 1.23.2), nothing of it is written.
    """
    bare = skeleton(model)
    drop_shapes(bare, _undescribed(bare))
    for info in (*bare.graph.output, *(info for body in bodies(bare) for info in body.value_info)):
        _fill(info, known)
    with contextlib.suppress(onnx.shape_inference.InferenceError, RuntimeError, ValueError):
        bare = onnx.shape_inference.infer_shapes(bare, data_prop=True, strict_mode=True)
    for body, seen in zip(bodies(model), bodies(bare), strict=True):
        if isinstance(body, GraphProto):
            del body.value_info[:]
            body.value_info.extend(info for info in seen.value_info if info.type.WhichOneof("value"))
    for info, inferred in zip(model.graph.output, bare.graph.output, strict=True):
        info.CopyFrom(inferred)
        _fill(info, known)


def _undescribed(model: ModelProto) -> set[str]:
    """Return the values whose shapes nothing can infer, as ONNX does not define the operator that makes them."""
    versions = opsets(model)
    local = {(plain_domain(one.domain), one.name) for one in model.functions}
    return {
        name
        for body in bodies(model)
        for node in body.node
        if (plain_domain(node.domain), node.op_type) not in local
        and described(plain_domain(node.domain), node.op_type, versions.get(plain_domain(node.domain), 1)) is None
        for name in node.output
    }


def _fill(info: ValueInfoProto, known: Mapping[str, int]) -> None:
    for dim in info.type.tensor_type.shape.dim if info.type.HasField("tensor_type") else ():
        if dim.dim_param in known:
            dim.dim_value = known[dim.dim_param]


def _sizes(info: ValueInfoProto) -> tuple[int | None, ...] | None:
    """Return a value's sizes, None for those that are open; None for a value without a shape."""
    tensor = info.type.tensor_type
    return tuple(map(size_of, tensor.shape.dim)) if tensor.HasField("shape") else None
