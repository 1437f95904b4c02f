"""Time `import assistant`, and `assistant detect --json` against `torchruntime info`, each as a cold process."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

IMPORT_LIMIT_MS, DETECT_LIMIT = 50, 2.0


def median(command: list[str], runs: int) -> float:
    """Run a command several times after a warm-up; answer the median wall time in seconds."""
    times = []
    for number in range(runs + 1):
        begun = time.perf_counter()
        subprocess.run(command, capture_output=True, check=True)
        times += [time.perf_counter() - begun] if number else []
    return statistics.median(times)


def main() -> None:
    """Print both figures; fail when a limit is missed."""
    python = sys.executable
    bare = median([python, "-c", ""], 15)
    imported = 1000 * (median([python, "-c", "import assistant"], 15) - bare)
    detect = median([python, "-m", "assistant", "detect", "--json"], 10)
    peer = median([python, "-m", "torchruntime", "info"], 10)
    print(f"import assistant: {imported:.1f} ms over a bare Python (limit {IMPORT_LIMIT_MS} ms)")
    print(
        f"detect --json {detect:.3f} s, torchruntime info {peer:.3f} s: {detect / peer:.2f} (limit {DETECT_LIMIT:.1f})"
    )
    sys.exit(imported > IMPORT_LIMIT_MS or detect / peer > DETECT_LIMIT)


if __name__ == "__main__":
    main()
