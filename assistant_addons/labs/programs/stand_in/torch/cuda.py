"""The part of torch.cuda that looks for a driver and a card, with torch's own words where one does not fit.

The machine is a recorded one: machine.json in the current folder holds what NVIDIA's library (NVML) answered there.
"""

import json
import warnings
from pathlib import Path

from .build import CODE, LEAST_DRIVER, PTX
from .version import cuda as _built

RECORDING = Path("machine.json")
_NONE = (
    "Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver from "
    "http://www.nvidia.com/Download/index.aspx"
)
_OLD = (
    "The NVIDIA driver on your system is too old (found version {found}). Please update your GPU driver by downloading "
    "and installing a new version from the URL: http://www.nvidia.com/Download/index.aspx Alternatively, go to: "
    "https://pytorch.org to install a PyTorch version that has been compiled with your version of the CUDA driver."
)
_UNFIT = (
    "{name} with CUDA capability sm_{own} is not compatible with the current PyTorch installation.\n"
    "The current PyTorch install supports CUDA capabilities {code}."
)


def _numbers(version):
    return [int(part) for part in version.split(".")]


def _machine():
    """Return what NVML answered on the machine; {} where there is no driver."""
    said = json.loads(RECORDING.read_text("utf-8"))["said"] if RECORDING.exists() else []
    answers = [entry["answer"] for entry in said if entry["ask"] == ["nvml"]]
    return json.loads(answers[0]["text"]) if answers and "status" not in answers[0] else {}


def _capability(device):
    major, minor = _numbers(device["compute_capability"])
    return 10 * major + minor


def _runs(own):
    """Return whether the build has code for a card; see "Binary Compatibility" in NVIDIA's CUDA C++ guide."""
    return any(code // 10 == own // 10 and code <= own for code in CODE) or (PTX is not None and own > PTX)


def _init():
    """Return the cards; raise what torch raises where the build, the driver or the card does not allow any."""
    if _built is None:
        raise AssertionError("Torch not compiled with CUDA enabled")
    machine = _machine()
    if not machine.get("devices"):
        raise RuntimeError(_NONE)
    if _numbers(machine["driver"]) < _numbers(LEAST_DRIVER):
        major, minor = _numbers(machine["cuda"])
        raise RuntimeError(_OLD.format(found=1000 * major + 10 * minor))
    return machine["devices"]


def launch():
    """Start a kernel on the first card."""
    device = _init()[0]
    if not _runs(_capability(device)):
        listed = " ".join(get_arch_list())
        warnings.warn(_UNFIT.format(name=device["name"], own=_capability(device), code=listed), stacklevel=3)
        raise RuntimeError("CUDA error: no kernel image is available for execution on the device")


def is_available():
    """Return whether the build finds a driver and a card."""
    try:
        return bool(_init())
    except (AssertionError, RuntimeError):
        return False


def device_count():
    """Return the number of cards that the build finds."""
    return len(_init()) if is_available() else 0


def get_device_name(index=0):
    """Return the name of a card."""
    return _init()[index]["name"]


def get_device_capability(index=0):
    """Return the compute capability of a card, such as (8, 9)."""
    return tuple(_numbers(_init()[index]["compute_capability"]))


def get_arch_list():
    """Return the cards that the build has code for, such as "sm_90"."""
    return [f"sm_{code}" for code in CODE] + [f"compute_{PTX}"] * (PTX is not None)
