"""Time `import assistant` over a bare Python, and reading the catalogue, each in a cold process."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

RUNS = 15
IMPORT_LIMIT_MS, CATALOG_LIMIT_MS = 50, 60
CATALOG = """
import time, assistant.catalog.catalog
begun = time.perf_counter()
assistant.catalog.catalog.load_catalog()
print(time.perf_counter() - begun)
"""


def wall(code: str) -> float:
    """Run code in a new Python; answer the wall time in seconds."""
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    return time.perf_counter() - begun


def catalog() -> float:
    """Load the catalogue in a new Python; answer the seconds that it took there."""
    return float(subprocess.run([sys.executable, "-c", CATALOG], capture_output=True, check=True).stdout)


def main() -> None:
    """Print both medians; fail when a limit is missed."""
    pairs = [(wall(""), wall("import assistant")) for _run in range(RUNS + 1)][1:]
    imported = 1000 * statistics.median(ours - bare for bare, ours in pairs)
    loaded = 1000 * statistics.median(catalog() for _run in range(RUNS))
    print(f"import assistant: {imported:.1f} ms over a bare Python (limit {IMPORT_LIMIT_MS} ms)")
    print(f"load_catalog(): {loaded:.0f} ms (limit {CATALOG_LIMIT_MS} ms)")
    sys.exit(imported > IMPORT_LIMIT_MS or loaded > CATALOG_LIMIT_MS)


if __name__ == "__main__":
    main()
