"""One run of a model on made-up or given inputs, and what its values were: how large, how tiny, how they add up."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, helper

from assistant.onnx.fp16_policy import OPERATORS
from assistant.onnx.graph import KNOWN_IR
from assistant.onnx.inputs import Draw, Feeds, Inputs
from assistant.onnx.program import FLOAT, Program, Step, Value, attribute, constant_input
from assistant.onnx.value_ranges import LARGEST, ROUNDED_AWAY

# Real values may be so much larger than those of made-up inputs, or of given ones (chosen).
MARGINS: dict[Draw, float] = {"normal": 8.0, "wide": 1.5, "long": 1.5}
GIVEN_MARGIN = 2.0
FADED = 2.0**-17  # a value whose largest number is below has lost more than its last two digits in FP16
RUN_BYTES = 2**30  # of values kept at a time
MOST_PROBED = 30_000  # values: the time in which ONNX Runtime opens a model grows with their square (measured)
IN_MEMORY = 1_500_000_000  # bytes of a model that may be handed over in one piece; protobuf ends at 2 GB

# What the slow reference evaluator does in about a second, in steps and multiplications, and what else costs it as many
# multiplications: starting a step, and each number of an operator that it computes in Python, and under its window.
SMALL_STEPS, SMALL_WORK = 2000, 2e7
EACH, LOOPED, PER_TAP = 1000, 400, 20
UNCOUNTED = 2**31  # from here on a loop's count means that its condition ends it
OPEN = 8  # taken for an open size where work is estimated


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
    for run in _engines(model, wanted, small=is_small(program)):
        for size in (None,) if samples else inputs.sizes():
            measured = Measured()
            with contextlib.suppress(Exception):  # the runtime's own errors share no base
                made = [(inputs.make(size, draw), MARGINS[draw]) for draw in inputs.draws] if size else []
                for sample, margin in made or [(sample, GIVEN_MARGIN) for sample in samples]:
                    measured.examine({values[name]: sample[name] for name in values.keys() & sample.keys()}, margin)
                    for batch in run(sample):
                        measured.examine(batch, margin)
                return measured
    return None


def is_small(program: Program) -> bool:
    """Return whether ONNX's reference evaluator runs a program in about a second."""
    if sum(1 for _step in itertools.islice(program.steps(), SMALL_STEPS + 1)) > SMALL_STEPS:
        return False
    return sum(map(_work, program.main.steps)) <= SMALL_WORK


def evaluate(model: ModelProto, given: Feeds) -> dict[str, Any]:
    """Run ONNX's reference evaluator, in which every node rounds its result to its type; return all values by name."""
    from onnx.reference import ReferenceEvaluator  # noqa: PLC0415 - half a second

    with np.errstate(all="ignore"):
        found = ReferenceEvaluator(model).run(None, given, intermediate=True)
    return dict(found) if isinstance(found, dict) else {}


def evaluate_on_runtime(model: ModelProto, given: Feeds) -> dict[str, Any]:
    """Run ONNX Runtime; return all values by name. It has operators that the evaluator lacks, but rounds less often."""
    session = _probed(model, [name for node in model.graph.node for name in node.output if name])
    taken = {info.name for info in session.get_inputs()}
    found = session.run(None, {name: content for name, content in given.items() if name in taken})
    return dict(zip((info.name for info in session.get_outputs()), found, strict=True))


def _engines(model: ModelProto, wanted: Mapping[str, Value], *, small: bool) -> Iterator[Any]:
    """Yield the ways to run a model: ONNX Runtime, and for a small one ONNX's own evaluator."""
    if importlib.util.find_spec("onnxruntime") and model.ByteSize() < IN_MEMORY and len(wanted) < MOST_PROBED:
        with contextlib.suppress(Exception):
            session = _probed(model, wanted)
            yield lambda sample: _run_in_batches(session, wanted, sample)
    if small:
        yield lambda sample: [{wanted[k]: v for k, v in evaluate(model, sample).items() if k in wanted}]


def _run_in_batches(session: Any, wanted: Mapping[str, Value], sample: Feeds) -> Iterator[dict[Value, Any]]:  # noqa: ANN401
    taken = {info.name for info in session.get_inputs()}
    sample = {name: content for name, content in sample.items() if name in taken}
    for batch in _batches(wanted):
        yield dict(zip((wanted[name] for name in batch), session.run(batch, sample), strict=True))


def _probed(model: ModelProto, names: Iterable[str]) -> Any:  # noqa: ANN401 - the library has no types
    """Open a model in ONNX Runtime on the CPU, unoptimised; the values of these names become outputs, too."""
    import onnxruntime  # noqa: PLC0415 - a tenth of a second, and optional

    probed = ModelProto()
    probed.CopyFrom(model)
    probed.ir_version = min(probed.ir_version, KNOWN_IR)
    have = {info.name for info in probed.graph.output}
    probed.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in names if name not in have)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(probed.SerializeToString(), options, providers=["CPUExecutionProvider"])


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


def _work(step: Step) -> float:
    """Estimate the multiplications of a step with all that its subgraphs do; an open size counts as a middling one."""
    return (
        EACH + _multiplications(step) + _rounds(step) * sum(_work(one) for scope in step.inner for one in scope.steps)
    )


def _rounds(step: Step) -> int:
    """Estimate how often a step runs its subgraph, as far as the model says."""
    if step.op == "Loop":
        count = (constant_input(step, 0) or [UNCOUNTED])[0]
    else:
        shape = step.inputs[-1].shape if step.op == "Scan" and step.inputs[-1] is not None else (1,)
        count = shape[0] if shape and shape[0] is not None else UNCOUNTED
    return count if isinstance(count, int) and 0 <= count < UNCOUNTED else OPEN


def _multiplications(step: Step) -> float:
    sizes = [_size(value, step.inputs) for value in step.outputs if value is not None]
    weights = step.inputs[1] if len(step.inputs) > 1 else None
    if step.op in {"Conv", "ConvTranspose", "Gemm", "MatMul"} and weights is not None and weights.shape:
        row = math.prod(length or OPEN for length in weights.shape[1:])
        return sum(sizes) * (
            row if step.op.startswith("Conv") else weights.shape[-2 if len(weights.shape) > 1 else 0] or 64
        )
    window = attribute(step.node, "kernel_shape")
    taps = max(0, math.prod(window)) if isinstance(window, list) else 0
    return float(sum(sizes)) * (LOOPED + PER_TAP * taps if step.op in OPERATORS.loops_in_python else 1)


def _size(value: Value, likely: Sequence[Value | None] = ()) -> int:
    """Estimate how many numbers a value holds: where that is not known, as many as the largest of the likely ones."""
    if value.shape is None:
        return max((_size(other) for other in likely if other is not None), default=1)
    return math.prod(OPEN if length is None else length for length in value.shape)
