"""Runs inside the target's own Python and writes to stdout, in JSON lines, what its torch really computes.

Run as `python -I -X utf8 child.py '{"device": "cpu", "checks": ["import", "matmul"]}'`, or with that JSON on stdin.
It needs the standard library, torch >= 1.13 and NumPy, runs on Python >= 3.8 and imports nothing of the assistant;
the checks themselves are in the files beside it that `FILES` names.
Lines: `{"facts": {…}}`, `{"start": key}` and `{"check": {"key": …, "status": …, "seconds": …, "detail": …, …},
"reason": …, "values": {…}}`, whose fields are those of the parent's `Check` and the key and values of a sentence that
the parent writes; everything else on stdout or stderr comes from the libraries.
A result counts only if it lives on the device that was asked for and each of its elements agrees with NumPy in float64.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import importlib.util
import json
import os
import platform
import re
import signal
import statistics
import sys
import threading
import time
import warnings
from typing import Any, Callable, Dict, List, Sequence, Tuple  # noqa: UP035 - evaluated by Python 3.8

Tensor = Any  # torch is there once the target has imported it
Array = Any
Module = Any
Result = Dict[str, Any]  # noqa: UP006 - evaluated by Python 3.8
Compute = Callable[[], List[Tensor]]  # noqa: UP006 - evaluated by Python 3.8
Run = Callable[..., List[Any]]  # noqa: UP006 - likewise
Checks = Dict[str, Tuple[Callable[["Target"], Result], Tuple[str, ...]]]  # noqa: UP006 - evaluated by Python 3.8

FILES = ("checks.py", "workloads.py")
IMPORTS = "imports.py"  # in their place, where distributions are to be imported
# Chosen: enough runs for a median and its spread, and few enough for a quick verification to stay quick.
REPEATS = 3
LEAST, MOST = 5, 30  # repeats of a measured work
MEGABYTE = 1 << 20
ANSWERS = os.dup(1)  # stays ours where a library closes or redirects stdout, and no child of it inherits this one
MEMORY_EXIT = 75  # what this process ends with when a check took too much memory; run.py knows it
# The largest |got - expected| / (|expected| + mean |expected|) that a float32 element may show. Sums of a few hundred
# terms stay below 1e-5; TF32 and half precision, above 3e-4, do not pass.
TOLERANCE = 1e-4
# What torch, torch-directml and the device libraries say when an operator or a type is missing.
MISSING_OPERATOR = re.compile(
    r"not (currently )?(implemented|supported)(?! between)|unsupported|could not run '|do(es not|esn't) support",
    re.IGNORECASE,
)
CPU_FALLBACK = re.compile(r"operator '([^']+)'.*fall back to run on the CPU", re.DOTALL)


class Refused(Exception):
    """The device asked for is not the one that did the work; `explanation` says why, as `explain` does."""

    def __init__(self, reason: str, **values: object) -> None:
        super().__init__(reason)
        self.explanation = explain(reason, **values)


def explain(reason: str, **values: object) -> Result:
    """Return a reason as its key, with the values of its placeholders; the parent makes a translated sentence of it."""
    return {"reason": reason, "values": values}


def error_chain(error: BaseException | None) -> str:
    """Return an exception and its causes, a line each, the original one last; 8 lines, 4,000 characters at most."""
    parts: list[str] = []
    while error is not None and len(parts) < 8:  # noqa: PLR2004 - a chain that long repeats itself
        parts.append(f"{type(error).__name__}: {error}")
        error = error.__cause__ or error.__context__
    return "\n".join(parts)[:4000]


class Target:
    """The device under test: as it was asked for and, once the first checks have passed, as torch's own."""

    def __init__(self, asked: str) -> None:
        self.asked = asked
        self.kind, _, self.index = asked.partition(":")
        self.torch: Module = None
        self.device: Any = None

    @property
    def numpy(self) -> Module:
        """The target's NumPy."""
        return importlib.import_module("numpy")

    def random_array(self, seed: int, *shape: int) -> Array:
        """Return random float32 numbers in [-1, 1) as a NumPy array: the same at every call for the same seed."""
        return self.numpy.random.default_rng(seed).uniform(-1.0, 1.0, shape).astype("float32")

    def to_device(self, array: Array) -> Tensor:
        """Return a copy of a NumPy array as a tensor on the device."""
        return self.torch.from_numpy(array).to(self.device, copy=True)

    # For the files of the checks, which cannot import this one.
    explain, refuse, error_chain = staticmethod(explain), Refused, staticmethod(error_chain)

    @staticmethod
    def report_facts(**facts: object) -> None:
        """Send facts about torch or the device to the parent, as text; empty ones are left out."""
        write_line(facts={key: str(value).strip("\x00 ") for key, value in facts.items() if value})

    @staticmethod
    def to_float64(array: Array) -> Array:
        """Return an array in float64, in which the references are computed."""
        return array.astype("float64")

    def measure(self, compute: Compute, expected: Sequence[Array], tolerance: float = TOLERANCE) -> Result:
        """Compute once, which may compile, and three times more; compare the first and last results with `expected`.

        Return the result of `judge_runs`, with the seconds of the first run and the median of the others. Raises
        `Refused` if a tensor is not on the device.
        """
        first_seconds, first = self._timed(compute)
        runs = [self._timed(compute) for _ in range(REPEATS)]
        for tensor in [*first, *runs[-1][1]]:
            self.require_device(tensor)
        fetched = [[tensor.cpu().numpy() for tensor in results] for results in (first, runs[-1][1])]
        seconds = statistics.median(seconds for seconds, _ in runs)
        return {**self.judge_runs(fetched, expected, tolerance), "seconds": seconds, "first_seconds": first_seconds}

    def compare(self, arrays: Sequence[Array], there: Run, here: Run, tolerance: float = TOLERANCE) -> Result:
        """Compute `there` from the arrays on the device, `here` from them in NumPy's float64; return as `measure`."""
        mine = [self.to_device(array) for array in arrays]
        return self.measure(lambda: there(*mine), here(*map(self.to_float64, arrays)), tolerance)

    def judge_runs(
        self, runs: Sequence[Sequence[Array]], expected: Sequence[Array], tolerance: float = TOLERANCE
    ) -> Result:
        """Compare each run's results, one by one, with their references.

        Return the status "passed" or "wrong", the largest relative error (None where it is infinite) and the tolerance;
        a wrong result says in which element.
        """
        pairs = [pair for run in runs for pair in zip(run, expected)]  # noqa: B905 - strict= came with Python 3.10
        found = [largest_error(self.numpy, got, want, tolerance) for got, want in pairs]
        error, complaint = max(found, key=lambda pair: pair[0])
        measured = {"error": error if error < float("inf") else None, "tolerance": tolerance}
        return {"status": "passed", **measured} if error <= tolerance else {"status": "wrong", **measured, **complaint}

    def require_device(self, tensor: Tensor) -> None:
        """Raise `Refused` for a tensor that is not on the device asked for."""
        found = tensor.device
        if found.type != self.device.type or (self.index and found.index != int(self.index)):
            raise Refused("elsewhere", found=str(found), asked=self.asked)

    def accelerator(self) -> Module:
        """Return torch's module for the device (`torch.cuda`, `torch.mps` …), or None."""
        return None if self.device.type == "cpu" else getattr(self.torch, self.device.type, None)

    def wait(self, results: Sequence[Tensor]) -> None:
        """Wait until the device has computed what was queued; with DirectML, by fetching each of the results."""
        synchronize = getattr(self.accelerator(), "synchronize", None)
        if synchronize is not None:
            synchronize(*(() if self.device.type == "mps" else (self.device,)))  # else the first GPU is waited for
        elif self.device.type != "cpu":
            for result in results:
                result.cpu()

    def make_cpu_target(self) -> Target:
        """Return a target for the same torch on this machine's CPU."""
        other = Target("cpu")
        other.torch, other.device = self.torch, self.torch.device("cpu")
        return other

    def seconds_per_run(self, compute: Compute, budget: float = 0.3) -> float:
        """Repeat `compute` 5 to 30 times, for about `budget` seconds, after a first run; return its median seconds.

        The first tensor that it returns must be on the device, else `Refused` is raised.
        """
        self.require_device(self._timed(compute)[1][0])
        times: list[float] = []
        while len(times) < LEAST or (sum(times) < budget and len(times) < MOST):
            times.append(self._timed(compute)[0])
        return statistics.median(times)

    def measure_speed(
        self, make: Callable[[Target], Compute], amount: float, unit: str, cpu_amount: float = 0.0
    ) -> Result:
        """Measure the rate of a workload, in `unit`, on the device and, unless that is the CPU, on this machine's CPU.

        `make` returns the work for a target. One run does `amount`, as in TFLOP for TFLOP/s; if `make` gives the CPU
        less to do, that does `cpu_amount`. Return the rates as "speed", with the status "passed", or "slow" if the CPU
        is faster.
        """
        seconds = self.seconds_per_run(make(self))
        found: Result = {"rate": amount / seconds, "unit": unit}
        if self.kind != "cpu":
            cpu = self.make_cpu_target()
            found["cpu_rate"] = (cpu_amount or amount) / cpu.seconds_per_run(make(cpu))
        result: Result = {"status": "passed", "seconds": seconds, "speed": found}
        if found["rate"] < found.get("cpu_rate", 0.0):
            result.update(status="slow", **explain("slower than the CPU", **found))
        return result

    def bytes_in_use(self) -> int:
        """Return the bytes that the process holds in the machine's memory and on the device."""
        there = self.device is not None and self.device.type != "cpu"
        return resident_bytes() + ((self.bytes_allocated() or 0) if there else 0)

    def bytes_held(self) -> int:
        """Return the bytes that torch holds on the device, or those of the process where torch does not count them."""
        allocated = self.bytes_allocated()
        return resident_bytes() if allocated is None else allocated

    def bytes_allocated(self) -> int | None:
        """Return the bytes that torch holds on the device; None where it does not count them."""
        names = ("memory_allocated", "current_allocated_memory")
        module = self.accelerator()
        counter = next((getattr(module, name) for name in names if hasattr(module, name)), None)
        if counter is None:
            return None
        return int(counter() if counter.__name__ == names[1] else counter(self.device))

    def _timed(self, compute: Compute) -> tuple[float, list[Tensor]]:
        """Compute, wait for the device, and return the seconds that both took and the results."""
        started = time.perf_counter()
        results = compute()
        self.wait(results)
        return time.perf_counter() - started, results


def largest_error(np: Module, got: Array, want: Array, tolerance: float) -> tuple[float, Result]:
    """Return the largest error of an element, and an explanation with its index and how many exceed `tolerance`.

    An error is relative to the expected element's size plus the mean size of all. It is infinite for NaN and for
    another shape, which the explanation then names.
    """
    got, want = np.asarray(got), np.asarray(want, dtype="float64")
    if got.shape != want.shape:
        return float("inf"), explain("shape", shape=str(got.shape), expected=str(want.shape))
    scale = np.maximum(np.abs(want) + np.abs(want).mean(), np.finfo("float64").tiny)
    errors = np.abs(got.astype("float64") - want) / scale
    errors = np.where(np.isnan(errors), np.inf, errors)
    place = np.unravel_index(int(errors.argmax()), errors.shape)
    off, where = int((errors > tolerance).sum()), ", ".join(str(int(index)) for index in place)
    value, right = repr(got[place].item()), repr(want[place].item())
    return float(errors[place]), explain("off", off=off, size=got.size, place=where, value=value, expected=right)


def resident_bytes() -> int:
    """Return this process's bytes in memory; 0 outside Linux if psutil is missing, which every kernel brings."""
    if os.path.exists("/proc/self/statm"):  # noqa: PTH110 - quicker
        # It reads like "112345 23456 4567 812 0 34567 0", in pages (proc_pid_statm(5)).
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - quicker
            return int(file.read().split()[1]) * int(os.sysconf("SC_PAGE_SIZE"))
    return (
        int(importlib.import_module("psutil").Process().memory_info().rss) if importlib.util.find_spec("psutil") else 0
    )


def watch_memory(limit: int, running: list[str], target: Target) -> None:
    """End the process with status `MEMORY_EXIT` once the check under way makes it grow by more than `limit` bytes.

    That is the last key of `running`, to which the caller appends; its "failed" result is written before. Memory here
    and on the device counts. Returns when `running` is empty.
    """
    start, seen = target.bytes_in_use(), ""
    while running:
        if running[-1] != seen:
            start, seen = target.bytes_in_use(), running[-1]
        if target.bytes_in_use() - start > limit:
            write_result(seen, {"status": "failed", **explain("too much", size=limit >> 20)})
            os._exit(MEMORY_EXIT)
        time.sleep(0.1)


def all_checks() -> Checks:
    """Return all checks of torch by key: the function, and the keys of the checks that must have passed before."""
    checks: Checks = {}
    for name in FILES:
        checks.update(load_file(name).CHECKS)
    return checks


def load_file(name: str) -> Module:
    """Run a file that lies beside this one, and return it as a module; raise `FileNotFoundError` without it."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)  # noqa: PTH100, PTH118, PTH120 - quicker
    spec = importlib.util.spec_from_file_location("verify_" + name.split(".", maxsplit=1)[0], path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_check(target: Target, checks: Checks, key: str, passed: set[str]) -> Result:
    """Run one check by its key and return its result; an exception becomes the status "failed" or "unsupported".

    It is skipped if the key is unknown, or a check that it needs is not in `passed`. It is "unsupported" instead of
    "passed" if torch warned that an operator ran on the CPU.
    """
    if key not in checks:
        return {"status": "skipped", **explain("unknown", check=key)}
    function, needs = checks[key]
    missing = [need for need in needs if need not in passed]
    if missing:
        return {"status": "skipped", **explain("needs", need=missing[0])}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call_check(function, target)
    return check_fallbacks(target, result, list(dict.fromkeys(str(warning.message) for warning in caught)))


def call_check(function: Callable[[Target], Result], target: Target) -> Result:
    """Call a check and return its result; an exception becomes the status "failed" or "unsupported".

    It is "unsupported" if its text says so of an operator or a type. `Refused` gives its explanation, any other
    exception its chain of causes as detail.
    """
    try:
        return function(target)
    except Refused as reason:
        return {"status": "failed", **reason.explanation}
    except Exception as error:  # noqa: BLE001 - any failure of the target is a finding
        lacking = isinstance(error, (NotImplementedError, RuntimeError, TypeError)) and MISSING_OPERATOR.search(
            str(error)
        )
        return {"status": "unsupported" if lacking else "failed", "detail": error_chain(error)}


def check_fallbacks(target: Target, result: Result, warned: list[str]) -> Result:
    """Return the result, "unsupported" for "passed" or "slow" if torch warned that it ran an operator on the CPU.

    Nothing changes if the CPU is the device. All of the warnings `warned` are written to stderr, for the parent's log.
    """
    fallbacks = [found.group(1) for found in map(CPU_FALLBACK.search, warned) if found]
    for text in warned:
        with contextlib.suppress(Exception):  # what was imported may have closed it
            print(text, file=sys.stderr, flush=True)  # noqa: T201 - the parent reads it as a log line
    if fallbacks and target.kind != "cpu" and result["status"] in ("passed", "slow"):
        explanation = explain("fallback", operators=", ".join(fallbacks), device=target.asked)
        return {**result, "status": "unsupported", **explanation}
    return result


def write_line(**line: object) -> None:
    """Write one JSON line for the parent at once; a line feed before it ends a library's unfinished line."""
    with contextlib.suppress(Exception):  # what was imported may have closed it
        sys.stdout.flush()
    os.write(ANSWERS, ("\n" + json.dumps(line) + "\n").encode())


def write_result(key: str, result: Result) -> None:
    """Write a check's result and, taken out of `result`, the key and values of its sentence beside it."""
    explanation = {name: result.pop(name) for name in ("reason", "values") if name in result}
    write_line(check={"key": key, **result}, **explanation)


def watch_for_crashes() -> None:
    """Write Python's stack to stderr when a library crashes or the parent ends a check that hangs."""
    faulthandler.enable()
    if hasattr(faulthandler, "register"):
        faulthandler.register(signal.SIGTERM, chain=True)


def main() -> int:
    """Run the checks of the request from the command line or stdin, in order; write each start and result; return 0.

    The request names the `device` and the keys of the `checks`; with `packages` they are checks of imports.py. The
    process ends itself if one check takes more than `memory` bytes. Checks in the request's `ready` count as passed; of
    those, "import" and "device" are run again, unreported.
    """
    request = json.loads(sys.argv[1] if len(sys.argv) > 1 else sys.stdin.read())
    watch_for_crashes()
    packages = request.get("packages")
    target, checks = Target(request["device"]), load_file(IMPORTS).checks(packages) if packages else all_checks()
    passed = set(request.get("ready", ()))  # a process before this one did them
    running = ["start"]
    if request.get("memory"):
        threading.Thread(target=watch_memory, args=(request["memory"], running, target), daemon=True).start()
    target.report_facts(python=platform.python_version(), executable=sys.executable)
    for key in [key for key in ("import", "device") if key in passed]:
        run_check(target, checks, key, {"import"})
    for key in request["checks"]:
        running.append(key)
        write_line(start=key)
        result = run_check(target, checks, key, passed)
        if result["status"] in ("passed", "slow"):
            passed.add(key)
        write_result(key, result)
    return 0


if __name__ == "__main__":
    ended = main()
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    os._exit(ended)  # torch takes a quarter of a second to go, and nothing is left to do
