"""Checks of memory and speed of a full verification; `child.py` loads them as those of `checks.py`."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assistant.verify.child import Checks, Compute, Result, Target, Tensor

TOO_MUCH = 1 << 50  # bytes; no device has them
MEGABYTE = 1 << 20
# Chosen: far beyond what allocators keep in reserve, and fast on a CPU.
ROOM, BLOCK, BLOCKS = 256 * MEGABYTE, 16 * MEGABYTE, 64  # far more blocks than there is room for
ROUNDS, ROUND_BYTES = 40, 8 * MEGABYTE
KERNELS = 500
SLOW_KERNEL = 2e-4  # seconds; a program of many small operators is held up by launching them
SMALLEST, LARGEST, CPU_LARGEST = 256, 8192, 512  # sides of matrices
LONG_ENOUGH = 3e-3  # seconds of a multiplication that shows what a device can do


def check_out_of_memory(target: Target) -> Result:
    """Check that an out-of-memory error is raised, memory is released and the device stays usable."""
    refusal = refused(target, target.torch.empty, 1, TOO_MUCH)
    before, limit = target.held(), memory_limiter(target)
    if limit is not None:
        limit(ROOM)
        try:
            refusal = refused(target, target.torch.ones, BLOCKS, BLOCK)
        finally:
            limit(None)
    gc.collect()
    kept = target.held() - before
    if limit is not None and kept > ROOM // 4:
        return {"status": "wrong", **target.explain("kept", size=kept // MEGABYTE)}
    works = float(target.torch.ones(4, device=target.device).sum().item())
    return {**target.judge([[target.numpy.array(works)]], [target.numpy.array(4.0)]), "detail": refusal}


def refused(target: Target, make: Callable[..., Tensor], most: int, size: int) -> str:
    """Allocate blocks until one is refused; return the error's first line and keep nothing."""
    blocks: list[Tensor] = []
    try:
        while len(blocks) < most:
            blocks.append(make(size, dtype=target.torch.uint8, device=target.device))
    except (RuntimeError, MemoryError) as error:
        return str(error).splitlines()[0]
    raise target.refuse("granted", size=most * size)


def memory_limiter(target: Target) -> Callable[[int | None], None] | None:
    """Return a function that lets torch take so many bytes more (None: no limit); None where nothing limits it."""
    module = target.accelerator()
    if target.device.type == "cpu":
        return partial(limit_process, target) if sys.platform == "linux" else None
    if not (hasattr(module, "set_per_process_memory_fraction") and hasattr(module, "get_device_properties")):
        return None
    total = module.get_device_properties(target.device).total_memory
    place = module.current_device() if target.device.index is None else target.device.index

    def limit(room: int | None) -> None:
        module.empty_cache()
        part = 1.0 if room is None else min((target.held() + room) / total, 1.0)
        module.set_per_process_memory_fraction(part, place)

    return limit


def limit_process(target: Target, room: int | None) -> None:
    """Let this process's address space grow by so many bytes, or as far as it may for None."""
    resource = importlib.import_module("resource")
    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    limit = most if room is None else target.statm(0) + room
    resource.setrlimit(resource.RLIMIT_AS, (limit if most == resource.RLIM_INFINITY else min(limit, most), most))


def check_memory(target: Target) -> Result:
    """Check that the memory of results that nobody holds any more is released."""
    side = int((ROUND_BYTES / 4) ** 0.5)
    matrix = target.torch.ones(side, side, device=target.device)

    def rounds(count: int) -> int:
        for _ in range(count):
            target.wait([matrix @ matrix])
        gc.collect()
        return target.held()

    rounds(ROUNDS // 4)
    before = rounds(1)
    grown = rounds(ROUNDS) - before
    if grown > ROUNDS * ROUND_BYTES // 4:
        sizes = {"grown": grown // MEGABYTE, "rounds": ROUNDS, "size": ROUND_BYTES // MEGABYTE}
        return {"status": "wrong", **target.explain("leak", **sizes)}
    return {"status": "passed"}


def check_small_kernels(target: Target) -> Result:
    """Run many small operators one after another, each waiting for the last one's result."""
    values = target.torch.zeros(64, device=target.device)

    def compute() -> list[Tensor]:
        result = values
        for _ in range(KERNELS):
            result = result + 1.0
        return [result]

    right = target.measure(compute, [target.numpy.full(64, float(KERNELS))])
    each = target.pace(compute) / KERNELS
    if right["status"] == "passed" and each > SLOW_KERNEL:
        right.update(status="slow", **target.explain("slow kernels", each=1e6 * each))
    return right


def speed_matmul(target: Target) -> Result:
    """Multiply square matrices, as large as shows what the device can do."""
    side = SMALLEST

    def make(where: Target) -> Compute:
        own = side if where is target else min(side, CPU_LARGEST)
        values = where.torch.ones(own, own, device=where.device)
        return lambda: [values @ values]

    while side < LARGEST and target.pace(make(target), budget=0.0) < LONG_ENOUGH:
        side *= 2
    flops, cpu_flops = 2.0 * side**3, 2.0 * min(side, CPU_LARGEST) ** 3
    return target.speed(make, flops / 1e12, "TFLOP/s", cpu_flops / 1e12)


CHECKS: Checks = {
    "out_of_memory": (check_out_of_memory, ("device",)),
    "memory": (check_memory, ("matmul",)),
    "small_kernels": (check_small_kernels, ("copy",)),
    "speed.matmul.float32": (speed_matmul, ("matmul",)),
}
