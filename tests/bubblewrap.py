"""Have bubblewrap, by which the bundle's tests take the network away."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from system_packages import install


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Have bubblewrap, asking the system's package manager for it; tests fail, and are never skipped, without it."""
    if shutil.which("bwrap") is None:
        install("bubblewrap")
    command = ["bwrap", "--unshare-net", "--ro-bind", "/", "/", "true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False) if shutil.which("bwrap") else None
    if done is None or done.returncode:
        reason = done.stderr.strip() if done else "it is not installed"
        pytest.fail(
            f"No network can be taken away here: {reason}. Install bubblewrap (Debian: apt install bubblewrap), allow "
            "user namespaces, and try again.",
            pytrace=False,
        )
