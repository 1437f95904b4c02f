"""What the tests of the labs share."""

from __future__ import annotations

import pytest
from bubblewrap import obtain


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Have bubblewrap; tests fail, and are never skipped, without it."""
    if reason := obtain():
        pytest.fail(reason, pytrace=False)
