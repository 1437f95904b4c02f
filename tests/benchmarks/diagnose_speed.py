"""Time and memory for logs of 100 MB of several kinds, the failing line in the middle: `python diagnose_speed.py`."""

from __future__ import annotations

import base64
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

SIZE = 100 * 10**6
WORDS = [
    "loading",
    "model",
    "step",
    "checkpoint",
    "saved",
    "worker",
    "request",
    "batch",
    "loss",
    "epoch",
    "weights",
    "tensor",
    "cache",
    "hit",
]
LETTERS = (b"abcdefghijklmnopqrstuvwxyz " * 10)[:256]
LINE = 'OSError: [WinError 126] Error loading "C:\\v\\torch\\lib\\fbgemm.dll" or one of its dependencies.\n'

KINDS: dict[str, Callable[[int], str]] = {
    "training": lambda n: f"2026-11-21 12:{n % 60:02}:00 INFO worker-{n % 16} batch {n} loss={n / 7:.4f} lr=1e-4\n",
    "words": lambda n: " ".join(random.choices(WORDS, k=14)) + f" {n}\n",  # noqa: S311 - words, not secrets
    "letters": lambda _: random.randbytes(120).translate(LETTERS).decode() + "\n",  # noqa: S311 - likewise
    "base64": lambda _: base64.b64encode(random.randbytes(57)).decode() + "\n",  # noqa: S311 - likewise
    "errors": lambda n: f"ERROR worker-{n % 16} request {n:x} failed: not found, could not open file {n}\n",
}


def main() -> None:
    """Print one line for each kind of log."""
    for name, line in KINDS.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "big.log")
            write(path, line)
            print(
                name,
                subprocess.run([sys.executable, __file__, path], text=True, capture_output=True, check=True).stdout,
            )


def write(path: Path, line: Callable[[int], str]) -> None:
    """Fill a file to its size with lines of one kind."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(SIZE):
            file.write(line(number))
            if number == SIZE // 300:
                file.write(LINE)
            if number % 1000 == 0 and file.tell() > SIZE - 100_000:
                return


def measure(path: Path) -> None:
    """Diagnose one file in this process; print the cause, seconds and the most memory in MB."""
    from assistant.cli.terminal import read_file  # noqa: PLC0415 - a child of its own measures it
    from assistant.diagnose import diagnose  # noqa: PLC0415

    started = time.perf_counter()
    found = diagnose(read_file(str(path)))
    seconds = time.perf_counter() - started
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(found[0].key if found else "nothing", f"{seconds:.2f} s", f"{memory:.0f} MB", end="")


if __name__ == "__main__":
    measure(Path(sys.argv[1])) if sys.argv[1:] else main()
