"""Time the whole setup against plain pip, the same packages from the same sources: run this file.

`assistant setup --yes` detects, plans, makes the environment, verifies it and exports the files; pip only makes a
virtual environment and fills it. Each pair runs back to back; the ratio is what counts, not the seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COLD_LIMIT, WARM_LIMIT = 1 / 2, 1 / 5
PEERS = ("numpy", "onnx", "onnxruntime")  # beside torch: what the plan brings too


def timed(command: list[str], **environment: str) -> float:
    """Run a command with some variables set; answer its wall time in seconds."""
    begun = time.perf_counter()
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, env={**usual, **environment}, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return time.perf_counter() - begun


def setup(folder: Path, cache: Path) -> float:
    """Time a whole setup with uv's cache in `cache`."""
    shutil.rmtree(folder / "env", ignore_errors=True)
    command = [sys.executable, "-m", "assistant", "setup", "--yes", "--target", str(folder / "env")]
    places = {name: str(folder / name) for name in ("XDG_STATE_HOME", "JUPYTER_DATA_DIR")}
    return timed(command, UV_CACHE_DIR=str(cache), **places)


def pip(folder: Path, torch: str) -> float:
    """Time `python -m venv X && X/bin/pip install torch numpy onnx onnxruntime` without a cache."""
    shutil.rmtree(folder / "X", ignore_errors=True)
    base = getattr(sys, "_base_executable", sys.executable)
    made = timed([base, "-m", "venv", str(folder / "X")])
    python = folder / "X" / ("Scripts" if os.name == "nt" else "bin") / "python"
    return made + timed([str(python), "-m", "pip", "install", "--no-cache-dir", f"torch=={torch}", *PEERS])


def planned_torch() -> str:
    """Name the torch that the plan takes, so that pip installs the very same."""
    told = subprocess.run([sys.executable, "-m", "assistant", "plan", "--json"], capture_output=True, check=True)
    requirements = json.loads(told.stdout)["choice"]["requirements"]
    return next(line.removeprefix("torch==") for line in requirements if line.startswith("torch=="))


def main() -> None:
    """Print a line per round and the medians; fail when a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    torch = planned_torch()
    colds, warms = [], []
    for number in range(rounds):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            cold = setup(folder, folder / "cache")
            warm = setup(folder, folder / "cache")
            baseline = pip(folder, torch)
        colds.append(cold / baseline)
        warms.append(warm / baseline)
        print(f"round {number + 1}: pip {baseline:.1f} s, setup cold {cold:.1f} s, setup warm {warm:.1f} s")
    cold, warm = statistics.median(colds), statistics.median(warms)
    print(f"torch {torch}, median of {rounds}: cold {cold:.2f} of pip (limit {COLD_LIMIT:.2f}), ", end="")
    print(f"warm {warm:.2f} of pip (limit {WARM_LIMIT:.2f})")
    sys.exit(cold > COLD_LIMIT or warm > WARM_LIMIT)


if __name__ == "__main__":
    main()
