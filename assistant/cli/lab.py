"""`assistant lab`: the guided setup in JupyterLab, or with `--app` as a page of its own."""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import suppress
from pathlib import Path

import click

from assistant.cli.terminal import echo
from assistant.host.extras import require_extra
from assistant.host.files import make_private_folder, read_regular, user_data, user_state, write_atomically
from assistant.host.process import replace_process
from assistant.i18n import _, say
from assistant.model.errors import AssistantError, BadInput, unwritable_error
from assistant.model.record import Record, from_json, to_json

PACKAGE = Path(__file__).parents[1]
LARGEST = 1 << 30  # chosen: bytes of a notebook with all that its cells print


class _Copy(Record, frozen=True):
    """The newest copy of one notebook that a user was given: its name there, and the SHA-256 of the original."""

    file: str
    sha256: str


class _Given(Record, frozen=True):
    """The copies by folder and by the original's name."""

    schema: int = 1
    folders: dict[str, dict[str, _Copy]] = {}


def notebooks_folder() -> Path:
    """Return the folder of the notebooks: inside the package in an installed wheel, beside it in a checkout."""
    inside = PACKAGE / "notebooks"
    return inside if inside.is_dir() else PACKAGE.parent / "notebooks"


def put_copies(folder: Path) -> dict[str, str]:
    """Copy the notebooks into a folder; return the name of each one's newest copy there by that of the original.

    An example is {"setup.ipynb": "setup-2.ipynb"}. A copy that its user has not changed is renewed. One that was
    changed stays, and an original that is newer is copied beside it under another name. Which copies there are is noted
    in the user's state folder. Raises `WorkFailed` for a folder that cannot be written.
    """
    notes = user_state() / "notebooks.json"
    try:
        before = from_json(read_regular(notes), _Given, notes.name)
    except (OSError, AssistantError):
        before = _Given()
    given = before.folders.get(str(folder), {})
    try:
        now = {
            original.name: _put_copy(folder, original.name, original.read_bytes(), given.get(original.name))
            for original in sorted(notebooks_folder().glob("*.ipynb"))
        }
    except OSError as error:
        raise unwritable_error(error.filename or folder, error) from error
    with suppress(OSError):  # without it a copy counts as changed, and nothing is lost
        after = _Given(folders={**before.folders, str(folder): now})
        write_atomically(make_private_folder(notes.parent) / notes.name, to_json(after), private=True)
    return {name: copy.file for name, copy in now.items()}


def _put_copy(folder: Path, name: str, data: bytes, given: _Copy | None) -> _Copy:
    """Write a notebook unless its newest copy is of this `data`; return what is its newest copy now.

    `given` is the newest copy until now, None if there was none. One that its user changed is not overwritten: the new
    one gets a number.
    """
    original = hashlib.sha256(data).hexdigest()
    place, number = folder / (given.file if given else name), 1
    if given and given.sha256 == original and place.exists():
        return given
    while (there := _sha256(place)) not in {None, original, given and given.sha256}:  # its user changed it
        number += 1
        place = (folder / name).with_stem(f"{Path(name).stem}-{number}")
    if there != original:
        place.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(place, data)
    return _Copy(file=place.relative_to(folder).as_posix(), sha256=original)


def _sha256(path: Path) -> str | None:
    """Return a file's SHA-256; None if there is no file."""
    try:
        return hashlib.sha256(read_regular(path, LARGEST, follow=True)).hexdigest()
    except FileNotFoundError:
        return None


# What JupyterLab reads beside the user's own configuration, in this process only. Without announcements no question
# about Jupyter's news lies over the wizard, and PyPI is not asked for a newer JupyterLab; `LabApp.news_url=None` leaves
# the question (announcements.ts in @jupyterlab/apputils-extension, 4.6). Without the check of the build each page costs
# no half second of Node.js, and no proposal to build JupyterLab anew lies over the wizard (`buildPlugin` in
# application-extension's index.tsx, 4.6). And it tells our extension that the folder served is the user's.
CONFIGURATION = Path(__file__).with_name("jupyter")
WORKSPACE = "pytorch"  # a user's own JupyterLab remembers tabs of other folders, which are not here


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--app", "as_app", is_flag=True, help="Show the setup alone, as an app.")
@click.option("--folder", metavar="DIR", help="Folder for your copies of the notebooks.")
@click.argument("jupyter_arguments", nargs=-1, type=click.UNPROCESSED)
def lab(jupyter_arguments: tuple[str, ...], folder: str | None, *, as_app: bool) -> None:
    """Open the guided setup in JupyterLab. Further arguments go to `jupyter lab`."""
    require_extra("lab")
    place = Path(folder).expanduser().absolute() if folder else user_data() / "notebooks"
    for hides in (place / name for name in ("assistant.py", "assistant")):
        if hides.exists():
            raise BadInput(
                _("{file} would hide the assistant's package of the same name from the notebooks.", file=hides),
                hint=_("Rename it and start again."),
            )
    setup = put_copies(place)["setup.ipynb"]
    echo(say("Your copies of the notebooks are in {folder}. Ctrl-C twice stops JupyterLab.", folder=place), err=True)
    address = f"/{'doc' if as_app else 'lab'}/workspaces/{WORKSPACE}/tree/{setup}"
    # At "INFO" two dozen lines surround the one address that matters; it is printed at any level.
    options = [f"--notebook-dir={place}", f"--LabApp.default_url={address}", "--Application.log_level=WARN"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.append("--allow-root")  # in containers root is the only user, and the server listens on loopback only
    searched = filter(None, (str(CONFIGURATION), os.environ.get("JUPYTER_CONFIG_PATH")))
    replace_process(
        [sys.executable, "-m", "jupyterlab", *options, *jupyter_arguments],
        {"JUPYTER_CONFIG_PATH": os.pathsep.join(searched)},
    )
