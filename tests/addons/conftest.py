"""The notebooks of add-ons, which lie beside the core's and are tested with the add-ons."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> Generator[None, list[pytest.Collector]]:
    """Collect in the place of this file all notebooks but those of the core, which `testpaths` names."""
    found = yield
    if file_path == Path(__file__):
        of_the_core = {parent.config.rootpath / path for path in parent.config.getini("testpaths")}
        for path in sorted({*NOTEBOOKS.glob("*.ipynb")} - of_the_core):
            found += parent.ihook.pytest_collect_file(file_path=path, parent=parent)
    return found
