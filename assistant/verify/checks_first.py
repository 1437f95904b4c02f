"""The checks that come first, for torch and its device; `child.py` loads them like those of `checks.py`."""

from __future__ import annotations

import importlib
import platform
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assistant.verify.child import Checks, Result, Target

MEGABYTE = 1 << 20


def check_import(target: Target) -> Result:
    """Import torch; a missing library or another ABI shows in the exception's chain."""
    started = time.perf_counter()
    target.torch = torch = importlib.import_module("torch")
    seconds = time.perf_counter() - started
    getattr(torch, "set_warn_always", bool)(True)  # else torch tells of the first operator only that ran on the CPU
    facts = {"torch": torch.__version__, "cuda": torch.version.cuda, "hip": getattr(torch.version, "hip", None)}
    target.tell_facts(**facts, threads=torch.get_num_threads())
    return {"status": "passed", "seconds": seconds, "first_seconds": seconds}


def check_device(target: Target) -> Result:
    """Allocate on the device and see that the memory was taken there."""
    started = time.perf_counter()
    target.device = find_device(target)
    for settings in (target.torch.backends.cuda.matmul, target.torch.backends.cudnn):
        if hasattr(settings, "allow_tf32"):
            settings.allow_tf32 = False  # its 10 bits would look like a wrong device
    before = target.allocated()
    tensor = target.torch.ones(MEGABYTE // 4, device=target.device)
    target.wait([tensor])
    seconds = time.perf_counter() - started
    target.require(tensor)
    after = target.allocated()
    if before is not None and after is not None and after - before < MEGABYTE:
        raise target.refuse("no memory taken", size=MEGABYTE, taken=after - before, device=target.asked)
    target.tell_facts(**device_facts(target))
    return {"status": "passed", "seconds": seconds, "first_seconds": seconds}


def find_device(target: Target) -> Any:  # noqa: ANN401 - a torch.device of the target
    """Return torch's device for the name asked for; raise as torch does where there is none."""
    torch = target.torch
    if target.kind == "directml":
        directml = importlib.import_module("torch_directml")
        return directml.device(int(target.index)) if target.index else directml.device()
    if target.kind == "rocm":
        if not getattr(torch.version, "hip", None):
            raise target.refuse("no rocm", torch=torch.__version__)
        return torch.device("cuda" + (":" + target.index if target.index else ""))
    return torch.device(target.asked)


def device_facts(target: Target) -> dict[str, object]:
    """Return the device's name, memory and architecture, as far as torch knows them."""
    facts: dict[str, object] = {"device": target.device}
    if target.kind == "directml":
        directml = importlib.import_module("torch_directml")
        facts["device name"] = directml.device_name(int(target.index or directml.default_device()))
    elif target.device.type == "cpu":
        capability = getattr(getattr(target.torch.backends, "cpu", None), "get_cpu_capability", str)
        facts.update({"device name": platform.processor() or platform.machine(), "cpu capability": capability()})
    elif target.device.type == "mps":
        facts["device name"] = getattr(target.torch.backends.mps, "get_name", str)()
    elif hasattr(target.accelerator(), "get_device_properties"):
        seen = target.accelerator().get_device_properties(target.device)
        facts.update({"device name": seen.name, "device memory": f"{seen.total_memory / 2**30:.1f} GiB"})
        facts["compute capability"] = f"{seen.major}.{seen.minor}" if hasattr(seen, "major") else None
        facts["architecture"] = getattr(seen, "gcnArchName", None)
    return facts


CHECKS: Checks = {
    "import": (check_import, ()),
    "device": (check_device, ("import",)),
}
