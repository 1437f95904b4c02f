"""Run one benchmark, or all that need no file of the user's: `python3 start.py bench [NAME [ARGUMENTS]]`."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).parent
NAMES = sorted(file.stem for file in FOLDER.glob("*.py") if file.stem != "__main__")
WITH_TORCH = ("verify_time",)  # its argument is the Python of an environment with torch
WITH_FILES = ("onnx_real", "plan_peers")  # models, and a folder that keeps some; judged machines


def main(arguments: list[str]) -> int:
    """Run what is asked for, one after the other; answer 1 where one failed, 2 where there is none of that name."""
    if arguments and arguments[0] not in NAMES:
        print(f"There is no benchmark {arguments[0]}. Choose one of: {', '.join(NAMES)}.", file=sys.stderr)
        return 2
    if arguments:
        return run(*arguments)
    failed = [name for name in NAMES if name not in WITH_FILES and run(name)]
    for name in failed:
        print(f"{name} missed a limit or failed; its output is above.")
    print(f"Not run, because they need a file or folder: {', '.join(WITH_FILES)}.")
    return int(bool(failed))


def run(name: str, *arguments: str) -> int:
    """Run one benchmark as a process of its own; answer its exit code."""
    print(f"== {name}", flush=True)
    with contextlib.ExitStack() as stack:
        if name in WITH_TORCH and not arguments:
            arguments = (stack.enter_context(python_with_torch()),)
        return subprocess.run([sys.executable, FOLDER / f"{name}.py", *arguments], check=False).returncode


@contextlib.contextmanager
def python_with_torch() -> Iterator[str]:
    """Let the assistant set up a CPU environment in a temporary folder; give its Python."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "assistant", "setup", "--yes", "--json", "--backend", "cpu"]
        done = subprocess.run([*command, "--target", f"{folder}/env"], stdout=subprocess.PIPE, check=True)
        yield json.loads(done.stdout)["environment"]["python"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
