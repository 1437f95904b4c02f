"""One run of a model on made-up or given inputs, and what its values were: how large, how tiny, how they add up."""

from __future__ import annotations

import contextlib
import importlib.util
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, helper

from assistant.onnx.fp16_policy import OPERATORS
from assistant.onnx.inputs import Draw, Feeds, Inputs
from assistant.onnx.program import FLOAT, Program, Step, Value, attribute, constant_input
from assistant.onnx.runtime import opened, run
from assistant.onnx.value_ranges import LARGEST, ROUNDED_AWAY

# Real values may be so much larger than those of made-up inputs, or of given ones (chosen).
MARGINS: dict[Draw, float] = {"normal": 8.0, "wide": 1.5, "long": 1.5}
GIVEN_MARGIN = 2.0
FADED = 2.0**-17  # a value whose largest number is below has lost more than its last two digits in FP16
RUN_BYTES = 2**30  # of values kept at a time
MOST_PROBED = 30_000  # values: the time in which ONNX Runtime opens a model grows with their square (measured)
IN_MEMORY = 1_500_000_000  # bytes of a model that may be handed over in one piece; protobuf ends at 2 GB


@dataclass
class Measured:
    """What a run showed: values outside FP16's range, steps whose inner sums leave it, and values that were seen."""

    outside: set[Value] = field(default_factory=set)
    crowded: set[Step] = field(default_factory=set)
    seen: set[Value] = field(default_factory=set)

    def examine(self, batch: Mapping[Value, Any], margin: float) -> None:
        """Add the values of a run; real ones may be `margin` times as large."""
        self.seen.update(batch)
        for value, numbers in batch.items():
            if not isinstance(numbers, np.ndarray) or numbers.dtype != np.float32:
                continue
            sizes = np.abs(numbers)
            sizes = sizes if np.isfinite(sizes).all() else sizes[np.isfinite(sizes)]
            peak = float(sizes.max(initial=0))
            fades = any(_divides(step, value) for step in value.takers) and ((sizes > 0) & (sizes < ROUNDED_AWAY)).any()
            if peak * margin > LARGEST or 0 < peak < FADED or fades:
                self.outside.add(value)
            self.crowded |= {step for step in value.takers if _crowds(step, value, numbers, margin)}


def measure(program: Program, inputs: Inputs, samples: Sequence[Feeds] = ()) -> Measured | None:
    """Run a program on `samples`, else on made-up `inputs`; None where no run succeeds."""
    model, values = program.filled(), program.main.values
    computed = (value for step in program.main.steps for value in step.outputs if value is not None)
    wanted = {value.name: value for value in computed if value.kind == FLOAT}
    if not importlib.util.find_spec("onnxruntime") or model.ByteSize() > IN_MEMORY or len(wanted) > MOST_PROBED:
        return None
    with contextlib.suppress(Exception):  # the runtime's own errors share no base
        session = _probed(model, wanted)
        for size in (None,) if samples else inputs.sizes():
            measured = Measured()
            with contextlib.suppress(Exception):
                made = [(inputs.make(size, draw), MARGINS[draw]) for draw in inputs.draws] if size else []
                for sample, margin in made or [(sample, GIVEN_MARGIN) for sample in samples]:
                    measured.examine({values[name]: sample[name] for name in values.keys() & sample.keys()}, margin)
                    for batch in _run_in_batches(session, wanted, sample):
                        measured.examine(batch, margin)
                return measured
    return None


def _run_in_batches(session: Any, wanted: Mapping[str, Value], sample: Feeds) -> Iterator[dict[Value, Any]]:  # noqa: ANN401
    for batch in _batches(wanted):
        yield dict(zip((wanted[name] for name in batch), run(session, sample, batch), strict=True))


def _probed(model: ModelProto, names: Iterable[str]) -> Any:  # noqa: ANN401 - the library has no types
    """Open a model in ONNX Runtime on the CPU, unoptimised; the values of these names become outputs, too."""
    probed = ModelProto()
    probed.CopyFrom(model)
    have = {info.name for info in probed.graph.output}
    probed.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in names if name not in have)
    return opened(probed)


def _batches(names: Mapping[str, Value]) -> Iterator[list[str]]:
    """Divide values so that those of one run fit into `RUN_BYTES`; an open size is taken for 64 then."""
    batch: list[str] = []
    left = RUN_BYTES
    for name, value in names.items():
        size = 4 * math.prod(length or 64 for length in value.shape) if value.shape is not None else 2**20
        if batch and size > left:
            yield batch
            batch, left = [], RUN_BYTES
        batch.append(name)
        left -= size
    yield batch


def _divides(step: Step, value: Value) -> bool:
    index = OPERATORS.divides_by.get(step.op)
    return index is not None and len(step.inputs) > index and step.inputs[index] is value


def _crowds(step: Step, value: Value, numbers: NDArray[Any], margin: float) -> bool:
    """Return whether a sum that a step forms inside, of its first input or of its squares, leaves FP16's range."""
    if (
        step.op not in OPERATORS.sums_squares | OPERATORS.sums
        or not step.inputs
        or step.inputs[0] is not value
        or not numbers.ndim
    ):
        return False
    axes = _reduced(step, numbers.ndim)
    terms = np.square(numbers, dtype=np.float32) if step.op in OPERATORS.sums_squares else np.abs(numbers)
    return float(terms.sum(axis=axes).max(initial=0)) * (margin if step.op in OPERATORS.sums_squares else 1) > LARGEST


def _reduced(step: Step, rank: int) -> tuple[int, ...]:
    """Return the axes that a normalisation or reduction sums over; all where the model computes them."""
    if step.op in {"InstanceNormalization", "GlobalAveragePool"}:
        return tuple(range(2, rank))
    if step.op == "GroupNormalization":
        return tuple(range(1, rank))
    if step.op.startswith("Reduce"):
        axes = attribute(step.node, "axes", constant_input(step, 1))
        return tuple(int(axis) % rank for axis in axes) if isinstance(axes, Iterable) else tuple(range(rank))
    first = attribute(step.node, "axis", -1)
    return tuple(range(int(first) % rank, rank)) if isinstance(first, int) else (rank - 1,)
