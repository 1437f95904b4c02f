"""Times detection: a cold start against torchruntime on the same machine.

`python3 start.py bench detect_speed [ROUNDS]`; torchruntime is installed with the benchmarks.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

OURS = ("-m", "assistant", "detect", "--json")
PEER = ("-m", "torchruntime", "info")
COLD_LIMIT = 1.2


def seconds(arguments: tuple[str, ...]) -> float:
    """Run Python once with the arguments and take the time; compiled files may be kept, as after an install."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=environment)
    return time.perf_counter() - started


def cold(rounds: int) -> tuple[float, float]:
    """Give the median of each, taken in turns so that other load hits both alike."""
    pairs = [(seconds(OURS), seconds(PEER)) for _round in range(rounds + 1)][1:]
    return statistics.median(ours for ours, _peer in pairs), statistics.median(peer for _ours, peer in pairs)


def main() -> None:
    """Print the medians; fail when the limit is missed."""
    ours, peer = cold(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
    print(f"cold: assistant detect --json {ours * 1000:.0f} ms, torchruntime info {peer * 1000:.0f} ms (median)")
    print(f"ratio to torchruntime: {ours / peer:.2f} (limit {COLD_LIMIT})")
    sys.exit(ours / peer > COLD_LIMIT)


if __name__ == "__main__":
    main()
