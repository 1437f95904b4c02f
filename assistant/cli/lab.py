"""`assistant lab`: the guided setup in JupyterLab, or with `--app` as a page of its own."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import click

from assistant.host.process import become, is_root
from assistant.i18n import _
from assistant.model.errors import BadInput

__all__ = ["lab"]

PACKAGE = Path(__file__).parents[1]


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--app", "as_app", is_flag=True, help="Show the setup alone, without its code (by Voilà).")
@click.argument("jupyter_arguments", nargs=-1, type=click.UNPROCESSED)
def lab(jupyter_arguments: tuple[str, ...], *, as_app: bool) -> None:
    """Open the guided setup in JupyterLab; further arguments go to `jupyter lab` (with --app to `voila`)."""
    command = _app() if as_app else _jupyterlab()
    become([sys.executable, "-m", *command, *jupyter_arguments])


def _jupyterlab() -> list[str]:
    options = [f"--notebook-dir={_notebooks()}", "--LabApp.default_url=/lab/tree/setup.ipynb"]
    options.append("--LabApp.news_url=None")  # the question whether Jupyter's news are wanted lies over the wizard
    options.append("--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate")  # else it asks PyPI at each start
    if is_root():
        options.append("--allow-root")  # in containers root is the only user, and the server listens on loopback only
    return ["jupyter", "lab", *options]


def _app() -> list[str]:
    """Name the command that serves the notebook without its code; it prints the address, with a token of its own.

    It opens no browser, because Voilà leaves the token out of the address that it opens.
    """
    if find_spec("voila") is None:
        installer = "pip install voila" if find_spec("pip") else f"uv pip install voila --python {sys.executable}"
        raise BadInput(
            _("Voilà, which shows the setup without code, is not installed in {environment}.", environment=sys.prefix),
            hint=_("Install it: {command}", command=f"{sys.executable} -m {installer}"),
        )
    hidden = ["--TagRemovePreprocessor.enabled=True", "--TagRemovePreprocessor.remove_cell_tags=instructions"]
    return ["voila", "--no-browser", "--Voila.auto_token=True", *hidden, str(_notebooks() / "setup.ipynb")]


def _notebooks() -> Path:
    """Find the guided notebooks: inside an installed wheel, beside the package in a checkout."""
    inside = PACKAGE / "notebooks"
    return inside if inside.is_dir() else PACKAGE.parent / "notebooks"
