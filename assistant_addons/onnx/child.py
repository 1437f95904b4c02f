"""Runs one model in a process of its own: a request on standard input, one JSON line out."""

from __future__ import annotations

import contextlib
import json
import statistics
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

PROVIDERS = {"dml": "DmlExecutionProvider", "cpu": "CPUExecutionProvider"}


def main() -> None:
    """Answer the request; a failure is an answer, too."""
    request = json.loads(sys.stdin.read())
    with contextlib.redirect_stdout(sys.stderr):
        answer: dict[str, Any]
        try:
            answer = WORK[request["work"]](request)
        except Exception as error:  # noqa: BLE001 - the runtime's errors share no base, and the parent tells this one
            answer = {"error": f"{type(error).__name__}: {error}"}
    sys.stdout.write(json.dumps(answer) + "\n")


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Load and run the model on a provider; return placement, seconds and memory. The outputs go to a file."""
    started = time.perf_counter()
    session = _session(request["model"], request["provider"])
    loaded = time.perf_counter() - started
    given = _given(request, session)
    outputs, first = _timed(session, given)
    times = [_timed(session, given)[1] for _number in range(request["runs"])]
    _save(request["outputs"], outputs)
    return {
        "load_seconds": loaded,
        "first_seconds": first,
        "seconds": statistics.median(times) if times else first,
        "peak_bytes": _peak_bytes(),
        "placement": _placement(session),
        "provider": "dml" if PROVIDERS["dml"] in session.get_providers() else "cpu",
    }


def strictly(request: dict[str, Any]) -> dict[str, Any]:
    """Run the model with every FP16 value rounded where it is made, which the runtime's CPU kernels leave out."""
    from assistant_addons.onnx.proof import opened, rounded  # noqa: PLC0415 - after the request is read

    session = opened(rounded(_read(request["model"], weights=True)))
    started = time.perf_counter()
    outputs, _first = _timed(session, _given(request, session))
    _save(request["outputs"], outputs)
    return {"seconds": time.perf_counter() - started}


def _session(model: str, provider: str) -> Any:  # noqa: ANN401 - the library has no types
    import onnxruntime  # noqa: PLC0415 - only a child loads it

    from assistant_addons.onnx.defects import disabled  # noqa: PLC0415 - likewise

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
    without = disabled(provider, onnxruntime.__version__)
    return onnxruntime.InferenceSession(_content(model), options, providers=providers, disabled_optimizers=without)


def _content(model: str) -> str | bytes:
    """Return the file's name, or the content of a model whose IR version alone is too new, under an older one."""
    from assistant_addons.onnx.graph import KNOWN_IR  # noqa: PLC0415 - likewise

    bare = _read(model)
    if bare.ir_version <= KNOWN_IR:
        return model
    whole = _read(model, weights=True)
    whole.ir_version = KNOWN_IR
    return bytes(whole.SerializeToString())


def _read(path: str, *, weights: bool = False) -> Any:  # noqa: ANN401 - onnx is imported only here
    import onnx  # noqa: PLC0415 - only a child loads it

    from assistant.api.system import open_regular  # noqa: PLC0415 - likewise

    with open_regular(Path(path), follow=True) as file:
        model = onnx.load_model_from_string(file.read())
    if weights:
        onnx.external_data_helper.load_external_data_for_model(model, str(Path(path).parent))
    return model


def _given(request: dict[str, Any], session: Any) -> dict[str, Any]:  # noqa: ANN401
    """Take the inputs that are there, in the types that the session takes; else make some that the model accepts."""
    kinds = {"tensor(float16)": np.float16, "tensor(float)": np.float32}
    infos = (*session.get_inputs(), *session.get_overridable_initializers())
    wanted = {info.name: kinds.get(info.type) for info in infos}
    if Path(request["inputs"]).exists():
        with np.load(request["inputs"], allow_pickle=False) as archive:
            given = {name: archive[name] for name in archive.files if name in wanted}
        return {n: a.astype(wanted[n]) if wanted[n] and a.dtype.kind == "f" else a for n, a in given.items()}
    given = _accepted(request["model"], session, set(wanted))
    _save(request["inputs"], given)
    return given


def _accepted(model: str, session: Any, wanted: set[str]) -> dict[str, Any]:  # noqa: ANN401
    """Return made-up inputs that the session runs on; raise its last error where it runs on none."""
    from assistant_addons.onnx.inputs import Inputs, traced_lengths  # noqa: PLC0415 - likewise
    from assistant_addons.onnx.prepare import prepare  # noqa: PLC0415 - likewise

    whole = _read(model, weights=True)
    inputs = Inputs(prepare(whole), lengths=traced_lengths(whole))
    failure: Exception = ValueError()
    for size in inputs.sizes():
        for draw in inputs.draws:
            given = {name: value for name, value in inputs.make(size, draw).items() if name in wanted}
            try:
                session.run(None, given)
            except Exception as error:  # noqa: BLE001 - the next size may do
                failure = error
            else:
                return given
    raise failure


def _save(path: str, arrays: dict[str, Any]) -> None:
    """Write arrays by name; raises `ValueError` for what is none."""
    contents: dict[str, Any] = {name: np.asarray(content) for name, content in arrays.items()}
    np.savez(path, **contents)


def _timed(session: Any, given: dict[str, Any]) -> tuple[dict[str, Any], float]:  # noqa: ANN401
    started = time.perf_counter()
    found = session.run(None, given)
    seconds = time.perf_counter() - started
    return dict(zip((info.name for info in session.get_outputs()), found, strict=True)), seconds


def _placement(session: Any) -> dict[str, dict[str, int]]:  # noqa: ANN401
    """Count the operators that each provider runs, as the session recorded them; {} for runtimes before 1.24."""
    found: dict[str, Counter[str]] = {}
    with contextlib.suppress(Exception):
        for part in session.get_provider_graph_assignment_info():
            found.setdefault(part.ep_name, Counter()).update(node.op_type for node in part.get_nodes())
    return {name: dict(count) for name, count in found.items()}


def _peak_bytes() -> int:
    """Return the most memory that this process held."""
    import psutil  # noqa: PLC0415 - only here

    on_windows = getattr(psutil.Process().memory_info(), "peak_wset", None)
    if on_windows is not None:
        return int(on_windows)
    import resource  # noqa: PLC0415 - not on Windows

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


WORK = {"run": run, "strict": strictly}

if __name__ == "__main__":
    main()
