"""Times one line without anything installed, `uvx torch-setup-assistant plan`, beside a peer and beside uvx itself.

`python3 start.py bench one_line [ROUNDS]`. Each round takes every line in turn, first with an empty cache of uv's, then
twice with what the first time left there. This project's wheel and a package that does nothing come from a folder, all
others from the index that uv is configured with; Python is there already. The peer looks at this
machine and is not asked for one that was recorded, which it cannot plan for.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))
from loopback import make_wheel

from assistant.host.uv import find_uv

ROOT = Path(__file__).parents[2]
LINES = {
    "torch-setup-assistant plan": ("torch-setup-assistant", "plan", "--replay", "linux-ubuntu2404-rtx4090"),
    "torch-setup-assistant detect": ("torch-setup-assistant", "detect"),
    "torchruntime info": ("torchruntime", "info"),
    "a package that does nothing": ("nothing",),
}
OURS, PEER, NOTHING = "torch-setup-assistant plan", "torchruntime info", "a package that does nothing"
COLD_LIMIT_S, WARM_LIMIT_S, SIZE_LIMIT_MB = 5.0, 1.5, 40.0


class Times(NamedTuple):
    """Seconds of the first run with an empty cache, of the runs after it, and the MB that the first one left."""

    cold: float
    warm: float
    size: float


def fill(folder: Path) -> None:
    """Put the wheel of this checkout into a folder, and one with a script that ends at once."""
    subprocess.run([find_uv(), "build", "--wheel", "--quiet", "--out-dir", folder, ROOT], check=True)
    with zipfile.ZipFile(make_wheel(folder, "nothing", "1.0", "py3-none-any"), "a") as wheel:
        wheel.writestr("nothing-1.0.dist-info/entry_points.txt", "[console_scripts]\nnothing = builtins:int\n")


def seconds(cache: Path, folder: Path, words: tuple[str, ...]) -> float:
    """Run a line with this cache and answer how long it took."""
    own = {
        "UV_CACHE_DIR": str(cache),
        "UV_PYTHON": sys.executable,
        "UV_FIND_LINKS": str(folder),
        "XDG_STATE_HOME": str(cache),
    }
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begun = time.perf_counter()
    subprocess.run([find_uv(), "tool", "run", *words], env={**kept, **own}, capture_output=True, check=True)
    return time.perf_counter() - begun


def measured(folder: Path, words: tuple[str, ...]) -> Times:
    """Time a line with an empty cache, and with what it left."""
    with tempfile.TemporaryDirectory() as name:
        cache = Path(name)
        cold = seconds(cache, folder, words)
        held = {stat.st_ino: stat.st_blocks for stat in map(Path.lstat, cache.rglob("*"))}  # uv links files: once each
        return Times(cold, min(seconds(cache, folder, words) for _run in range(2)), sum(held.values()) * 512 / 1e6)


def main() -> None:
    """Print a table with ratios; fail when a limit is missed."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as name:
        fill(Path(name))
        found = [{line: measured(Path(name), words) for line, words in LINES.items()} for _round in range(rounds)]
    print("| `uvx …` | cold | warm | on disk |\n|---|---:|---:|---:|")
    median = {}
    for line in LINES:
        times = [one[line] for one in found]
        median[line] = Times(*(statistics.median(column) for column in zip(*times, strict=True)))
        cold = f"{min(one.cold for one in times):.1f} to {max(one.cold for one in times):.1f}"
        print(
            f"| {line} | {median[line].cold:.1f} s ({cold}) | {median[line].warm:.2f} s | {median[line].size:.1f} MB |"
        )
    ours = median[OURS]
    for other in (PEER, NOTHING):
        cold, warm = (ours[column] / median[other][column] for column in (0, 1))
        print(f"beside {other}: {cold:.1f} times cold, {warm:.1f} times warm")
    print(f"limits: {COLD_LIMIT_S} s cold, {WARM_LIMIT_S} s warm, {SIZE_LIMIT_MB} MB; medians of {rounds} rounds")
    sys.exit(ours.cold > COLD_LIMIT_S or ours.warm > WARM_LIMIT_S or ours.size > SIZE_LIMIT_MB)


if __name__ == "__main__":
    main()
