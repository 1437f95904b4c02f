"""The real command with real torch, in a home of its own: started, interrupted, looked at afterwards."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

TORCH = "torch==2.13.0"
INSTALL = ("install", "--yes", "--backend", "cpu", "--pin", TORCH)
OLDER, NEWER = ("--pin", "numpy<2.3"), ("--pin", "numpy>=2.3")


class Home:
    """A user's home below a folder, and the command run in it; uv's cache may be shared, as downloads take long."""

    def __init__(self, folder: Path, uv_cache: Path) -> None:
        self.folder = folder
        names = {"HOME": ".", "XDG_STATE_HOME": "state", "XDG_DATA_HOME": "data", "XDG_CACHE_HOME": "cache"}
        places = {name: str(folder / place) for name, place in {**names, "JUPYTER_DATA_DIR": "jupyter"}.items()}
        self.environment = {**os.environ, **places, "UV_CACHE_DIR": str(uv_cache), "LANGUAGE": "en"}

    def start(self, *words: str | Path, python: str | Path = sys.executable) -> subprocess.Popen[str]:
        """Start the command as a terminal does: in a group of its own that hears of Ctrl-C."""
        return subprocess.Popen(
            [python, "-m", "assistant", *map(str, words)],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
            preexec_fn=_hears,  # noqa: PLW1509 - a test started in the background would hand on deafness
        )

    def run(self, *words: str | Path, python: str | Path = sys.executable) -> subprocess.CompletedProcess[str]:
        """Run the command to its end."""
        with self.start(*words, python=python) as child:
            out, complaint = child.communicate()
        return subprocess.CompletedProcess(child.args, child.returncode, out, complaint)

    def make(self, target: Path) -> Path:
        """Make an environment by hand, with a NumPy of another version in it; answer its Python."""
        uv, python = [sys.executable, "-m", "uv"], target / "bin" / "python"
        for words in (
            ["venv", "-q", "--no-project", "--python", sys.executable, target],
            ["pip", "install", "-q", "--python", python, "numpy<2.3"],
        ):
            subprocess.run([*uv, *words], env=self.environment, check=True)
        return python

    def left_over(self) -> list[str]:
        """List what an installation must not leave anywhere in the home; what undoing it takes is kept."""
        notes = [path for path in self.folder.glob("state/*/installs/*") if path.suffix != ".undo"]
        return sorted(map(str, [*self.folder.rglob(".*.new"), *self.folder.rglob(".*.part"), *notes]))

    def last_words(self) -> str:
        """Give the end of the newest log."""
        logs = sorted((self.folder / "state").glob("*/logs/*.log"))
        return logs[-1].read_text(encoding="utf-8")[-2000:] if logs else ""

    def kernels(self) -> list[str]:
        """Name the kernels that are registered."""
        return sorted(path.name for path in (self.folder / "jupyter" / "kernels").glob("*"))


def _hears() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def outline(folder: Path) -> dict[str, tuple[int, int]]:
    """Describe every file below a folder by number and size; compiled modules come and go."""
    seen = {}
    for root, _folders, files in os.walk(folder):
        for name in files:
            if not name.endswith(".pyc"):
                told = (Path(root) / name).lstat()
                seen[os.path.relpath(os.path.join(root, name), folder)] = (told.st_ino, told.st_size)  # noqa: PTH118
    return seen


def versions(target: Path) -> list[str]:
    """List the distributions in an environment, by the names of their folders."""
    return sorted(path.name for path in target.glob("lib/python*/site-packages/*.dist-info"))


def incomplete(target: Path) -> list[str]:
    """List what an environment lacks that its distributions say they brought, by name and size; torch must compute."""
    found = " ".join(versions(target))
    wrong = lacking(target) + [name for name in ("torch", "numpy", "ipykernel") if f"{name}-" not in found]
    if not wrong:
        code = "import torch; assert (torch.ones(3) @ torch.ones(3)).item() == 3"
        done = subprocess.run(
            [target / "bin" / "python", "-B", "-c", code], capture_output=True, text=True, check=False
        )
        wrong += [done.stderr] if done.returncode else []
    return wrong


def lacking(target: Path) -> list[str]:
    """List the rows of an environment's RECORD files whose files are not there or have another size."""
    wrong = []
    places = ("lib/python*/site-packages", "Lib/site-packages")
    for record in (record for place in places for record in target.glob(f"{place}/*.dist-info/RECORD")):
        for row in record.read_text(encoding="utf-8").splitlines():
            told = re.fullmatch(r'"?(?P<name>[^"]+?)"?,(?:sha256=[\w=-]+)?,(?P<size>\d*)', row)
            file = record.parents[1] / told["name"] if told else record
            if not file.exists() or (told and told["size"] and file.stat().st_size != int(told["size"])):
                wrong.append(row)
    return wrong
