"""Runs one model in ONNX Runtime, in a child that may be another Python: nothing of the assistant is imported here."""

from __future__ import annotations

import contextlib
import json
import math
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.external_data_helper import load_external_data_for_tensor, uses_external_data

PROVIDERS = {"dml": "DmlExecutionProvider", "cpu": "CPUExecutionProvider"}
# The optimiser that makes a Gelu for which DirectML has no kernel: see the finding gelu-fusion of `check`.
WITHOUT = {"dml": ["GeluFusionL1"], "cpu": list[str]()}
SMALL = 2**18  # numbers: a larger weight in a file of its own is not read to make inputs (chosen)


def run(model: str, provider: str, inputs: str, outputs: str, repeats: int) -> str:
    """Load and run a model; return placement and seconds, or the runtime's error, as the JSON of a `Run`.

    Inputs that are not there are made up, and kept for the next model; the outputs go into a file, too. The provider
    "rounded" is the CPU, with every FP16 value rounded where it is made, which the runtime's CPU kernels leave out.
    """
    try:
        started = time.perf_counter()
        session = _rounded(model) if provider == "rounded" else _session(model, provider)
        loaded = time.perf_counter() - started
        given = _given(model, session, Path(inputs))
        first = _timed(session, given, outputs)
        answer = {
            "load_seconds": loaded,
            "first_seconds": first,
            "seconds": statistics.median(_timed(session, given) for _number in range(repeats)),
            "placement": _placement(session),
            "provider": "dml" if PROVIDERS["dml"] in session.get_providers() else "cpu",
        }
    except Exception as error:  # noqa: BLE001 - the runtime's errors share no base
        answer = {"error": f"{type(error).__name__}: {error}"}
    return json.dumps(answer)


def _rounded(model: str) -> Any:  # noqa: ANN401 - the library has no types
    from assistant_addons.onnx.proof import opened, rounded  # noqa: PLC0415 - only where it is asked for

    return opened(rounded(onnx.load(model)))


def _session(model: str, provider: str) -> Any:  # noqa: ANN401 - likewise
    import onnxruntime  # noqa: PLC0415 - its absence is an answer

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    # Both are what DirectML needs: https://onnxruntime.ai/docs/execution-providers/DirectML-ExecutionProvider.html
    options.enable_mem_pattern = False
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    with contextlib.suppress(Exception):  # runtimes before 1.24 do not know it
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    if PROVIDERS[provider] not in onnxruntime.get_available_providers():
        provider = "cpu"  # which the answer says
    providers = list(dict.fromkeys((PROVIDERS[provider], PROVIDERS["cpu"])))
    return onnxruntime.InferenceSession(model, options, providers=providers, disabled_optimizers=WITHOUT[provider])


def _given(model: str, session: Any, file: Path) -> dict[str, Any]:  # noqa: ANN401
    """Return the inputs in a file, in the types that the session takes; else made-up ones that it runs on.

    Raises the session's last error where it runs on none.
    """
    kinds = {"tensor(float16)": np.float16, "tensor(float)": np.float32}
    wanted = {info.name: kinds.get(info.type) for info in session.get_inputs()}
    if file.exists():
        with np.load(file, allow_pickle=False) as archive:
            given = {name: archive[name] for name in archive.files if name in wanted}
        return {n: a.astype(wanted[n]) if wanted[n] and a.dtype.kind == "f" else a for n, a in given.items()}
    failure: Exception = ValueError()
    for made in _made(model):
        given = {name: value for name, value in made.items() if name in wanted}
        try:
            session.run(None, given)
        except Exception as error:  # noqa: BLE001 - the next ones may do
            failure = error
        else:
            _save(str(file), given)
            return given
    raise failure


def _made(model: str) -> Iterator[dict[str, Any]]:
    """Yield inputs that a model may take."""
    from assistant_addons.onnx.inputs import Inputs  # noqa: PLC0415 - only where none are given
    from assistant_addons.onnx.prepare import prepare  # noqa: PLC0415 - likewise

    whole = onnx.load(model, load_external_data=False)
    for tensor in whole.graph.initializer:
        if uses_external_data(tensor) and math.prod(tensor.dims) <= SMALL:
            load_external_data_for_tensor(tensor, str(Path(model).parent))
    inputs = Inputs(prepare(whole))
    yield from (inputs.make(size, draw) for size in inputs.sizes() for draw in inputs.draws)


def _timed(session: Any, given: dict[str, Any], outputs: str = "") -> float:  # noqa: ANN401
    """Run a session; return its seconds, and write what it computed where `outputs` says so."""
    started = time.perf_counter()
    found = session.run(None, given)
    seconds = time.perf_counter() - started
    if outputs:
        _save(outputs, dict(zip((info.name for info in session.get_outputs()), found, strict=True)))
    return seconds


def _save(path: str, arrays: dict[str, Any]) -> None:
    contents: dict[str, Any] = {name: np.asarray(content) for name, content in arrays.items()}
    np.savez(path, **contents)


def _placement(session: Any) -> dict[str, dict[str, int]]:  # noqa: ANN401
    """Count the operators that each provider runs, as the session recorded them; {} for runtimes before 1.24."""
    found: dict[str, Counter[str]] = {}
    with contextlib.suppress(Exception):
        for part in session.get_provider_graph_assignment_info():
            found.setdefault(part.ep_name, Counter()).update(node.op_type for node in part.get_nodes())
    return {name: dict(count) for name, count in found.items()}
