"""Runs one piece of work in a process of its own, with limits of time and memory; its answer is JSON lines."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
MEMORY = 10 << 30  # bytes of address space that a child may have


def child(script: str, *arguments: str | Path, seconds: float) -> tuple[dict[str, Any], str]:
    """Run a script of this folder; return its answer, all lines in one, and why it ended early: "" where it did not."""
    process = subprocess.Popen(
        [sys.executable, HERE / script, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(HERE.parents[3])},
    )
    try:
        out, err = process.communicate(timeout=seconds)
        late = ""
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        late = f"stopped after {seconds:g} s"
    answer: dict[str, Any] = {}
    for line in out.splitlines():
        answer |= json.loads(line) if line.startswith("{") else {}
    last = next((line.strip() for line in reversed(err.splitlines()) if line.strip()), "")
    failed = f"code {process.returncode}: {last}"[:300] if process.returncode else ""
    return answer, late or failed


def limit_memory() -> None:
    """Limit what this process may take; called in a child before its work."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def tell(**answer: object) -> None:
    """Print a line of the answer at once, so that it stays when the next step crashes."""
    print(json.dumps(answer), flush=True)


def peak_mb() -> float:
    """Return the most memory that this process has held at once."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    raise OSError("VmHWM")
