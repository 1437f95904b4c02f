"""Makes inputs that a model takes: sizes that its weights ask for, integers by what they are for, several draws."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, ValueInfoProto, helper

from assistant_addons.onnx.graph import given_inputs
from assistant_addons.onnx.prepare import ARITHMETIC, FLOAT, Prepared, Scope, attribute, numbers

Feeds = dict[str, Any]  # an array per input
# Normally distributed numbers; numbers spread far, with other integers; integers that count, such as positions, as
# large as a long text makes them; and tones, as in sound: loud and faint ones beside each other.
Draw = Literal["normal", "wide", "long", "tones"]

# Tried in turn for sizes that the model leaves open (chosen: a short text or small image, 3 channels), then the lengths
# that occur most often in the weights, then these: 224 pixels a side, windows of sound.
SIZES, LARGE_SIZES = (64, 32, 3, 8, 1), (224, 512, 4096, 16000)
MOST_LENGTHS = 8  # of those in the weights
MOST_TRIED = 2**21  # numbers of an input that is made to see whether a model takes it
CHOSEN_SIZE = 3  # for an integer input that is a size
WIDE = 4.0  # how far wide inputs reach, where normally distributed ones have a standard deviation of 1
FARTHEST = 100_000  # a position that long texts come near to; FP16 counts to 2,048 and ends at 65,504
LONG = 64  # an axis of so many numbers may be one of time
FAINT = 2e-3  # noise beside tones (chosen: 54 dB below)
# Examples in one run, of at most so many numbers (chosen): one alone may be the lucky one that rounding spares.
EXAMPLES, MOST_NUMBERS = 8, 2**14
STEPS = 1000  # of time in a diffusion model, and as good as any for another number that counts
NAMELESS = {"", "?"}  # Paddle writes a question mark for any size that is open: two of them need not be equal

Size = dict[str, int]  # of each axis that the model leaves open, by its name

# Their first input is a size, or all are; the further ones of these are sizes, lengths, divisors or steps: one of zero
# in an STFT ends ONNX Runtime's process (1.32.0, tried 2026-11-27).
SIZES_FIRST = {"BlackmanWindow", "ConstantOfShape", "HammingWindow", "HannWindow", "Loop", "Range"}
SIZES_LATER = {
    "DFT", "Div", "Expand", "GRU", "LSTM", "Mod", "OneHot", "Pad", "RNN", "Range", "Reshape", "Resize", "STFT", "Slice",
    "Split", "Tile", "TopK", "Trilu",
}  # fmt: skip
# They come out as truths, or choose.
DECIDES = {"And", "Not", "Or", "Where", "Xor"}
COMPARES = {"Greater", "GreaterOrEqual", "Less", "LessOrEqual"}  # held against others: lengths, mostly


class Use(NamedTuple):
    """What an integer is for: a place in a table of `most`, one of `choices`, a mask, a length, a size or a count."""

    kind: Literal["index", "choice", "size", "length", "mask", "count", "unknown"]
    most: int = 0
    choices: tuple[int, ...] = ()


class Inputs:
    """The inputs of a model: made up for one size after another until it runs on them."""

    def __init__(self, source: Prepared) -> None:
        self._infos = given_inputs(source.model.graph)
        self._dims = {info.name: dims_of(info) for info in self._infos}
        self._batch = {dims[0] for dims in self._dims.values() if dims and isinstance(dims[0], str)}
        names = (dim for dims in self._dims.values() for dim in dims if isinstance(dim, str))
        self._open = [name for name in dict.fromkeys(names) if name not in self._batch]
        found = Counter(length for one in source.model.graph.initializer for length in one.dims if length > 1)
        self._weights = sorted(length for length, _times in found.most_common(MOST_LENGTHS))
        self._types = source.scopes[0].types
        uses = _Uses(source)
        found_uses = ((info.name, uses.of(info.name)) for info in self._infos)
        # Some models take places in a table as floats.
        self._uses = {name: use for name, use in found_uses if self._types[name] != FLOAT or use.kind == "index"}

    @property
    def draws(self) -> tuple[Draw, ...]:
        """The draws that tell apart what a model does: with a long one where an integer counts something."""
        counts = any(use.kind == "count" for use in self._uses.values())
        return ("long", "tones", "normal", "wide") if counts else ("tones", "normal", "wide")

    def sizes(self) -> Iterator[Size]:
        """Yield sizes to try in turn for what is left open, each with several examples first where they are small."""
        last = [name for name in self._open if any(dims[-1:] == [name] for dims in self._dims.values())]
        ones, alike = dict.fromkeys(self._open, 1), dict.fromkeys(self._open, SIZES[0])
        found: list[Size] = []
        rows = (dims for name, dims in self._dims.items() if name not in self._uses)
        if any(len(dims) in {1, 2} and dims[-1] in self._open for dims in rows):
            found.append(ones | dict.fromkeys(last, LARGE_SIZES[2]))  # a row of numbers may be sound
        for lengths in ((*SIZES, *self._weights), LARGE_SIZES):
            found += [dict.fromkeys(self._open, length) for length in lengths]
            found += [ones | dict.fromkeys(last, length) for length in lengths]
            found += [alike | {name: length} for name in self._open for length in lengths]
        for size in [one for at, one in enumerate(found) if one not in found[:at]]:
            one = size | dict.fromkeys(self._batch, 1)
            largest = max((math.prod(self._shape(name, one)) for name in self._dims), default=1)
            if self._batch and 2 * largest <= MOST_NUMBERS:
                yield one | dict.fromkeys(self._batch, min(EXAMPLES, MOST_NUMBERS // largest))
            if largest <= MOST_TRIED or not one:
                yield one

    def _shape(self, name: str, size: Size) -> list[int]:
        return [size[dim] if isinstance(dim, str) else dim for dim in self._dims[name]]

    def make(self, size: Size, draw: Draw, seed: int = 0) -> Feeds:
        """Make inputs with `size` for what is left open; raise `ValueError` for a kind of which none can be made up."""
        first = seed * len(self._infos)
        return {info.name: self._made(info, size, draw, first + number) for number, info in enumerate(self._infos)}

    def _made(self, info: ValueInfoProto, size: Size, draw: Draw, seed: int) -> NDArray[Any]:
        if info.type.WhichOneof("value") != "tensor_type":
            raise ValueError(info.name)
        kind, shape, random = info.type.tensor_type.elem_type, self._shape(info.name, size), np.random.default_rng(seed)
        if kind == TensorProto.STRING:
            return np.full(shape, "a")
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(kind))
        if dtype.kind in "iub" or info.name in self._uses:
            longest = max((size[one] for one in self._open), default=CHOSEN_SIZE)
            return _integers(self._uses[info.name], shape, random, draw, longest).astype(dtype)
        if draw == "tones" and max(shape, default=0) >= LONG:
            return _tones(shape, random).astype(dtype)
        made = random.uniform(-WIDE, WIDE, shape) if draw == "wide" else random.standard_normal(shape)
        return np.asarray(made).astype(dtype)


def _tones(shape: list[int], random: np.random.Generator) -> NDArray[Any]:
    """Make a tone with overtones, each half as loud as the one before, and some noise.

    It runs along the longest axis, or across the two longest where both are long, as in a picture.
    """
    axes = [int(axis) for axis in np.argsort(shape, kind="stable")[-2:] if shape[axis] >= LONG]
    time = np.zeros([1] * len(shape))
    for axis in axes:
        steps = np.arange(shape[axis]).reshape([-1 if at == axis else 1 for at in range(len(shape))])
        time = time + steps * random.uniform(0.02, 0.1)
    tone = sum(0.5**number * np.sin((number + 1) * time + random.uniform(0, math.tau)) for number in range(6))
    loudness = random.uniform(0.1, 1, [1 if at in axes else length for at, length in enumerate(shape)])
    return np.asarray(tone * loudness + FAINT * random.standard_normal(shape))


def _integers(use: Use, shape: list[int], random: np.random.Generator, draw: Draw, longest: int) -> NDArray[Any]:
    """Draw integers by what they are for."""
    if use.kind == "index":
        return np.asarray(random.integers(0, use.most, shape))
    if use.kind in {"choice", "size", "length"}:
        choices = use.choices or (longest if use.kind == "length" else CHOSEN_SIZE,)
        return np.full(shape, choices[-1 if draw == "wide" else 0])
    if use.kind == "count":
        length = shape[-1] if shape else 1
        first = FARTHEST - length if draw == "long" else int(random.integers(0, STEPS)) if draw == "wide" else 0
        return np.broadcast_to(np.arange(length) + first, shape).copy() if shape else np.asarray(first + STEPS // 2)
    chosen = np.asarray(random.integers(0, 2, shape))
    if use.kind == "unknown":
        return np.asarray(chosen ^ (draw == "wide"))
    if draw == "normal" or not shape:
        return np.ones_like(chosen)
    chosen[..., :1] = 1  # whoever looks at nothing divides by zero
    return chosen


class _Uses:
    """Tells what integers are for by who takes them, as they are, moved or computed with."""

    def __init__(self, source: Prepared) -> None:
        self._takers: dict[str, list[tuple[Scope, NodeProto]]] = defaultdict(list)
        for scope in source.scopes:
            for node in scope.graph.node:
                for name in dict.fromkeys(node.input):
                    self._takers[name].append((scope, node))

    def of(self, name: str) -> Use:
        """Tell what a value is for."""
        found: list[Use] = []
        todo, seen = [name], {name}
        while todo:
            at = todo.pop()
            for scope, node in self._takers[at]:
                places = [number for number, one in enumerate(node.input) if one == at]
                found += [use for place in places if (use := self._use(scope, node, place))]
                follows = node.op_type in ARITHMETIC and (0 in places or node.op_type != "Gather")
                new = [one for one in node.output if follows and one not in seen and scope.types.get(one) != FLOAT]
                todo += new
                seen.update(new)
        if "mask" in name.lower():
            return Use("mask")
        if tables := [use for use in found if use.kind == "index"]:
            return min(tables, key=lambda use: use.most)
        order = ("choice", "size", "length", "mask", "count")
        return next((use for kind in order for use in found if use.kind == kind), Use("unknown"))

    def _use(self, scope: Scope, node: NodeProto, place: int) -> Use | None:
        """Tell what one node takes a value for; None for what tells nothing."""
        if node.op_type.startswith("Gather") and node.op_type != "GatherND" and place == 1:
            table = scope.constants.get(node.input[0])
            return Use("index", most=table.dims[attribute(node, "axis", 0)] if table is not None else 1)
        if node.op_type == "Equal" and (choices := _constant(scope, node, 1 - place)):
            return Use("choice", choices=tuple(map(int, choices)))
        if node.op_type in (SIZES_LATER if place else SIZES_FIRST):
            return Use("size")
        if node.op_type in COMPARES:
            return Use("length")
        kind = attribute(node, "to") if node.op_type == "Cast" else None
        if node.op_type in DECIDES or kind == TensorProto.BOOL:
            return Use("mask")
        return self._as_number(node) if kind in {FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE} else None

    def _as_number(self, cast: NodeProto) -> Use:
        """Tell what an integer is for that is cast to a float: a mask is taken from 1, all else counts."""
        for scope, taker in self._takers[cast.output[0]]:
            if taker.op_type == "Equal":
                choices = _constant(scope, taker, 0) or _constant(scope, taker, 1)
                return Use("choice", choices=tuple(map(int, choices or ())) or (0, 1))
            if taker.op_type == "Sub" and _constant(scope, taker, 0) == [1.0]:
                return Use("mask")
        return Use("count")


def _constant(scope: Scope, node: NodeProto, index: int) -> list[Any] | None:
    """Return the numbers of an input that is a constant; None where it is computed, left out or was not read."""
    found = numbers(scope.constants.get(node.input[index])) if len(node.input) > index else None
    return None if found is None else list(found.ravel().tolist())


def dims_of(info: ValueInfoProto) -> list[int | str]:
    """Return the sizes of a tensor; each open one has a name, "x#1" after value and axis where it was given none."""
    return [
        dim.dim_value if dim.dim_value > 0 else f"{info.name}#{axis}" if dim.dim_param in NAMELESS else dim.dim_param
        for axis, dim in enumerate(info.type.tensor_type.shape.dim)
    ]
