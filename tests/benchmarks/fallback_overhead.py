"""Time what the CPU fallback costs operators that the device has: `python fallback_overhead.py PYTHON-WITH-TORCH`.

The rounds alternate between with and without; the quickest of each counts, for a busy machine only adds.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BLOCK_LIMIT_US, KERNELS_LIMIT, IMPORT_LIMIT_MS = 6.0, 1.05, 5.0
MEASURE = """
import json, sys, time
begun = time.perf_counter()
import torch
torch_done = time.perf_counter()
sys.path.insert(0, sys.argv[1])
import device
import fallback
imported = time.perf_counter() - torch_done
torch.set_num_threads(1)
left, right = torch.rand(8, 8), torch.rand(8, 8)

def spin(count=3000):
    begun = time.perf_counter()
    for _ in range(count):
        torch.add(left, right)
    return 1e6 * (time.perf_counter() - begun) / count

def inside():
    with fallback.cpu_fallback("mps"):
        return spin()

def with_kernels():
    installed = fallback.install("mps", ["aten::_linalg_solve_ex.result", "aten::lgamma.out"])
    try:
        return spin()
    finally:
        installed.remove()

spin(), inside(), with_kernels()
rounds = [(spin(), inside(), with_kernels()) for _ in range(15)]
plain, block, kernels = (min(column) for column in zip(*rounds))
figures = {"plain": plain, "block": block - plain, "kernels": kernels / plain, "import": 1e3 * imported}
print(json.dumps(figures))
"""


def main() -> None:
    """Print the figures; fail when a limit is missed."""
    runtime = Path(__file__).parents[2] / "assistant" / "runtime"
    command = [sys.argv[1], "-c", MEASURE, str(runtime)]
    subprocess.run([sys.argv[1], "-m", "compileall", "-q", str(runtime)], check=True)  # as any second import finds it
    runs = [
        json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])
        for _ in range(3)
    ]
    plain, block, kernels, imported = (
        sorted(run[name] for run in runs)[1] for name in ("plain", "block", "kernels", "import")
    )
    print(f"a small operator takes {plain:.2f} µs; inside the block {block:.2f} µs more (limit {BLOCK_LIMIT_US} µs)")
    print(f"with installed kernels {kernels:.3f} times as long (limit {KERNELS_LIMIT})")
    print(f"importing both files after torch takes {imported:.2f} ms (limit {IMPORT_LIMIT_MS} ms)")
    sys.exit(block > BLOCK_LIMIT_US or kernels > KERNELS_LIMIT or imported > IMPORT_LIMIT_MS)


if __name__ == "__main__":
    main()
