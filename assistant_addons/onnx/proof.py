"""Runs a model on made-up or given inputs, measures its values, and proves a conversion by what the original made."""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from onnx import NodeProto, helper, numpy_helper

from assistant_addons.onnx.fp16_policy import LARGEST, OPERATORS, ROUNDED_AWAY, Constants, Slots
from assistant_addons.onnx.graph import opsets, unique_name
from assistant_addons.onnx.inputs import Draw, Feeds, Inputs
from assistant_addons.onnx.insert_casts import Writer
from assistant_addons.onnx.program import FLOAT, Program, Step, Value, attribute, constant_input, replace_nodes
from assistant_addons.onnx.runtime import CLOSE, differs, opened, rounded, run

# Real values may be so much larger than those of made-up inputs, or of given ones (chosen).
MARGINS: dict[Draw, float] = {"normal": 8.0, "wide": 1.5, "long": 1.5, "tones": 2.0}
GIVEN_MARGIN = 2.0
# How often each is drawn, where a run is given and makes at most so many numbers (chosen): rounding shows in some
# results and not in others, and one run on a long sound or a large picture has many.
REPEATS: dict[Draw, int] = {"normal": 3, "tones": 3}
MOST_REPEATED = 200_000
FADED = 2.0**-17  # a value whose largest number is below has lost more than its last two digits in FP16
MOST_PROBED = 30_000  # values: the time in which ONNX Runtime opens a model grows with their square (measured)
IN_MEMORY = 1_500_000_000  # bytes of a model that may be handed over in one piece; protobuf ends at 2 GB
PROVED = 700_000_000  # bytes of a model that is held three times: as it was, rounded, and in the runtime
CLOSE_WIDE = 5e-2  # of the largest number, for inputs that are there to find what overflows (chosen)

# Why no run tells: no ONNX Runtime, a model that is too large, one that it cannot run, or one that draws at random.
Obstacle = Literal["", "missing", "size", "run", "random"]
# Opsets that brought Where, and reductions whose axes are an input.
FIRST_WHERE, FIRST_AXES_AS_INPUT = 9, 18
# The axis from which on these sum; others name it.
FIRST_SUMMED = {"GlobalAveragePool": 2, "GroupNormalization": 1, "InstanceNormalization": 2}
SEARCH_SECONDS = 20.0  # chosen: for which it is tried to give operations back to FP16, once the result is right
SMALLEST_SHARE = 32  # of what stays FP32 that is tried by itself


class Run(NamedTuple):
    """Inputs, what the original made of them, and by how much a result may differ."""

    given: Feeds
    results: list[Any]
    limit: float

    def agrees(self, found: list[Any]) -> bool:
        """Return whether these results are as good as the original's."""
        return not any(differs(one, other, self.limit) for one, other in zip(self.results, found, strict=True))


@dataclass
class Measured:
    """What runs showed: values outside FP16's range, steps whose inner sums leave it, and the results, to compare with.

    `obstacle` says why there are no results that a conversion could be held against; `ran` is whether it ran at all.
    """

    ran: bool = False
    obstacle: Obstacle = ""
    outside: set[Value] = field(default_factory=set)
    crowded: set[Step] = field(default_factory=set)
    runs: list[Run] = field(default_factory=list)


def measure(program: Program, inputs: Inputs, samples: Sequence[Feeds] = ()) -> Measured:
    """Run a program on `samples`, else on the first made-up `inputs` that it takes."""
    if not importlib.util.find_spec("onnxruntime"):
        return Measured(obstacle="missing")
    gauged = _Gauged(program)
    if gauged.size > IN_MEMORY or len(gauged.rows) > MOST_PROBED:
        return Measured(obstacle="size")
    with contextlib.suppress(Exception):  # the runtime's own errors share no base
        gauged.open()
        for offered in [[_Sample(sample, GIVEN_MARGIN, CLOSE) for sample in samples]] if samples else _made(inputs):
            with contextlib.suppress(Exception):  # the next ones may do
                return _measured(gauged, offered)
    return Measured(obstacle="run")


class _Sample(NamedTuple):
    """Inputs, how many times as large real ones may make a value, and by how much a result may differ.

    One that is drawn `again` may be left out.
    """

    given: Feeds
    margin: float
    limit: float
    again: bool = False


def _made(inputs: Inputs) -> Iterator[list[_Sample]]:
    """Yield made-up inputs for one size after another."""
    for size in inputs.sizes():
        for one in filter(None, (inputs.several(size), size)):
            # Where no axis is long enough for tones, they are the normal draw once more, so they start elsewhere.
            yield [
                _Sample(
                    inputs.make(one, draw, 2 * time + (draw == "tones")),
                    MARGINS[draw],
                    CLOSE_WIDE if draw == "wide" else CLOSE,
                    again=time > 0,
                )
                for time in range(max(REPEATS.values()))
                for draw in inputs.draws
                if time < REPEATS.get(draw, 1)
            ]


def _measured(gauged: _Gauged, offered: list[_Sample]) -> Measured:
    measured, held = Measured(ran=True), 0
    for sample in offered:
        if sample.again and held > MOST_REPEATED:
            continue
        results, numbers = gauged.run(sample.given)
        for row, number in zip(gauged.rows, numbers, strict=True):
            row.judge(number, sample.margin, measured)
        measured.runs.append(Run(sample.given, results, sample.limit))
        arrays = [one for one in (*sample.given.values(), *results) if isinstance(one, np.ndarray)]
        held = max(held, sum(array.size for array in arrays))
    first = measured.runs[0]
    if gauged.size > PROVED:
        measured.runs, measured.obstacle = [], "size"
    elif not first.agrees(gauged.run(first.given)[0]):
        measured.runs, measured.obstacle = [], "random"
    return measured


@dataclass(frozen=True)
class _Row:
    """What a number tells: how large values with the same numbers are, that they fade where they divide, or a sum."""

    kind: Literal["peak", "faded", "sum", "squares"]
    values: list[Value]
    step: Step | None = None

    def judge(self, number: float, margin: float, measured: Measured) -> None:
        """Add what the number tells; real ones may be `margin` times as large."""
        if self.step is None:
            if (number * margin > LARGEST or 0 < number < FADED) if self.kind == "peak" else number > 0:
                measured.outside.update(self.values)
        elif number * (margin if self.kind == "squares" else 1) > LARGEST:
            measured.crowded.add(self.step)


class _Gauged:
    """A program's model with one output more, a number for each of `rows`.

    What computes a number stands right behind the node that makes the value, which is not kept for longer.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._prefix = unique_name("gauged", {name for scope in program.scopes() for name in scope.values})
        self._build(finite=False)

    def open(self) -> None:
        """Open the model in ONNX Runtime, which then has it."""
        self._session = opened(self.model, in_order=True)
        del self.model

    def run(self, given: Feeds) -> tuple[list[Any], list[float]]:
        """Return the model's outputs and the numbers; beside an infinity it is told how large the others are."""
        *results, numbers = run(self._session, given, [*self.outputs, self._last])
        if not self._finite and not np.isfinite(numbers).all():
            del self._session
            self._build(finite=True)
            self.open()
            return self.run(given)
        return results, numbers.ravel().tolist()

    def _build(self, *, finite: bool) -> None:
        self.rows: list[_Row] = []
        self.model = self._program.filled()
        self.size = self.model.ByteSize()
        self.outputs = [info.name for info in self.model.graph.output]
        self._opset = opsets(self.model).get("", 1)
        self._finite = finite
        self._peaks: dict[Value, list[Value]] = {}
        self._known_axes: dict[tuple[int, ...], str] = {}
        self._numbers: list[str] = []
        self._nodes: list[NodeProto] = []
        graph = self.model.graph
        self._zero, self._least, self._infinity = (
            self._add("Constant", value=helper.make_tensor("", FLOAT, [], [number]))
            for number in (0.0, ROUNDED_AWAY, math.inf)
        )
        for info in graph.input:
            self._gauge(self._program.main.values[info.name])
        for step, node in zip(self._program.main.steps, graph.node, strict=True):
            self._nodes.append(node)
            for value in step.outputs:
                self._gauge(value)
        self._last = self._add("Concat", *self._numbers, axis=0)
        replace_nodes(graph, self._nodes)
        graph.output.append(helper.make_tensor_value_info(self._last, FLOAT, None))

    def _gauge(self, value: Value | None) -> None:
        """Add what computes the numbers of a value; one that is another in another shape is as large as that."""
        if value is None or value.kind != FLOAT or value.tensor is not None:
            return
        divides = any(_divides(step, value) for step in value.takers)
        same = value.maker.inputs[0] if value.maker and value.maker.op in OPERATORS.reorders else None
        if same in self._peaks and not divides:
            self._peaks[same].append(value)
            self._peaks[value] = self._peaks[same]
        else:
            self._sizes(value, divides=divides)
        for step in value.takers:
            squares = step.op in OPERATORS.sums_squares
            if (squares or step.op in OPERATORS.sums) and step.inputs[0] is value:
                sums = self._summed(step, value, "ReduceSumSquare" if squares else "ReduceL1")
                self._row(_Row("squares" if squares else "sum", [value], step), sums)

    def _sizes(self, value: Value, *, divides: bool) -> None:
        sizes = self._add("Abs", value.name)
        if self._finite and self._opset >= FIRST_WHERE:
            sizes = self._add("Where", self._add("Less", sizes, self._infinity), sizes, self._zero)
        self._peaks[value] = [value]
        self._row(_Row("peak", self._peaks[value]), sizes)
        if divides:
            tiny = self._add("And", self._add("Greater", sizes, self._zero), self._add("Less", sizes, self._least))
            self._row(_Row("faded", [value]), self._add("Cast", tiny, to=FLOAT))

    def _summed(self, step: Step, value: Value, reduction: str) -> str:
        """Add the sums that a normalisation or reduction forms inside."""
        if step.op.startswith("Reduce"):
            axes = attribute(step.node, "axes", constant_input(step, 1))
            return self._reduced(reduction, value.name, axes if isinstance(axes, list) else None)
        first = FIRST_SUMMED.get(step.op, attribute(step.node, "axis", -1))
        if value.shape and isinstance(first, int):
            first %= len(value.shape)  # Flatten takes negative axes from opset 11 on
        return self._reduced(reduction, self._add("Flatten", value.name, axis=first), [1])

    def _row(self, row: _Row, values: str) -> None:
        """Add a row for the largest of some values."""
        self.rows.append(row)
        self._numbers.append(self._reduced("ReduceMax", self._add("Flatten", values, axis=0), [1]))

    def _reduced(self, reduction: str, values: str, axes: list[int] | None) -> str:
        """Reduce values along axes, or all; the axes are an input from opset 18 on."""
        if axes is None or self._opset < FIRST_AXES_AS_INPUT:
            return self._add(reduction, values, **({"axes": axes} if axes else {}))
        return self._add(reduction, values, self._axes(tuple(axes)))

    def _axes(self, axes: tuple[int, ...]) -> str:
        if axes not in self._known_axes:
            content = numpy_helper.from_array(np.array(axes, np.int64))
            self._known_axes[axes] = self._add("Constant", value=content)
        return self._known_axes[axes]

    def _add(self, op: str, *inputs: str, **attributes: Any) -> str:  # noqa: ANN401 - as onnx has them
        """Add a node and return the name of what it makes."""
        name = f"{self._prefix}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name


def _divides(step: Step, value: Value) -> bool:
    index = OPERATORS.divides_by.get(step.op)
    return index is not None and len(step.inputs) > index and step.inputs[index] is value


class Proof:
    """Holds choices of steps for FP16 against the `runs` of one program."""

    def __init__(self, source: Program, constants: Constants, runs: Sequence[Run]) -> None:
        self._source, self._constants, self._runs = source, constants, list(runs)
        self._names = [info.name for info in source.model.graph.output]

    def improve(self, converted: dict[Step, Slots]) -> set[Step]:
        """Return the steps that have to stay FP32 so that the result agrees."""
        with _older_left_alone():
            if self._holds(converted):
                return set()
            steps = list(converted)
            kept = min(self._shortest(converted, steps), self._shortest(converted, steps[::-1]), key=len)
            return set(self._returned(converted, kept))

    def _holds(self, converted: Mapping[Step, Slots], kept: Iterable[Step] = ()) -> bool:
        """Return whether the result agrees with the original where `kept` stays FP32; what told last is asked first."""
        left = set(kept)
        chosen = {step: slots for step, slots in converted.items() if step not in left}
        with contextlib.suppress(Exception):  # the runtime's errors share no base: what it refuses does not hold
            session = opened(rounded(Writer(self._source, chosen, self._constants).write()))
            gc.collect()  # what made it refers to itself in circles, and holds copies of the weights
            against = next((one for one in self._runs if not one.agrees(run(session, one.given, self._names))), None)
            self._runs.sort(key=lambda one: one is not against)
            return against is None
        return False

    def _shortest(self, converted: Mapping[Step, Slots], steps: Sequence[Step]) -> list[Step]:
        """Return the shortest beginning of `steps` that is enough, by halving; all of them where less is not."""
        low, high = 0, len(steps)
        while low + 1 < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._holds(converted, steps[:middle]) else (middle, high)
        return list(steps[:high])

    def _returned(self, converted: Mapping[Step, Slots], kept: list[Step]) -> list[Step]:
        """Give parts of what stays FP32 back to FP16, large ones first, as long as the result agrees."""
        deadline, share = time.monotonic() + SEARCH_SECONDS, 4
        while share <= SMALLEST_SHARE and len(kept) > 1:
            size = max(1, len(kept) // share)
            for start in range(0, len(kept), size)[::-1]:
                fewer = kept[:start] + kept[start + size :]
                if time.monotonic() > deadline:
                    return kept
                kept = fewer if self._holds(converted, fewer) else kept
            share *= 2
        return kept


@contextlib.contextmanager
def _older_left_alone() -> Iterator[None]:
    """Keep garbage collection from looking at what is there already, which would take longer than the trials."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
