"""Runs original and conversion in an evaluator that rounds at every node, and finds the steps where they part."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from onnx import ModelProto

from assistant.onnx.calibrate import evaluate, evaluate_on_runtime
from assistant.onnx.fp16_policy import Slots
from assistant.onnx.inputs import Draw, Feeds, Inputs
from assistant.onnx.insert_casts import Writer
from assistant.onnx.program import Program, Step, Value
from assistant.onnx.value_ranges import Constants

# All of these were chosen on the models of tests/onnx_traps.py and on onnx's own test models.
CLOSE = 4e-3  # of the largest number: what an output may differ by
CLOSE_WIDE = 5e-2  # the same for inputs that are there to find what overflows
PARTED = 2e-3  # of its own largest: from here on a value inside counts as having gone astray
MOST_CHANGED = 0.005  # of integers and truths, which change as a whole
ROUNDS = 8  # of rehearsal, until conversion and original agree
MOST_SIZES = 6  # that are tried in turn, as the evaluator is slow
AGAIN: tuple[Draw, ...] = ("normal",)  # drawn once more: what lies close to a threshold shows in one or the other

Values = dict[str, Any]  # what a run gave, by name


def distance(expected: Any, found: Any, least: float = 1.0) -> float:  # noqa: ANN401 - arrays, and numbers
    """Return how far an array is from the one that was expected.

    Of floats it is the largest difference, relative to the largest number expected or to `least` if that is larger; of
    other types the share that changed. It is infinite where the shapes, or the places of NaN or infinity, are others.
    """
    one, other = np.asarray(expected), np.asarray(found)
    if one.shape != other.shape:
        return math.inf
    if not _are_floats(one, other):
        return float(np.mean(one != other)) if one.size else 0.0
    one, other = one.astype(np.float64), other.astype(np.float64)
    if (np.isnan(one) != np.isnan(other)).any() or (np.isinf(one) != np.isinf(other)).any():
        return math.inf
    finite = np.isfinite(one)
    one, other = one[finite], other[finite]
    return float(np.abs(one - other).max(initial=0)) / max(least, float(np.abs(one).max(initial=0)))


def differs(expected: Any, found: Any, limit: float = CLOSE, least: float = 1.0) -> bool:  # noqa: ANN401 - arrays, lists
    """Return whether two results lie further apart than `limit`, or `MOST_CHANGED` where they are no floats."""
    if isinstance(expected, list) and isinstance(found, list):
        pairs = zip(expected, found, strict=False)
        return len(expected) != len(found) or any(differs(one, other, limit, least) for one, other in pairs)
    if expected is None or found is None or isinstance(expected, dict):
        return False
    return distance(expected, found, least) > (limit if _are_floats(expected, found) else MOST_CHANGED)


def _are_floats(*arrays: object) -> bool:
    return all(np.asarray(array).dtype.kind in "fc" for array in arrays)


def rehearse(
    source: Program,
    converted: dict[Step, Slots],
    why: dict[Step, str],
    constants: Constants,
    inputs: Inputs,
    samples: Sequence[Feeds],
) -> bool:
    """Run original and conversion on `samples`, else on made-up `inputs`, and return whether they agree in the end.

    Every node rounds. What parts them is taken out of `converted`, and the reason added to `why`.
    """
    draws = () if samples else (*inputs.draws, *AGAIN)
    limits = [CLOSE] * len(samples) or [CLOSE_WIDE if draw == "wide" else CLOSE for draw in draws]
    for run in (evaluate, evaluate_on_runtime):
        with contextlib.suppress(Exception):  # their errors share no base: what neither can run is not rehearsed
            runs = _original_runs(run, source, [samples] if samples else _made(inputs))
            for _round in range(ROUNDS if runs else 0):
                writer = Writer(source, converted, constants)
                written = writer.write()
                found = [run(written, given) for given, _expected in runs]
                pairs = [(expected, one) for (_given, expected), one in zip(runs, found, strict=True)]
                blame = _blamed(source, converted, writer.names, pairs, limits)
                if not blame:
                    return True
                for step in [step for step in converted if step in blame]:
                    why[step] = "rehearsal"
                    del converted[step]
            if runs:
                break
    return False


def _original_runs(
    run: Callable[[ModelProto, Feeds], Values], source: Program, offers: Iterable[Sequence[Feeds]]
) -> list[tuple[Feeds, Values]]:
    """Return the first inputs on offer that the original takes, each with all the values it has then; none for none.

    Nor where ONNX Runtime gives something else: the evaluator computes some operators by another definition.
    """
    original = source.filled()
    for offered in offers:
        with contextlib.suppress(Exception):
            runs = [(given, run(original, given)) for given in offered]
            if run is evaluate:
                with contextlib.suppress(Exception):  # the runtime need not be able to run the model
                    given, expected = runs[0]
                    found = evaluate_on_runtime(original, given)
                    if any(differs(found[info.name], expected.get(info.name)) for info in original.graph.output):
                        return []
            return runs
    return []


def _made(inputs: Inputs) -> Iterator[list[Feeds]]:
    for size in islice(inputs.sizes(), MOST_SIZES):
        yield [inputs.make(size, draw) for draw in inputs.draws] + [inputs.make(size, draw, seed=1) for draw in AGAIN]


def _blamed(
    program: Program,
    converted: Mapping[Step, object],
    names: Mapping[Value, str],
    pairs: Sequence[tuple[Values, Values]],
    limits: Sequence[float],
) -> set[Step]:
    """Return the FP16 steps to keep in FP32 after all, from what original and conversion gave, in pairs.

    Where all agree nothing is blamed; else those steps that stray though what they take did not, then whatever made
    their inputs, then everything that leads to a wrong output.
    """
    outputs = [info.name for info in program.model.graph.output]
    wrong = {
        name
        for (expected, found), limit in zip(pairs, limits, strict=True)
        for name in outputs
        if differs(expected.get(name), found.get(name), limit)
    }
    if not wrong:
        return set()
    steps: set[Step] = set()
    for expected, found in pairs:
        steps |= _first_astray(program, converted, names, expected, found)
    return steps or _leading_to(program, wrong, converted)


def _first_astray(
    program: Program, converted: Mapping[Step, object], names: Mapping[Value, str], expected: Values, found: Values
) -> set[Step]:
    strayed = {
        value
        for step in program.main.steps
        for value in step.outputs
        if value is not None and value.name in expected
        and differs(expected[value.name], found.get(names.get(value, value.name)), PARTED, 1e-30)
    }  # fmt: skip
    steps: set[Step] = set()
    for step in program.main.steps:
        if strayed.intersection(step.outputs) and not strayed.intersection(step.inputs):
            steps |= set(step.within())
            if step not in converted:
                steps |= {value.maker for value in step.inputs if value is not None and value.maker is not None}
    return steps & converted.keys()


def _leading_to(program: Program, wrong: set[str], converted: Mapping[Step, object]) -> set[Step]:
    todo = [program.main.values[name].maker for name in wrong if name in program.main.values]
    found: set[Step] = set()
    while todo:
        step = todo.pop()
        if step is None or step in found:
            continue
        inside = set(step.within())
        found |= inside
        todo.extend(value.maker for one in inside for value in one.inputs if value is not None)
    return found & converted.keys()
