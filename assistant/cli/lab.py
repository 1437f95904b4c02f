"""`assistant lab`: the guided setup in JupyterLab, or with `--app` as a page of its own."""

from __future__ import annotations

import os
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

# What JupyterLab reads beside the user's own configuration, in this process only. Without announcements no question
# about Jupyter's news lies over the wizard, and PyPI is not asked for a newer JupyterLab; `LabApp.news_url=None` leaves
# the question (announcements.ts in @jupyterlab/apputils-extension, 4.6). And it tells our extension that the folder
# served is the user's.
CONFIGURATION = Path(__file__).with_name("jupyter")
WORKSPACE = "pytorch"  # a user's own JupyterLab remembers tabs of other folders, which are not here


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--app", "as_app", is_flag=True, help="Show the setup alone, as an app.")
@click.option("--folder", metavar="DIR", help="Folder for your copies of the notebooks and labs.")
@click.argument("jupyter_arguments", nargs=-1, type=click.UNPROCESSED)
def lab(jupyter_arguments: tuple[str, ...], folder: str | None, *, as_app: bool) -> None:
    """Open the guided setup in JupyterLab; further arguments go to `jupyter lab`."""
    require("lab")
    place = Path(folder).expanduser().absolute() if folder else user_data() / "notebooks"
    for hides in (place / "assistant.py", place / "labs" / "assistant.py"):
        if hides.exists():
            raise BadInput(
                _("{file} would hide the assistant's package of the same name from the notebooks.", file=hides),
                hint=_("Rename it and start again."),
            )
    setup = put_copies(place)["setup.ipynb"]
    echo(say("Your copies of the notebooks and labs are in {folder}.", folder=place), err=True)
    address = f"/{'doc' if as_app else 'lab'}/workspaces/{WORKSPACE}/tree/{setup}"
    options = [f"--notebook-dir={place}", f"--LabApp.default_url={address}"]
    if is_root():
        options.append("--allow-root")  # in containers root is the only user, and the server listens on loopback only
    searched = filter(None, (str(CONFIGURATION), os.environ.get("JUPYTER_CONFIG_PATH")))
    become(
        [sys.executable, "-m", "jupyterlab", *options, *jupyter_arguments],
        {"JUPYTER_CONFIG_PATH": os.pathsep.join(searched)},
    )
