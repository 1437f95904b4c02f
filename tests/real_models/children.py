"""Runs one piece of work in a process of its own, with limits of time and memory; its answer is JSON lines."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
MEMORY = 10 << 30  # bytes of address space that a child may have


class Done(NamedTuple):
    """What a child answered, line by line, and why it ended early: "" where it did not."""

    answers: list[dict[str, Any]]
    error: str

    @property
    def answer(self) -> dict[str, Any]:
        """All lines in one."""
        return {name: value for line in self.answers for name, value in line.items()}


def child(python: str | Path, script: str, *arguments: str | Path, seconds: float) -> Done:
    """Run a script of this folder under a Python; a crash, a time-out and a lack of memory are answers, too."""
    process = subprocess.Popen(
        [python, HERE / script, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={
            **os.environ,
            "PYTHONPATH": str(HERE.parents[1]),
            "HF_HUB_OFFLINE": "1",
            "TOKENIZERS_PARALLELISM": "false",
        },
    )
    try:
        out, err = process.communicate(timeout=seconds)
        late = ""
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        late = f"stopped after {seconds:g} s"
    answers = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    last = next((line.strip() for line in reversed(err.splitlines()) if line.strip()), "")
    failed = f"code {process.returncode}: {last}"[:300] if process.returncode else ""
    return Done(answers, late or failed)


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
