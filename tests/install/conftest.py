"""The grounds on which installations are tried."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from install.faults import Ground, TroubledIndex
from install.workbench import Bench
from loopback import LoopbackIndex


@pytest.fixture
def bench(loopback_index: LoopbackIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Give a bench whose kernels go to a folder of its own."""
    for name in ("JUPYTER_DATA_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
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
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))  # what a killed installer leaves there is debris too
    made = Ground(troubled_index, tmp_path)
    made.build()
    yield made
    troubled_index.file_trouble.clear()
    troubled_index.bad_answers = None
