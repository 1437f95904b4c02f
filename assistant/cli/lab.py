"""`assistant lab`: the guided setup in JupyterLab."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from assistant.host.process import become, is_root

__all__ = ["lab"]

PACKAGE = Path(__file__).parents[1]


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("jupyter_arguments", nargs=-1, type=click.UNPROCESSED)
def lab(jupyter_arguments: tuple[str, ...]) -> None:
    """Open the guided setup in JupyterLab; further arguments go to `jupyter lab`."""
    options = [f"--notebook-dir={_notebooks()}", "--LabApp.default_url=/lab/tree/setup.ipynb"]
    if is_root():
        options.append("--allow-root")  # in containers root is the only user, and the server listens on loopback only
    become([sys.executable, "-m", "jupyter", "lab", *options, *jupyter_arguments])


def _notebooks() -> Path:
    """Find the guided notebooks: inside an installed wheel, beside the package in a checkout."""
    inside = PACKAGE / "notebooks"
    return inside if inside.is_dir() else PACKAGE.parent / "notebooks"
