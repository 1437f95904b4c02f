"""NVIDIA's management library, asked once; absent driver or library is an ordinary answer."""

from __future__ import annotations

import msgspec
import pynvml

from assistant.host.base import Answer

__all__ = ["look"]


def look() -> Answer:
    """Answer driver version, CUDA driver API and every device as a JSON object; "missing" when no driver is loaded."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return Answer(status="missing" if error.value in _ABSENT else "failed", text=str(error))
    try:
        devices = [_device(index) for index in range(pynvml.nvmlDeviceGetCount())]
        return Answer(text=msgspec.json.encode({**_driver(), "devices": devices}).decode())
    except pynvml.NVMLError as error:
        return Answer(status="failed", text=str(error))
    finally:
        pynvml.nvmlShutdown()


_ABSENT = (
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND,
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
)


def _driver() -> dict[str, object]:
    api = pynvml.nvmlSystemGetCudaDriverVersion_v2()
    return {"driver": _text(pynvml.nvmlSystemGetDriverVersion()), "cuda": f"{api // 1000}.{api % 1000 // 10}"}


def _device(index: int) -> dict[str, object]:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    pci = pynvml.nvmlDeviceGetPciInfo(handle)
    major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
    return {
        "name": _text(pynvml.nvmlDeviceGetName(handle)),
        "bus": _text(pci.busId),
        "pci_id": f"{pci.pciDeviceId & 0xFFFF:04x}:{pci.pciDeviceId >> 16:04x}",
        "memory": int(pynvml.nvmlDeviceGetMemoryInfo(handle).total),
        "compute_capability": f"{major}.{minor}",
    }


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
