"""Environments that are broken as users break them, mended and undone by the real uv, file for file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from install.faults import picture
from loopback import LoopbackIndex

from assistant.host.live import LiveHost
from assistant.host.process import CancelToken
from assistant.install import Sources, Tools, Wanted, carry_out, look_at, undo, undoable, work_out
from assistant.install.difference import Difference
from assistant.install.undo import FOLDER
from assistant.model.event import Event
from assistant.model.report import Environment

pytestmark = pytest.mark.process

HOST = LiveHost()


class Patient:
    """An environment that is to be mended, and an index with everything that it may need."""

    def __init__(self, index: LoopbackIndex, folder: Path) -> None:
        self.index, self.target = index, folder / "an environment"
        self.events: list[Event] = []
        self.uv = [sys.executable, "-m", "uv"]
        subprocess.run([*self.uv, "venv", "-q", "--no-project", "--python", sys.executable, self.target], check=True)

    def install(self, *wheels: Path) -> None:
        """Install wheels one after the other, as pip does, whatever they require or overwrite."""
        for wheel in wheels:
            python = self.target / "bin" / "python"
            words = ["pip", "install", "-q", "--no-deps", "--no-index", "--python", python, wheel]
            subprocess.run([*self.uv, *words], check=True, env={**os.environ, "UV_LINK_MODE": "copy"})

    @property
    def tools(self) -> Tools:
        """Take all packages from the index on loopback."""
        return Tools(HOST, Sources(HOST, index_url=self.index.url), self.events.append, CancelToken())

    def difference(self, wanted: Wanted) -> Difference:
        """Work out what a change would do."""
        return work_out(look_at(self.target, HOST), wanted, self.tools)

    def change(self, wanted: Wanted, prove: Callable[..., None] = lambda _made, _lock: None) -> Environment:
        """Change it."""
        return carry_out(self.difference(wanted), prove, self.tools)[0]

    @property
    def versions(self) -> dict[str, str]:
        """The packages that its own Python sees."""
        return look_at(self.target, HOST).versions

    def picture(self) -> dict[str, tuple[object, ...]]:
        """Describe every file but what is kept for undoing, and what Python compiled."""
        seen = picture(self.target).items()
        return {name: told for name, told in seen if not name.startswith(FOLDER) and "__pycache__" not in name}


@pytest.fixture
def patient(loopback_index: LoopbackIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Patient:
    """Give an environment of its own; all state, caches and settings lie in folders of the test's own."""
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    for name in ("JUPYTER_DATA_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME", "UV_CACHE_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("UV_DEFAULT_INDEX", loopback_index.url)
    return Patient(loopback_index, tmp_path)


def moves(difference: Difference) -> list[tuple[str, str, str]]:
    """Name what moves."""
    return [(move.name, move.before, move.after) for move in difference.moves]


def test_a_package_steps_back_and_comes_again(patient: Patient) -> None:
    """What requires it is kept, nothing else moves, and undoing brings back every file."""
    add = patient.index.add
    add("numpy", "1.26.4")
    patient.install(add("torch", "2.2.2", requires=("numpy",)), add("numpy", "2.1.0"), add("extra", "1.0"))
    before, packages = patient.picture(), patient.versions
    difference = patient.difference(Wanted(requires=("numpy<2",)))
    assert moves(difference) == [("numpy", "2.1.0", "1.26.4")]
    assert difference.download > 0
    assert patient.picture() == before
    patient.change(Wanted(requires=("numpy<2",)))
    assert patient.versions == {**packages, "numpy": "1.26.4"}
    assert undoable(patient.target).moves == difference.moves
    undo(patient.target, HOST, CancelToken())
    assert patient.picture() == before
    assert undoable(patient.target) is None
    assert not list(patient.target.glob(f"{FOLDER}*"))
