"""Have bubblewrap, in which learners' notebooks are graded."""

from __future__ import annotations

import shutil

from system_packages import install

from assistant.host.sandbox import obstacle


def obtain() -> str:
    """Have bubblewrap, asking the system's package manager for it; return why it does not work, "" where it does."""
    if shutil.which("bwrap") is None:
        install("bubblewrap")
        obstacle.cache_clear()
    if reason := obstacle():
        return (
            f"Learners' notebooks cannot be shut in here: {reason}. Install bubblewrap (Debian: apt install "
            "bubblewrap), allow user namespaces, and try again."
        )
    return ""
