"""What every refusal of the command line looks like."""

from __future__ import annotations

import subprocess


def refused(done: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    """Check that a command failed with a code and one line on stderr that holds the words."""
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    for word in words:
        assert word in done.stderr


def without(package: str) -> str:
    """Return the code that runs `assistant` as where a package is not installed."""
    lacks = f"from assistant.host import extras; extras._is_missing = {package!r}.__eq__"
    return f"import sys; sys.modules[{package!r}] = None; {lacks}; from assistant.cli import main; main()"
