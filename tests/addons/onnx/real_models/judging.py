"""Judges one converted model step by step, as far as it comes: `judging.py SOURCE MODEL FEEDS [STEP…]`.

`check` asks onnx's checker, `load` opens and runs the model in ONNX Runtime with its default options on the CPU,
and `strict` runs it with every FP16 value rounded where it is made.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from children import limit_memory, tell
from feeds import apart, inputs_of

from assistant_addons.onnx.load import load_model
from assistant_addons.onnx.proof import opened, rounded


def check(_source: Path, model: Path, _feeds: Path) -> None:
    """Tell whether onnx's checker, in full, takes the model."""
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:  # noqa: BLE001 - the checker raises many kinds
        tell(checked=False, check_error=f"{error}"[:300])
    else:
        tell(checked=True)


def types(source: Path, model: Path, _feeds: Path) -> None:
    """Tell whether inputs and outputs have their names and types still."""

    def told(path: Path) -> list[tuple[str, int]]:
        read = onnx.load(path, load_external_data=False)
        return [(info.name, info.type.tensor_type.elem_type) for info in (*inputs_of(read), *read.graph.output)]

    tell(io=told(source) == told(model))


def load(_source: Path, model: Path, feeds: Path) -> None:
    """Tell whether ONNX Runtime opens the model as it is, and how far its results lie from the source's."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    tell(loads=True)
    tell(errors=list(_errors(session, feeds)))


def strict(_source: Path, model: Path, feeds: Path) -> None:
    """Tell how far the results lie from the source's where every FP16 value is rounded."""
    tell(strict_errors=list(_errors(opened(rounded(load_model(model))), feeds)))


def _errors(session: Any, feeds: Path) -> Iterator[float]:
    names = json.loads((feeds / "names.json").read_text("utf-8"))
    wanted = {info.name: info.type for info in session.get_inputs()}
    for number in range(len(list(feeds.glob("given*.npz")))):
        with np.load(feeds / f"given{number}.npz") as given, np.load(feeds / f"made{number}.npz") as made:
            fed = {
                name: given[str(at)].astype(np.float16) if wanted[name] == "tensor(float16)" else given[str(at)]
                for at, name in enumerate(names)
                if name in wanted
            }
            found = session.run(None, fed)
            pairs = [(made[str(at)], array) for at, array in enumerate(found)]
            yield min(max((apart(one, other) for one, other in pairs), default=0.0), 1e9)


STEPS = {step.__name__: step for step in (types, check, load, strict)}


def main(source: Path, model: Path, feeds: Path, steps: Iterable[str]) -> None:
    """Take one step after the other; one that fails says so, one that crashes ends them."""
    limit_memory()
    for name in steps:
        tell(step=name)
        try:
            STEPS[name](source, model, feeds)
        except Exception as error:  # noqa: BLE001 - the runtime's errors share no base
            tell(**{f"{name}_error": f"{type(error).__name__}: {error}"[:300]})
    tell(step="")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:] or STEPS)
