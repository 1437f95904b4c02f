"""Proves a conversion: original and result are run, and the fewest operations are found that have to stay FP32."""

from __future__ import annotations

import contextlib
import importlib.util
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from onnx import ModelProto

from assistant.onnx.fp16_policy import Slots
from assistant.onnx.inputs import Draw, Feeds, Inputs
from assistant.onnx.insert_casts import Writer
from assistant.onnx.parity import CLOSE, differs
from assistant.onnx.program import Program, Step
from assistant.onnx.rounding import rounded
from assistant.onnx.runtime import opened, run
from assistant.onnx.value_ranges import Constants

CLOSE_WIDE = 5e-2  # of the largest number, for inputs that are there to find what overflows (chosen)
AGAIN: tuple[Draw, ...] = ("normal",)  # drawn once more: what lies close to a threshold shows in one or the other
SEARCH_SECONDS = 8.0  # chosen: for which it is tried to give operations back to FP16, once the result is right
SMALLEST_SHARE = 32  # of what stays FP32 that is tried by itself
IN_MEMORY = 700_000_000  # bytes of a model that is held three times: as it was, rounded, and in the runtime

# Why no run tells: no ONNX Runtime, a model that is too large, one that it cannot run, or one that draws at random.
Obstacle = Literal["", "missing", "size", "run", "random"]
# Inputs, what the original made of them, and by how much the result may differ.
Runs = list[tuple[Feeds, list[Any], float]]


class Proof:
    """Runs of one program, by which a choice of steps for FP16 is judged; `obstacle` says why there are none."""

    def __init__(self, source: Program, constants: Constants, inputs: Inputs, samples: Sequence[Feeds]) -> None:
        self._source, self._constants = source, constants
        self._names = [info.name for info in source.model.graph.output]
        self._runs: Runs = []
        self.obstacle = _obstacle(source)
        if not self.obstacle:
            self._runs, self.obstacle = _runs(source.filled(), self._names, inputs, samples)

    def improve(self, converted: dict[Step, Slots]) -> set[Step] | None:
        """Return the steps that have to stay FP32 so that the result agrees; None where no run can tell."""
        if self.obstacle:
            return None
        if self._holds(converted):
            return set()
        steps = list(converted)
        kept = min(self._shortest(converted, steps), self._shortest(converted, steps[::-1]), key=len)
        return set(self._returned(converted, kept))

    def _holds(self, converted: Mapping[Step, Slots], kept: Iterable[Step] = ()) -> bool:
        """Return whether the result agrees with the original where `kept` stays FP32."""
        left = set(kept)
        chosen = {step: slots for step, slots in converted.items() if step not in left}
        with contextlib.suppress(Exception):  # the runtime's errors share no base: what it refuses does not hold
            session = opened(rounded(Writer(self._source, chosen, self._constants).write()))
            return all(_agrees(session, self._names, *one) for one in self._runs)
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


def _obstacle(source: Program) -> Obstacle:
    size = sum(len(tensor.raw_data) + 4 * len(tensor.float_data) for tensor in source.weights.values())
    missing = importlib.util.find_spec("onnxruntime") is None
    return "missing" if missing else "size" if size > IN_MEMORY else ""


def _runs(model: ModelProto, names: list[str], inputs: Inputs, samples: Sequence[Feeds]) -> tuple[Runs, Obstacle]:
    """Run the original on `samples`, else on the first made-up inputs that it takes."""
    with contextlib.suppress(Exception):  # the runtime's errors share no base; what it cannot open it cannot prove
        session = opened(model)
        for offered in [[(sample, CLOSE) for sample in samples]] if samples else _made(inputs):
            with contextlib.suppress(Exception):  # the next ones may do
                runs = [(given, run(session, given, names), limit) for given, limit in offered]
                return (runs, "") if _agrees(session, names, *runs[0]) else ([], "random")
    return [], "run"


def _agrees(session: Any, names: list[str], given: Feeds, expected: list[Any], limit: float) -> bool:  # noqa: ANN401 - the library has no types
    found = run(session, given, names)
    return not any(differs(one, other, limit) for one, other in zip(expected, found, strict=True))


def _made(inputs: Inputs) -> Iterator[list[tuple[Feeds, float]]]:
    for size in inputs.sizes():
        drawn = [(draw, 0) for draw in inputs.draws] + [(draw, 1) for draw in AGAIN]
        yield [(inputs.make(size, draw, seed), CLOSE_WIDE if draw == "wide" else CLOSE) for draw, seed in drawn]
