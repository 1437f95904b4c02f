"""Have bubblewrap, in which learners' notebooks are graded."""

from __future__ import annotations

import shutil

from system_packages import install

from assistant.host.sandbox import obstacle


def lacking() -> str:
    """Have bubblewrap, asking the system's package manager for it; say what is lacking then, "" for nothing."""
    if shutil.which("bwrap") is None:
        install("bubblewrap")
        obstacle.cache_clear()
    if reason := obstacle():
        return (
            f"Learners' notebooks cannot be shut in here: {reason}. Install bubblewrap (Debian: apt install "
            "bubblewrap), allow user namespaces, and try again."
        )
    return ""
