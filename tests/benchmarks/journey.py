"""Time the whole setup against plain pip and against bare uv, the same packages from the same sources: run this file.

`assistant setup --yes` detects, plans, makes the environment, verifies it and exports the files. pip only makes a
virtual environment and fills it, without a cache; uv does so with its cache warm, and the same checks are run on it.
Each round runs back to back; the ratio is what counts, not the seconds.
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

COLD_LIMIT, WARM_LIMIT = 0.4, 1.3
PEERS = ("numpy", "onnx", "onnxruntime")  # beside torch: what the plan brings too


def timed(command: list[str], **environment: str) -> float:
    """Run a command with some variables set; answer its wall time in seconds."""
    begun = time.perf_counter()
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, env={**usual, **environment}, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return time.perf_counter() - begun


def places(folder: Path, cache: Path) -> dict[str, str]:
    """Give the variables of a home in a folder."""
    names = ("XDG_STATE_HOME", "XDG_CACHE_HOME", "JUPYTER_DATA_DIR")
    return {**{name: str(folder / name) for name in names}, "UV_CACHE_DIR": str(cache)}


def setup(folder: Path, cache: Path) -> float:
    """Time a whole setup with uv's cache in `cache`."""
    shutil.rmtree(folder / "env", ignore_errors=True)
    command = [sys.executable, "-m", "assistant", "setup", "--yes", "--backend", "cpu"]
    return timed([*command, "--target", str(folder / "env")], **places(folder, cache))


def uv(folder: Path, cache: Path, torch: str) -> float:
    """Time `uv venv U; uv pip install torch numpy onnx onnxruntime ipykernel`, then the same checks on it."""
    shutil.rmtree(folder / "U", ignore_errors=True)
    here, program = places(folder, cache), [sys.executable, "-m", "uv"]
    python = str(folder / "U" / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    links = ["--find-links", os.environ["PIP_FIND_LINKS"]] if "PIP_FIND_LINKS" in os.environ else []
    made = timed([*program, "venv", "--no-project", "--python", sys.executable, str(folder / "U")])
    wanted = [f"torch=={torch}", *PEERS, "ipykernel"]
    made += timed([*program, "pip", "install", "--python", python, *links, *wanted], **here)
    checks = [sys.executable, "-m", "assistant", "verify", "--device", "cpu", "--target", str(folder / "U")]
    return made + timed(checks, **here)


def pip(folder: Path, torch: str) -> float:
    """Time `python -m venv X && X/bin/pip install torch numpy onnx onnxruntime` without a cache."""
    shutil.rmtree(folder / "X", ignore_errors=True)
    base = getattr(sys, "_base_executable", sys.executable)
    made = timed([base, "-m", "venv", str(folder / "X")])
    python = folder / "X" / ("Scripts" if os.name == "nt" else "bin") / "python"
    return made + timed([str(python), "-m", "pip", "install", "--no-cache-dir", f"torch=={torch}", *PEERS])


def torch_in(target: Path) -> str:
    """Name the torch that a setup took, so that pip and uv install the very same."""
    marker = json.loads((target / "assistant-environment.json").read_text("utf-8"))
    return str(marker["environment"]["packages"]["torch"])


def main() -> None:
    """Print a line per round and the medians; fail when a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    colds, warms = [], []
    for number in range(rounds):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            cold = setup(folder, folder / "cache")
            torch = torch_in(folder / "env")
            uv(folder, folder / "cache", torch)  # fills uv's cache with what it takes by itself
            warm, bare = setup(folder, folder / "cache"), uv(folder, folder / "cache", torch)
            baseline = pip(folder, torch)
        colds.append(cold / baseline)
        warms.append(warm / bare)
        print(
            f"round {number + 1}: pip {baseline:.1f} s, setup cold {cold:.1f} s; uv and checks {bare:.1f} s, ", end=""
        )
        print(f"setup warm {warm:.1f} s")
    cold, warm = statistics.median(colds), statistics.median(warms)
    print(f"torch {torch}, median of {rounds}: cold {cold:.2f} of pip (limit {COLD_LIMIT:.2f}), ", end="")
    print(f"warm {warm:.2f} of uv and the same checks (limit {WARM_LIMIT:.2f})")
    sys.exit(cold > COLD_LIMIT or warm > WARM_LIMIT)


if __name__ == "__main__":
    main()
