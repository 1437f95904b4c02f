"""Choose the device that a program computes on. One file, to be copied or imported; it needs torch only.

    from device import pick_device, autocast
    device = pick_device()                 # INFERENCE_DEVICE=cuda:1 in the environment forces one
    with autocast(device):
        output = model.to(device)(inputs.to(device))

The order is CUDA or ROCm, then XPU, MPS, DirectML, CPU. `python device.py` prints what each backend answers, for a
bug report. Python 3.9 or newer, torch 1.13 or newer.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import platform
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

try:
    import torch
except (ImportError, OSError) as error:  # missing, or one of its libraries does not load
    message = f"PyTorch cannot be loaded by {sys.executable}: {error}. Install it anew, or start another Python."
    raise ImportError(message) from error

__all__ = ["ORDER", "Choice", "DeviceError", "autocast", "best_dtype", "choose_device", "pick_device", "supports"]

VARIABLE = "INFERENCE_DEVICE"
ORDER = ("cuda", "rocm", "xpu", "mps", "directml", "cpu")


class DeviceError(RuntimeError):
    """The requested device is not available; the message says why and what to do."""


class Choice(NamedTuple):
    """A device, the backend behind it (one of `ORDER`) and the reason in one line."""

    device: torch.device
    backend: str
    reason: str


class Answer(NamedTuple):
    """A backend's report on itself: how many devices it has and, when none, why."""

    devices: int
    why: str = ""


def pick_device(wanted: str | None = None) -> torch.device:
    """Return the best device that works, or the one that `wanted` or else `INFERENCE_DEVICE` names.

    Names: cuda, rocm, xpu, mps, directml, cpu, auto (the best); with an index where there are several, as in cuda:1.
    Raises `DeviceError` for an unknown name, and if a device that was named is not available.
    """
    return choose_device(wanted).device


def choose_device(wanted: str | None = None) -> Choice:
    """Return what `pick_device` does, with its backend and the reason; raise `DeviceError` as it does.

    With a ROCm build of torch, the name cuda means rocm.
    """
    source = "the program" if wanted else f"{VARIABLE} in the environment"
    name = (wanted or os.environ.get(VARIABLE, "")).strip().lower()
    if name in {"", "auto"}:
        return _choose_best()
    backend, colon, index = name.partition(":")
    if backend not in ORDER or (colon and not index.isdecimal()):
        raise DeviceError(
            f"{source} asks for {name!r}, which is no device. Use {', '.join(ORDER)} or auto, "
            "with an index where there are several, as in cuda:1."
        )
    if backend == "cuda" and torch.version.hip:
        backend = "rocm"  # a ROCm build calls its devices cuda
    return _choose_named(backend, int(index or 0), source)


def _choose_named(backend: str, index: int, source: str) -> Choice:
    """Return a backend's device by index; raise `DeviceError`, with who asks for it (`source`), if there is none."""
    answer = ask(backend)
    if not answer.devices:
        raise DeviceError(
            f"{source} asks for {backend}, which cannot be had: {answer.why}. Set {VARIABLE}=auto to take the best."
        )
    if index >= answer.devices:
        raise DeviceError(
            f"{source} asks for {backend}:{index}, but {backend} has {answer.devices} device(s), "
            f"numbered from 0. Use {backend}:{answer.devices - 1} or lower."
        )
    return Choice(_device(backend, index), backend, f"{backend}: {source} asks for it")


def _choose_best() -> Choice:
    """Return the first device of the first backend in `ORDER` that can add one and one on it.

    The reason also says why the backends before it were passed over. Raises `DeviceError` if none can.
    """
    passed_over: list[str] = []
    for backend in ORDER:
        answer = ask(backend)
        trouble = _trial(_device(backend, 0)) if answer.devices else answer.why
        if not trouble:
            reason = f"{backend}: the best that works here" + "".join(passed_over)
            return Choice(_device(backend, 0), backend, reason)
        passed_over.append(f"; no {backend}: {trouble}")
    raise DeviceError("torch cannot add one and one even on the CPU: install it anew.")


def _trial(device: torch.device) -> str:
    """Add two numbers on a device; return in one line what went wrong, "" if nothing did."""
    try:
        two = float((torch.ones(2, device=device) + 1)[1])
    except Exception as error:  # noqa: BLE001 - whatever a backend raises rules it out
        return _line(error)
    return "" if two == 2.0 else f"one plus one gives {two}"  # noqa: PLR2004


def ask(backend: str) -> Answer:
    """Return how many devices a backend has; for none why, such as an exception or a warning of torch."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            answer = _ASK[backend]()
        except Exception as error:  # noqa: BLE001 - a broken library is an answer too
            return Answer(0, _line(error))
    if not answer.devices and caught:
        return Answer(0, _line(caught[0].message))  # such as a driver that is too old
    return answer


def _ask_cuda() -> Answer:
    if torch.version.hip or not torch.version.cuda:
        return Answer(0, f"torch {torch.__version__} is built without CUDA")
    return _counted(torch.cuda, "no NVIDIA GPU or driver is visible")


def _ask_rocm() -> Answer:
    if not torch.version.hip:
        return Answer(0, f"torch {torch.__version__} is built without ROCm")
    return _counted(torch.cuda, "no AMD GPU that ROCm can use is visible")


def _ask_xpu() -> Answer:
    if not hasattr(torch, "xpu"):
        return Answer(0, f"torch {torch.__version__} is built without XPU")
    return _counted(torch.xpu, "no Intel GPU or driver is visible, or torch is built without XPU")


def _counted(module: Any, why: str) -> Answer:  # noqa: ANN401 - a module of torch
    return Answer(module.device_count()) if module.is_available() else Answer(0, why)


def _ask_mps() -> Answer:
    mps = getattr(torch.backends, "mps", None)
    if mps is None or not mps.is_built():
        return Answer(0, f"torch {torch.__version__} is built without MPS")
    return Answer(1) if mps.is_available() else Answer(0, "MPS needs a GPU by Apple or AMD and macOS 12.3 or newer")


def _ask_directml() -> Answer:
    if importlib.util.find_spec("torch_directml") is None:
        return Answer(0, "torch-directml is not installed")
    directml = importlib.import_module("torch_directml")
    return Answer(directml.device_count(), "DirectML finds no GPU with DirectX 12")


_ASK: dict[str, Callable[[], Answer]] = {
    "cuda": _ask_cuda,
    "rocm": _ask_rocm,
    "xpu": _ask_xpu,
    "mps": _ask_mps,
    "directml": _ask_directml,
    "cpu": lambda: Answer(1),
}


def _device(backend: str, index: int) -> torch.device:
    """Return torch's device for a backend and an index, which CPU and MPS do not have; ROCm's is called cuda."""
    if backend == "directml":
        return importlib.import_module("torch_directml").device(index)
    if backend in {"cpu", "mps"}:
        return torch.device(backend)
    return torch.device("cuda" if backend == "rocm" else backend, index)


def _line(error: object) -> str:
    text = str(error).strip().splitlines()
    return text[0].rstrip(".")[:200] if text else type(error).__name__


def supports(device: torch.device, dtype: torch.dtype) -> bool:
    """Return whether a device can add in a type, by trying it: MPS and many Intel GPUs have no float64."""
    try:
        values = torch.ones(2, dtype=dtype).to(device)
        return bool((values + values).cpu()[0] == 2)  # noqa: PLR2004
    except (RuntimeError, TypeError, NotImplementedError):
        return False


def best_dtype(device: torch.device) -> torch.dtype:
    """Return the fastest type that is safe for inference: bfloat16 or float16 on a GPU, else float32."""
    if device.type == "cpu":
        return torch.float32
    if device.type == "cuda" and not _native_bfloat16(device):
        return torch.float16
    wide = device.type in {"cuda", "xpu"} and supports(device, torch.bfloat16)
    half = torch.bfloat16 if wide else torch.float16
    return half if supports(device, half) else torch.float32


def _native_bfloat16(device: torch.device) -> bool:
    """Return whether a GPU has bfloat16 in hardware; before Ampere, CUDA computes it slowly in software."""
    return bool(torch.version.hip) or torch.cuda.get_device_capability(device)[0] >= 8  # noqa: PLR2004


@contextlib.contextmanager
def autocast(device: torch.device, dtype: torch.dtype | None = None) -> Iterator[None]:
    """Open a block in mixed precision if the backend has it; for DirectML and float32 it changes nothing.

    `dtype` is `best_dtype(device)` unless given.
    """
    dtype = best_dtype(device) if dtype is None else dtype
    cast: Any = contextlib.nullcontext()
    if dtype != torch.float32 and device.type != "privateuseone":
        with warnings.catch_warnings(), contextlib.suppress(RuntimeError):
            warnings.simplefilter("ignore")  # torch warns of a type it cannot cast to and then casts nothing
            cast = torch.autocast(device.type, dtype=dtype)
    with cast:
        yield


def main() -> int:
    """Print versions, what each backend answers and the choice, for a bug report; return 2 if there is none, else 0."""
    print(f"Python {platform.python_version()}, torch {torch.__version__}, {platform.platform()}")  # noqa: T201
    for backend in ORDER:
        answer = ask(backend)
        print(f"{backend:8} {answer.devices} device(s) {answer.why}".rstrip())  # noqa: T201
    try:
        choice = choose_device()
    except DeviceError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 2
    print(f"chosen   {choice.device}, {best_dtype(choice.device)}; {choice.reason}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
