"""`assistant lab --app` where Voilà is not there."""

from __future__ import annotations

import subprocess
import sys

WITHOUT_VOILA = "import sys; sys.modules['voila'] = None; from assistant.cli import main; sys.exit(main())"


def test_without_voila_the_command_says_how_to_get_it() -> None:
    """One sentence and the command for this very environment; exit code 2, no traceback."""
    command = [sys.executable, "-c", WITHOUT_VOILA, "lab", "--app"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    reason = f"Voilà, which shows the setup without code, is not installed in {sys.prefix}."
    assert done.stderr.strip() == f"{reason} Install it: {sys.executable} -m pip install voila"
