"""`assistant lab`: the guided setup in JupyterLab, or with `--app` as a page of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from assistant.cli.notebooks import put_copies
from assistant.cli.terminal import echo
from assistant.host.extras import require
from assistant.host.folders import user_data
from assistant.host.process import become, is_root
from assistant.i18n import _, say
from assistant.model.errors import BadInput


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--app", "as_app", is_flag=True, help="Show the setup alone, without its code (by Voilà).")
@click.option("--folder", metavar="DIR", help="Folder for your copies of the notebooks and labs.")
@click.argument("jupyter_arguments", nargs=-1, type=click.UNPROCESSED)
def lab(jupyter_arguments: tuple[str, ...], folder: str | None, *, as_app: bool) -> None:
    """Open the guided setup in JupyterLab; further arguments go to `jupyter lab` (with --app to `voila`)."""
    require("app" if as_app else "lab")
    place = Path(folder).expanduser().absolute() if folder else user_data() / "notebooks"
    for hides in (place / "assistant.py", place / "labs" / "assistant.py"):
        if hides.exists():
            raise BadInput(
                _("{file} would hide the assistant's package of the same name from the notebooks.", file=hides),
                hint=_("Rename it and start again."),
            )
    setup = put_copies(place)["setup.ipynb"]
    echo(say("Your copies of the notebooks and labs are in {folder}.", folder=place), err=True)
    command = _app(place / setup) if as_app else _jupyterlab(place, setup)
    become([sys.executable, "-m", *command, *jupyter_arguments])


def _jupyterlab(folder: Path, setup: str) -> list[str]:
    options = [f"--notebook-dir={folder}", f"--LabApp.default_url=/lab/tree/{setup}"]
    # Both from https://jupyterlab.readthedocs.io/en/stable/user/announcements.html: the question whether Jupyter's news
    # are wanted lies over the wizard, and PyPI is asked for a newer JupyterLab at each start.
    options.append("--LabApp.news_url=None")
    options.append("--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate")
    if is_root():
        options.append("--allow-root")  # in containers root is the only user, and the server listens on loopback only
    return ["jupyter", "lab", *options]


def _app(notebook: Path) -> list[str]:
    """Return the command that serves the notebook without its code; it prints the address, with a token of its own."""
    # Voilà opens the browser at an address without the token (`launch_browser` in voila/app.py, 0.5.13).
    hidden = ["--TagRemovePreprocessor.enabled=True", "--TagRemovePreprocessor.remove_cell_tags=instructions"]
    return ["voila", "--no-browser", "--Voila.auto_token=True", *hidden, str(notebook)]
