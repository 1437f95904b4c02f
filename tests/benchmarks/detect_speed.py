"""Times detection: a cold start against torchruntime on the same machine, and a thousand replayed machines.

`python3 start.py bench detect_speed [ROUNDS]`; torchruntime is installed with the benchmarks.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

from assistant.detect import detect
from assistant.host.recording import ReplayHost
from assistant.machines import load, shipped

OURS = ("-m", "assistant", "detect", "--json")
PEER = ("-m", "torchruntime", "info")
REPLAYS = 1000
COLD_LIMIT, REPLAY_LIMIT_S = 1.2, 10.0


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


def replays() -> float:
    """Time a thousand detections of shipped machines."""
    names = shipped()
    hosts = [ReplayHost(load(names[index % len(names)])) for index in range(REPLAYS)]
    started = time.perf_counter()
    for host in hosts:
        detect(host)
    return time.perf_counter() - started


def main() -> None:
    """Print the medians; fail when a limit is missed."""
    ours, peer = cold(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
    print(f"cold: assistant detect --json {ours * 1000:.0f} ms, torchruntime info {peer * 1000:.0f} ms (median)")
    print(f"ratio to torchruntime: {ours / peer:.2f} (limit {COLD_LIMIT})")
    print(f"{REPLAYS} replayed machines: {(replayed := replays()):.2f} s (limit {REPLAY_LIMIT_S:.0f} s)")
    sys.exit(ours / peer > COLD_LIMIT or replayed > REPLAY_LIMIT_S)


if __name__ == "__main__":
    main()
