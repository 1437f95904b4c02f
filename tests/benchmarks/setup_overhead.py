"""Time a whole warm setup against bare uv and the same checks, the same packages from the same sources: run this file.

`assistant setup --yes` detects, plans, resolves, asks every index for rivals, checks hashes, installs, verifies,
registers the kernel and exports the files. The other side is `uv venv`, `uv pip install` of what the plan asks for, and
the child process of the verification, called directly. Both run back to back with the caches full; the ratio counts.
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
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from journey import timed

from assistant.host.live import LiveHost
from assistant.install import Sources, find_uv, interpreter
from assistant.model.checks import CHECKS
from assistant.verify.run import CHILD

LIMIT = 1.5
WISHES = ("--backend", "cpu", "--pin", "torch==2.13.0")
KERNEL = "ipykernel"  # every environment of ours is a kernel


def setup(folder: Path) -> float:
    """Time a whole setup."""
    target = folder / "env"
    shutil.rmtree(target, ignore_errors=True)
    places = {name: str(folder / name) for name in ("XDG_STATE_HOME", "JUPYTER_DATA_DIR")}
    command = [sys.executable, "-P", "-m", "assistant", "setup", "--yes", *WISHES, "--target", str(target)]
    return timed(command, **places)


def bare(folder: Path, requirements: list[str]) -> float:
    """Time uv, told the same sources, and the checks of the quick verification in the environment it made."""
    target = folder / "bare"
    shutil.rmtree(target, ignore_errors=True)
    told = Sources(LiveHost()).environment
    base = getattr(sys, "_base_executable", sys.executable)
    python = str(interpreter(target))
    request = json.dumps({"device": "cpu", "checks": CHECKS["quick"], "ready": [], "memory": 4 << 30})
    made = timed([find_uv(), "venv", "--python", base, str(target)], **told)
    filled = timed([find_uv(), "pip", "install", "--python", python, *requirements], **told)
    return made + filled + timed([python, "-I", "-X", "utf8", str(CHILD), request])


def main() -> None:
    """Print a line per round and the median; fail when the limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    plan = [sys.executable, "-P", "-m", "assistant", "plan", *WISHES, "--json"]
    told = json.loads(subprocess.run(plan, capture_output=True, check=True).stdout)
    requirements = [*told["choice"]["requirements"], KERNEL]
    ratios = []
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_FOLDER")) as name:
        setup(Path(name))  # fills the caches
        for number in range(rounds):
            base, whole = bare(Path(name), requirements), setup(Path(name))
            ratios.append(whole / base)
            print(f"round {number + 1}: bare {base:.1f} s, setup {whole:.1f} s, {ratios[-1]:.2f} times", flush=True)
    ratio = statistics.median(ratios)
    print(f"median of {rounds}: {ratio:.2f} times (limit {LIMIT:.2f})")
    sys.exit(ratio > LIMIT)


if __name__ == "__main__":
    main()
