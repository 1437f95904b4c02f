"""NVIDIA's management library (NVML), asked once; absence of the driver or the library is an ordinary answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pynvml

from assistant.model.machine import Answer


def look() -> Answer:
    """Return driver version, CUDA driver API and every device as a JSON object; "missing" when no driver is loaded."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return Answer(status="missing" if error.value in _ABSENT else "failed", text=str(error))
    try:
        devices = [_device(index) for index in range(pynvml.nvmlDeviceGetCount())]
        api = pynvml.nvmlSystemGetCudaDriverVersion_v2()  # 13010 is 13.1
        driver = {
            "driver": _text(pynvml.nvmlSystemGetDriverVersion()),
            "cuda": f"{api // 1000}.{api % 1000 // 10}",
        }
        return Answer(text=msgspec.json.encode({**driver, "devices": devices}).decode())
    except pynvml.NVMLError as error:
        return Answer(status="failed", text=str(error))
    finally:
        pynvml.nvmlShutdown()


_ABSENT = (
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND,
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
)


def _device(index: int) -> dict[str, object]:
    """Describe one device; what it does not support (memory of a GPU that shares the host's) is None."""
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    pci = _value(pynvml.nvmlDeviceGetPciInfo, handle)
    memory = _value(pynvml.nvmlDeviceGetMemoryInfo, handle)
    capability = _value(pynvml.nvmlDeviceGetCudaComputeCapability, handle)
    name = _value(pynvml.nvmlDeviceGetName, handle)
    return {
        "name": _text(name) if name else None,
        "bus": _text(pci.busId) if pci else None,
        "pci_id": f"{pci.pciDeviceId & 0xFFFF:04x}:{pci.pciDeviceId >> 16:04x}" if pci else None,
        "memory": int(memory.total) if memory else None,
        "compute_capability": f"{capability[0]}.{capability[1]}" if capability else None,
    }


def _value(question: Callable[[Any], Any], handle: object) -> Any:  # noqa: ANN401 - as many types as questions
    try:
        return question(handle)
    except pynvml.NVMLError:
        return None


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
