"""What all tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from loopback import LoopbackIndex


@pytest.fixture
def loopback_index(tmp_path: Path) -> Iterator[LoopbackIndex]:
    """Serve a package index of small wheels on 127.0.0.1."""
    folder = tmp_path / "loopback-index"
    folder.mkdir()
    index = LoopbackIndex(folder)
    yield index
    index.close()
