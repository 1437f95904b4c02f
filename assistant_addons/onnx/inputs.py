"""Makes inputs that a model takes: sizes that its weights ask for, integers by what they are for, several draws."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, TypeProto, helper

from assistant_addons.onnx.graph import given_inputs
from assistant_addons.onnx.prepare import ARITHMETIC, FLOAT, Prepared, Scope, attribute, numbers

Feeds = dict[str, Any]  # an array per input, or a list of arrays for a sequence
# Normally distributed numbers; numbers spread far, with other integers; integers that count, such as positions, as
# large as a long text makes them; and tones, as in sound: loud and faint ones beside each other.
Draw = Literal["normal", "wide", "long", "tones"]

# Tried in turn for sizes that the model leaves open (chosen: a short text or small image, 3 channels), then the lengths
# that occur most often in the weights, then these: 224 pixels a side, windows of sound.
SIZES, LARGE_SIZES = (64, 32, 3, 8, 1), (224, 512, 4096, 16000)
SOUND = 4096  # samples, tried first for an input of numbers in a row: a quarter of a second
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

Size = dict[str, int]  # of each axis that the model leaves open, by its name
NAMELESS = "?"  # what Paddle writes for any size that is open: two of them need not be equal

# What operators take integers for, by the number of the input. Places in a table: the place's input, and the table's.
LOOKS_UP = {"Gather": ((1, 0),), "GatherElements": ((1, 0),), "EmbedLayerNormalization": ((0, 2), (1, 4))}
# Sizes, counts of rounds, lengths of sequences, divisors, and steps: one of zero in an STFT ends ONNX Runtime's process
# (1.32.0, tried 2026-11-27).
TAKES_SIZES = {
    "BlackmanWindow": (0,), "ConstantOfShape": (0,), "DFT": (1,), "Div": (1,), "Expand": (1,), "GRU": (4,),
    "LSTM": (4,), "HammingWindow": (0,), "HannWindow": (0,), "Loop": (0,), "Mod": (1,), "OneHot": (1,), "Pad": (1,),
    "RNN": (4,), "Range": (0, 1, 2), "Reshape": (1,), "Resize": (3,), "Slice": (1, 2, 3, 4), "STFT": (1, 3),
    "Split": (1,), "Tile": (1,), "TopK": (1,), "Trilu": (1,),
}  # fmt: skip
DECIDES = frozenset({"And", "Not", "Or", "Where", "Xor"})  # they come out as truths, or choose
COMPARES = frozenset({"Greater", "GreaterOrEqual", "Less", "LessOrEqual"})  # held against others: lengths, mostly


class Use(NamedTuple):
    """What an integer is for: a place in a table of `most`, one of `choices`, a mask, a length, a size or a count."""

    kind: Literal["index", "choice", "mask", "length", "size", "count", "unknown"]
    most: int = 0
    choices: tuple[int, ...] = ()


class Inputs:
    """The inputs of a model: made up for one size after another until it runs on them.

    `lengths` are tried last.
    """

    def __init__(self, source: Prepared, lengths: Sequence[int] = ()) -> None:
        self._weights = _most_frequent(length for one in source.model.graph.initializer for length in one.dims)
        self._lengths = tuple(lengths)
        self._infos = given_inputs(source.model.graph)
        self._types = source.scopes[0].types
        uses = _Uses(source)
        self._uses = {info.name: use for info in self._infos if (use := uses.of_input(info.name))}
        self._dims = dims_by_input(source.model)
        self._batch = {dims[0] for dims in self._dims.values() if dims and isinstance(dims[0], str)}
        names = (dim for dims in self._dims.values() for dim in dims if isinstance(dim, str))
        self._open = [name for name in dict.fromkeys(names) if name not in self._batch]

    @property
    def draws(self) -> tuple[Draw, ...]:
        """The draws that tell apart what a model does: with a long one where an integer counts something."""
        counts = any(use.kind == "count" for use in self._uses.values())
        return ("long", "tones", "normal", "wide") if counts else ("tones", "normal", "wide")

    def sizes(self) -> Iterator[Size]:
        """Yield sizes to try in turn for what is left open, each with several examples first where they are small."""
        last = [name for name in self._open if any(dims[-1:] == [name] for dims in self._dims.values())]
        ones: Size = dict.fromkeys(self._open, 1)
        found: list[Size] = []
        if any(self._is_sound(name) for name in self._dims):
            found.append(ones | dict.fromkeys(last, SOUND))
        for lengths in ((*SIZES, *self._weights), (*LARGE_SIZES, *self._lengths)):
            found += [dict.fromkeys(self._open, length) for length in lengths]
            found += [ones | dict.fromkeys(last, length) for length in lengths]
            found += [
                {**dict.fromkeys(self._open, SIZES[0]), name: length} for name in self._open for length in lengths
            ]
        for size in [one for at, one in enumerate(found) if one not in found[:at]]:
            one = size | dict.fromkeys(self._batch, 1)
            largest = max((math.prod(self._shape(name, one)) for name in self._dims), default=1)
            if self._batch and 2 * largest <= MOST_NUMBERS:
                yield one | dict.fromkeys(self._batch, min(EXAMPLES, MOST_NUMBERS // largest))
            if largest <= MOST_TRIED or not one:
                yield one

    def _is_sound(self, name: str) -> bool:
        """Return whether an input is a row of numbers of any length."""
        dims, kind = self._dims[name], self._types[name]
        return kind == FLOAT and name not in self._uses and len(dims) in {1, 2} and dims[-1] in self._open

    def make(self, size: Size, draw: Draw, seed: int = 0) -> Feeds:
        """Make inputs with `size` for what is left open; raise `ValueError` for a kind of which none can be made up."""
        first = seed * len(self._infos)
        return {
            info.name: self._made(info.type, info.name, size, draw, first + number)
            for number, info in enumerate(self._infos)
        }

    def _made(self, kind: TypeProto, name: str, size: Size, draw: Draw, seed: int) -> Any:  # noqa: ANN401 - an array, or a list
        which = kind.WhichOneof("value")
        if which == "optional_type":
            return self._made(kind.optional_type.elem_type, name, size, draw, seed)
        if which == "sequence_type":
            return [self._made(kind.sequence_type.elem_type, name, size, draw, seed + number) for number in range(3)]
        if which != "tensor_type":
            raise ValueError(which)
        shape = self._shape(name, size) if name in self._dims else [max(dim, 1) for dim in dims_of(kind)]
        if kind.tensor_type.elem_type == TensorProto.STRING:
            return np.full(shape, "a")
        random, dtype = np.random.default_rng(seed), helper.tensor_dtype_to_np_dtype(kind.tensor_type.elem_type)
        if np.dtype(dtype).kind in "iub" or name in self._uses:
            use = self._uses.get(name, Use("unknown"))
            longest = max((size[one] for one in self._open), default=CHOSEN_SIZE)
            use = use._replace(most=longest) if use.kind == "length" else use
            return _integers(use, shape, random, draw).astype(dtype)
        if draw == "tones" and max(shape, default=0) >= LONG:
            return _tones(shape, random).astype(dtype)
        numbers = random.uniform(-WIDE, WIDE, shape) if draw == "wide" else random.standard_normal(shape)
        return np.asarray(numbers).astype(dtype)

    def _shape(self, name: str, size: Size) -> list[int]:
        return [size[dim] if isinstance(dim, str) else dim for dim in self._dims[name]]


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


def _integers(  # noqa: PLR0911 - a case per kind of use
    use: Use, shape: list[int], random: np.random.Generator, draw: Draw
) -> NDArray[Any]:
    if use.kind == "index":
        return np.asarray(random.integers(0, use.most, shape))
    if use.kind == "choice":
        return np.full(shape, use.choices[-1 if draw == "wide" else 0])
    if use.kind in {"size", "length"}:
        return np.full(shape, use.most or CHOSEN_SIZE)
    if use.kind == "count":
        length = shape[-1] if shape else 1
        first = FARTHEST - length if draw == "long" else int(random.integers(0, STEPS)) if draw == "wide" else 0
        return np.broadcast_to(np.arange(length) + first, shape).copy() if shape else np.asarray(first + STEPS // 2)
    chosen = np.asarray(random.integers(0, 2, shape))
    if use.kind != "mask":
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
        infos = (info for scope in source.scopes for info in (*scope.graph.value_info, *scope.graph.input))
        self._dims = {info.name: dims_of(info.type) for info in infos}
        self._types = source.scopes[0].types

    def of_input(self, name: str) -> Use | None:
        """Tell what an input is for; None for one of numbers. Some models take places in a table as floats."""
        if self._types.get(name) != FLOAT:
            return self.of(name)
        made = [node.output[0] for _scope, node in self._takers[name] if node.op_type == "Cast"]
        return next((use for one in made if (use := self.of(one)).kind == "index"), None)

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
        tables = [use.most for use in found if use.kind == "index"]
        if any(tables):
            return Use("index", most=min(filter(None, tables)))
        order = ("choice", "size", "length", "mask", "count")
        without = Use("index", most=1) if tables else Use("unknown")
        return next((use for kind in order for use in found if use.kind == kind), without)

    def _use(self, scope: Scope, node: NodeProto, place: int) -> Use | None:  # noqa: PLR0911 - a case per kind of use
        for places, table in LOOKS_UP.get(node.op_type, ()):
            if places == place:
                return Use("index", most=self._length(scope, node, node.input[table]))
        if node.op_type == "Equal" and (choices := _constant(scope, node, 1 - place)):
            return Use("choice", choices=tuple(map(int, choices)))
        if node.op_type in COMPARES or place in TAKES_SIZES.get(node.op_type, ()):
            return Use("length" if node.op_type in COMPARES else "size")
        if node.op_type in DECIDES:
            return Use("mask")
        kind = attribute(node, "to") if node.op_type == "Cast" else None
        if kind == TensorProto.BOOL:
            return Use("mask")
        if kind in {FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE}:
            takers = self._takers[node.output[0]]
            for inner, taker in takers:
                if taker.op_type == "Equal":
                    choices = _constant(inner, taker, 0) or _constant(inner, taker, 1)
                    return Use("choice", choices=tuple(map(int, choices or ())) or (0, 1))
            inverted = any(one.op_type == "Sub" and _constant(at, one, 0) == [1.0] for at, one in takers)
            return Use("mask" if inverted else "count")
        return None

    def _length(self, scope: Scope, node: NodeProto, table: str) -> int:
        """Return how long a table is in the axis in which a node looks something up; 0 where that is not known."""
        tensor, axis = scope.constants.get(table), attribute(node, "axis", 0)
        dims = list(tensor.dims) if tensor is not None else self._dims.get(table, [])
        return dims[axis] if -len(dims) <= axis < len(dims) else 0


def _constant(scope: Scope, node: NodeProto, index: int) -> list[Any] | None:
    """Return the numbers of an input that is a constant; None where it is computed, left out or was not read."""
    found = numbers(scope.constants.get(node.input[index])) if len(node.input) > index else None
    return None if found is None else list(found.ravel().tolist())


def traced_lengths(model: ModelProto) -> list[int]:
    """Return the lengths in the declared shapes of inner values that no weight has, the most frequent ones.

    ONNX Runtime believes those shapes, and runs some exports of torch at the length alone at which they were traced.
    """
    weights = {length for tensor in model.graph.initializer for length in tensor.dims}
    dims = (dim.dim_value for info in model.graph.value_info for dim in info.type.tensor_type.shape.dim)
    return _most_frequent(length for length in dims if length not in weights)


def _most_frequent(lengths: Iterable[int]) -> list[int]:
    count = Counter(length for length in lengths if length > 1)
    return sorted(length for length, _times in count.most_common(MOST_LENGTHS))


def dims_by_input(model: ModelProto) -> dict[str, list[int | str]]:
    """Return the sizes of those inputs that are tensors; each open one has a name.

    One without is called after its input and axis: "x#1".
    """
    return {
        info.name: [
            dim.dim_value if dim.dim_value > 0 else f"{info.name}#{axis}" if nameless else dim.dim_param
            for axis, dim in enumerate(info.type.tensor_type.shape.dim)
            for nameless in [dim.dim_param in {"", NAMELESS}]
        ]
        for info in given_inputs(model.graph)
        if info.type.WhichOneof("value") == "tensor_type"
    }


def dims_of(kind: TypeProto) -> list[int]:
    """Return the sizes that a tensor's type names, 0 for what is open, which some exporters write as -1."""
    return [max(dim.dim_value, 0) for dim in kind.tensor_type.shape.dim]
