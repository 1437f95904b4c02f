"""`assistant lab`: the guided setup in JupyterLab."""

from __future__ import annotations

import sys

import click

from assistant.host.process import become, is_root
from assistant.wizard.notebooks import folder_of_notebooks

__all__ = ["lab"]


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("jupyter_arguments", nargs=-1, type=click.UNPROCESSED)
def lab(jupyter_arguments: tuple[str, ...]) -> None:
    """Open the guided setup in JupyterLab; further arguments go to `jupyter lab`."""
    options = [f"--notebook-dir={folder_of_notebooks()}", "--LabApp.default_url=/lab/tree/setup.ipynb"]
    if is_root():
        options.append("--allow-root")  # in containers root is the only user, and the server listens on loopback only
    become([sys.executable, "-m", "jupyter", "lab", *options, *jupyter_arguments])
