"""Every export of one machine per backend and system, made once for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from export.setups import BOARDS, exported


@pytest.fixture(scope="session")
def exports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Give a folder with all exports per machine."""
    root = tmp_path_factory.mktemp("exports")
    for name in BOARDS:
        exported(name, root / name)
    return {name: root / name for name in BOARDS}
