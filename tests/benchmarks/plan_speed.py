"""How many machines are planned per second, in one process and offline: `python tests/benchmarks/plan_speed.py`."""

from __future__ import annotations

import itertools
import random
import time

from assistant.catalog import load_catalog
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.plan import make_plans

CARDS = [
    *(Gpu(vendor=Vendor.NVIDIA, name=name) for name in ("GeForce GTX 1080", "GeForce RTX 3060", "GeForce RTX 5090")),
    *(Gpu(vendor=Vendor.NVIDIA, compute_capability=code) for code in ("3.5", "5.2", "7.0", "7.5", "8.9", "9.0")),
    *(Gpu(vendor=Vendor.AMD, gfx=gfx) for gfx in ("gfx906", "gfx1030", "gfx1031", "gfx1100", "gfx1151", "gfx1201")),
    *(Gpu(vendor=Vendor.INTEL, pci_id=pci) for pci in ("8086:56a0", "8086:9a49", "8086:e20b")),
]


def machines(count: int, seed: int = 0) -> list[Machine]:
    """Draw machines that differ in system, Python, driver and cards; no two need be alike."""
    draw = random.Random(seed)  # noqa: S311 - a benchmark's numbers, no secret
    systems = [("linux", "x86_64"), ("windows", "x86_64"), ("linux", "aarch64"), ("macos", "arm64")]
    return [
        Machine(
            os=(system := draw.choice(systems))[0],
            arch=system[1],
            python=draw.choice(["3.9", "3.10", "3.11", "3.12", "3.13", "3.14", "3.15"]),
            nvidia_driver=f"{draw.randint(450, 620)}.{draw.randint(0, 99):02d}",
            gpus=tuple(draw.sample(CARDS, draw.randint(0, 3))),
        )
        for _place in range(count)
    ]


def main() -> None:
    """Print machines per second: best of three over 1,000 machines."""
    start = time.perf_counter()
    catalog = load_catalog()
    loaded = time.perf_counter() - start
    fleet = machines(1000)
    for machine in itertools.islice(fleet, 50):
        make_plans(machine, catalog)
    best = min(_seconds(fleet, catalog) for _round in range(3))
    print(f"catalogue loaded in {loaded * 1000:.1f} ms; {len(fleet) / best:,.0f} machines planned per second")


def _seconds(fleet: list[Machine], catalog: object) -> float:
    start = time.perf_counter()
    for machine in fleet:
        make_plans(machine, catalog)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
