"""Installations ended from outside at random moments, as Windows' Task Manager ends a program, then `recover`."""

from __future__ import annotations

import json
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from install.real import lacking, outline
from windows.conftest import TARGET
from windows.wine import Done, Wine

pytestmark = pytest.mark.timeout(3600)

SEED, TIMES = 20, 20
# Ends the assistant, not the launcher of the virtual environment that started it, by TerminateProcess. What it says
# goes into a file: Wine's helpers may hold a pipe open when all others have gone.
OUTSIDE = """\
import subprocess, sys
import psutil
with open("said.txt", "w+b") as said:
    child = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    try:
        code = child.wait(float(sys.argv[1]))
        said.seek(0)
        print("ended", code, ascii(said.read().decode(errors="replace")[-500:]))
    except subprocess.TimeoutExpired:
        (*below,) = psutil.Process(child.pid).children()
        (below or [child])[0].kill()
        print("killed")
"""
COMPUTES = "import torch; assert (torch.ones(3) @ torch.ones(3)).item() == 3"


class New:
    """An environment that is not there yet."""

    target = r"C:\新 环境\torch"

    def __init__(self, windows: Wine) -> None:
        self.windows, self.folder = windows, windows.path(self.target)

    def begin(self) -> tuple[str, ...]:
        """Remove what stands there and its kernel; give the words of the command."""
        shutil.rmtree(self.folder.parent, ignore_errors=True)
        for kernel in kernels(self.windows, self):
            shutil.rmtree(kernel)
        self.before = outline(self.folder)
        return ("install", "--yes", "--backend", "cpu", "--target", self.target)

    def is_as_planned(self) -> bool:
        """Tell whether all files are there and torch computes."""
        computes = self.windows.run(f"{self.target}\\Scripts\\python.exe", "-c", COMPUTES)
        return not lacking(self.folder) and not computes.code


class Standing(New):
    """The environment of the setup, in which a package changes to another version, forth and back."""

    target = TARGET

    def begin(self) -> tuple[str, ...]:
        """Look which version is there; give the words of the command that brings the other."""
        self.version = "3.0.1" if self._found() == ["3.0.2"] else "3.0.2"
        self.before = outline(self.folder)
        return ("install", "--yes", "--backend", "cpu", "--target", self.target, "--pin", f"markupsafe=={self.version}")

    def is_as_planned(self) -> bool:
        """Tell whether the other version stands, and all else."""
        return self._found() == [self.version] and super().is_as_planned()

    def _found(self) -> list[str]:
        folders = (self.folder / "Lib" / "site-packages").iterdir()
        names = [path.name.lower() for path in folders if path.suffix == ".dist-info"]
        return [name.split("-")[1].removesuffix(".dist") for name in names if name.startswith("markupsafe-")]


@pytest.fixture
def outside(windows: Wine, private: Callable[[str], str]) -> Callable[..., str]:
    """Give a function that starts the assistant, ends it after some seconds, and tells how it went."""
    windows.path(r"C:\outside.py").write_text(OUTSIDE, encoding="ascii")
    python = private("core")

    def run(seconds: float, *words: str) -> str:
        assistant = (python, "-P", "-m", "torch_setup_assistant", *words)
        done = windows.run(python, r"C:\outside.py", str(round(seconds, 2)), *assistant)
        assert done.code == 0, done
        return done.out.strip()

    return run


@pytest.mark.usefixtures("installed")
def test_a_killed_installation_is_taken_back_or_complete(
    outside: Callable[..., str],
    assistant: Callable[..., Done],
    windows: Wine,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each time `recover` at once leaves things as they were before or as they were planned, and nothing running."""
    chance, told = random.Random(SEED), Counter()  # noqa: S311 - repeatable, no secret
    places, longest = (New(windows), Standing(windows)), {}
    for place in places:
        words, begun = place.begin(), time.monotonic()
        assert outside(500, *words).startswith("ended 0")
        longest[place] = time.monotonic() - begun
        assert place.is_as_planned()
    tried = 0
    while tried < TIMES:
        place = places[tried % 2]
        seconds = chance.uniform(0.5, longest[place])
        if outside(seconds, *place.begin()).startswith("killed"):
            tried += 1
            recovered = assistant("recover")
            assert recovered.code == 0, (seconds, recovered)
            outcome = state(place)
            told[type(place).__name__, outcome] += 1
            with capsys.disabled():
                print(f"\n{tried}: {type(place).__name__} after {seconds:.1f} s: {outcome}", end="", flush=True)
            assert windows.running() == []
            assert left_over(windows, place) == []
            assert len(kernels(windows, place)) == (isinstance(place, Standing) or outcome == "as planned")
    assert sum(told.values()) == TIMES


def state(place: New) -> str:
    """Tell how things stand; fail where they stand otherwise than before and than planned."""
    if outline(place.folder) == place.before:
        return "as before"
    assert place.is_as_planned()
    return "as planned"


def left_over(windows: Wine, place: New) -> list[str]:
    """List what an installation must leave nowhere, once Windows has let go of it."""
    home = windows.path(rf"C:\users\{windows.user}\AppData\Local\pytorch-setup-assistant")
    deadline = time.monotonic() + 30
    while True:
        found = [*home.glob("installs/*"), *Path(home).rglob("*.part"), *place.folder.parent.glob(".*.new")]
        if not found or time.monotonic() > deadline:
            return sorted(map(str, found))
        time.sleep(0.5)


def kernels(windows: Wine, place: New) -> list[Path]:
    """List the registered kernels of an environment."""
    specs = windows.path(rf"C:\users\{windows.user}\AppData\Roaming\jupyter\kernels").glob("*/kernel.json")
    return [spec.parent for spec in specs if json.loads(spec.read_text("utf-8"))["argv"][0].startswith(place.target)]
