"""What the tests of the labs share."""

from __future__ import annotations

import shutil

import pytest
from system_packages import install

from assistant.host.sandbox import obstacle


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Have bubblewrap, asking the system's package manager for it; tests fail, and are never skipped, without it."""
    if shutil.which("bwrap") is None:
        install("bubblewrap")
        obstacle.cache_clear()
    if reason := obstacle():
        pytest.fail(
            f"Learners' notebooks cannot be shut in here: {reason}. Install bubblewrap (Debian: apt install "
            "bubblewrap), allow user namespaces, and run the tests again.",
            pytrace=False,
        )
