"""The real command with real torch, ended at random moments by three signals, in three kinds of environment."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from install.real import INSTALL, NEWER, OLDER, Home, incomplete, lacking, outline, versions

from assistant.install.environments import Places

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.timeout(5400),
    pytest.mark.skipif(os.name == "nt", reason="Windows has none of these signals"),
]

SEED, TIMES = 20262, 66
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
KINDS = ("new", "standing", "kernel")


class Place:
    """One kind of environment to install into, brought back to its first state before each try."""

    def __init__(self, kind: str, home: Home) -> None:
        self.kind, self.home = kind, home
        self.target = home.folder / f"{kind} environment"
        self.python = self.target / "bin" / "python" if kind == "kernel" else Path(sys.executable)
        self.restart()

    def restart(self) -> None:
        """Begin anew: no environment, ours with another NumPy, or somebody else's, with a file of the user's in it."""
        for folder in (self.target, Places(self.target).old, self.home.folder / "jupyter"):
            shutil.rmtree(folder, ignore_errors=True)
        if self.kind == "standing":
            done = self.home.run(*INSTALL, *OLDER, "--target", self.target)
            assert done.returncode == 0, done.stderr
        if self.kind == "kernel":  # the assistant that is started by this Python changes this Python's environment
            self.home.make(self.target)
        for site in self.target.glob("lib/python*/site-packages"):
            (site / "mine.py").write_text("precious = 1\n")
            if self.kind == "kernel":
                places = (sysconfig.get_path("purelib"), str(Path(__file__).parents[2]))
                (site / "beside.pth").write_text("\n".join(places))
        self.before, self.versions = outline(self.target), versions(self.target)
        self.kernels = self.home.kernels()

    def words(self) -> tuple[str | Path, ...]:
        """Give the command."""
        where = "kernel" if self.kind == "kernel" else self.target
        return (*INSTALL, *(NEWER if self.kind == "standing" else ()), "--target", where)

    def state(self) -> str:
        """Tell whether the environment is untouched or complete; else what is wrong with it.

        Of somebody else's the versions count: uv brings them back, and not the files.
        """
        mine = [path.read_text() for path in self.target.glob("lib/python*/site-packages/mine.py")]
        assert mine == ["precious = 1\n"] or self.kind == "new"
        if outline(self.target) == self.before:
            return "untouched"
        if self.kind == "kernel" and versions(self.target) == self.versions:
            return f"broken: {lacking(self.target)[:5]}" if lacking(self.target) else "untouched"
        wrong = incomplete(self.target)
        if self.kind == "standing" and versions(self.target) == self.versions:
            wrong = ["the files are others, and the versions those from before"]
        return "complete" if not wrong else f"broken: {wrong[:5]}"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """Give a home whose uv's cache is warm after the first run."""
    made = Home(tmp_path, Path(os.environ.get("UV_CACHE_DIR") or tmp_path / "uv"))
    yield made
    shutil.rmtree(tmp_path, ignore_errors=True)


def test_real_kills(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    """Each time the state is whole, the last sentence tells it, and after `recover` nothing is left."""
    chance, told = random.Random(SEED), Counter()  # noqa: S311 - repeatable, no secret
    longest = {}
    for kind in KINDS:
        place = Place(kind, home)
        for _twice in range(2):  # the first fills the caches
            place.restart()
            begun = time.monotonic()
            done = home.run(*place.words(), python=place.python)
            assert done.returncode == 0, done.stderr
            longest[kind] = time.monotonic() - begun
        assert place.state() == "complete"
    tried = 0
    while tried < TIMES:
        kind, number = KINDS[tried % 3], SIGNALS[tried // 3 % 3]
        place = Place(kind, home)
        outcome = attempt(place, number, chance.uniform(0.2, longest[kind] * 1.05))
        if outcome:
            tried += 1
            told[kind, number.name, outcome] += 1
            with capsys.disabled():
                print(f"\n{tried}: {kind} {number.name}: {outcome}", end="", flush=True)
    with capsys.disabled():
        for key in sorted(told):
            print("\n", *key, told[key], end="")


def attempt(place: Place, number: signal.Signals, seconds: float) -> str:
    """Install, end it after some seconds, check what was said, recover, check what is; "" where it had ended before."""
    moment = (place.kind, number.name, round(seconds, 2))
    with place.home.start(*place.words(), python=place.python) as child:
        time.sleep(seconds)
        over = child.poll() is not None
        if not over:
            os.killpg(child.pid, number)
        out, complaint = child.communicate(timeout=120)
    if over:
        return ""
    if child.returncode == -number and not out:  # before the command could hear of it
        said = "untouched" if number is not signal.SIGKILL else ""
    else:
        said = place.state() if child.returncode != 0 and number is not signal.SIGKILL else ""
    if said and child.returncode != -number:
        assert (child.returncode, complaint.count("\n")) == (130, 1), (moment, out, complaint, place.home.last_words())
        truth = (
            "is complete and stays"
            if said == "complete"
            else ("before anything was changed", "as it was before", "as they were before", "You stopped the command")
        )
        assert any(words in complaint for words in ([truth] if isinstance(truth, str) else truth)), (moment, complaint)
    recovered = place.home.run("recover", python=place.python)
    assert recovered.returncode == 0, (moment, recovered.stderr)
    state = place.state()
    assert state in {"untouched", "complete"}, (moment, state)
    assert not said or said == state, (moment, said, state)
    assert place.home.left_over() == [], moment
    assert (place.home.kernels() == place.kernels) == (state == "untouched" or place.kind == "standing"), moment
    running = subprocess.run(["pgrep", "-f", str(place.target)], capture_output=True, text=True, check=False).stdout
    assert not running, (moment, running)
    return state
