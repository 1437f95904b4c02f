"""Proves a conversion: the result is run as the original was, and the fewest operations are found that stay FP32."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

from assistant.onnx.calibrate import Run
from assistant.onnx.fp16_policy import Slots
from assistant.onnx.insert_casts import Writer
from assistant.onnx.program import Program, Step
from assistant.onnx.rounding import rounded
from assistant.onnx.runtime import opened, run
from assistant.onnx.value_ranges import Constants

SEARCH_SECONDS = 20.0  # chosen: for which it is tried to give operations back to FP16, once the result is right
SMALLEST_SHARE = 32  # of what stays FP32 that is tried by itself


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
