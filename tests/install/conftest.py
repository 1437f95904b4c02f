"""The grounds on which installations are tried."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from install.faults import BODY, Ground, TroubledIndex
from install.workbench import Bench
from loopback import LoopbackIndex

from assistant.install import contents


@pytest.fixture
def bench(loopback_index: LoopbackIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Give a bench whose kernels go to a folder of its own."""
    for name in ("JUPYTER_DATA_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setattr(contents, "LARGE", 0)  # so that what is fetched is counted
    return Bench(loopback_index, tmp_path)


@pytest.fixture(scope="session")
def troubled_index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TroubledIndex]:
    """Serve the packages of all grounds; what a test lets go wrong with them ends with it."""
    index = TroubledIndex(tmp_path_factory.mktemp("troubled-index"))
    yield index
    index.close()


@pytest.fixture
def ground(troubled_index: TroubledIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    """Give an environment that stands and an index beside it; all state and caches lie in a folder of their own."""
    places = {"JUPYTER_DATA_DIR": "jupyter", "XDG_STATE_HOME": "state", "XDG_CACHE_HOME": "cache"}
    for name, folder in places.items():
        monkeypatch.setenv(name, str(tmp_path / folder))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    settings = {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": troubled_index.url,
        "UV_CACHE_DIR": str(tmp_path / "uv"),
    }
    for name, value in settings.items():  # of the user whose uv undoes and takes back
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(contents, "LARGE", BODY // 2)  # so that torch's wheel is one, as it is everywhere else
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))  # what a killed installer leaves there is debris too
    made = Ground(troubled_index, tmp_path)
    made.build()
    yield made
    troubled_index.file_trouble.clear()
    troubled_index.bad_answers = None
