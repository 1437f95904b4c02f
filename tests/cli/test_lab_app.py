"""`assistant lab`: what JupyterLab is told, and `--app` where Voilà is not there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

WITHOUT_VOILA = "import sys; sys.modules['voila'] = None; from assistant.cli import main; sys.exit(main())"


def test_without_voila_the_command_says_how_to_get_it() -> None:
    """One sentence and the command for this very environment; exit code 2, no traceback."""
    command = [sys.executable, "-c", WITHOUT_VOILA, "lab", "--app"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    reason = f"Voilà, which shows the setup without code, is not installed in {sys.prefix}."
    assert done.stderr.strip() == f"{reason} Install it: {sys.executable} -m pip install voila"


def test_jupyterlab_opens_the_setup_and_asks_nothing_else(tmp_path: Path) -> None:
    """The guided notebook is what opens, and no question about news lies over it."""
    command = [sys.executable, "-m", "assistant", "lab", "--show-config"]
    homes = {name: str(tmp_path) for name in ("HOME", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **homes})
    assert ".default_url = '/lab/tree/setup.ipynb'" in done.stdout
    assert "news_url = DeferredConfigString('None')" in done.stdout
