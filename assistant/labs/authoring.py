"""Starts a lab of one's own: a small one that works, to be changed into another."""

from __future__ import annotations

from pathlib import Path

from assistant.host.files import read_plain, write_whole
from assistant.i18n import _
from assistant.labs.definition import FILE_BYTES, check_key
from assistant.model.errors import BadInput, unwritable

TEMPLATE = Path(__file__).with_name("template")


def new_lab(key: str, folder: Path) -> Path:
    """Write a lab that works into a new folder of its key below `folder`, and return it.

    Raises `BadInput` for a key that cannot be one or is there already, `WorkFailed` where nothing can be written.
    """
    check_key(key)
    place = folder / key
    if place.exists():
        raise BadInput(_("{folder} is there already.", folder=place), hint=_("Choose another key or folder."))
    try:
        place.mkdir(parents=True)
        for path in sorted(TEMPLATE.iterdir()):
            if path.is_file():
                write_whole(place / path.name, read_plain(path, FILE_BYTES, follow=True))
    except OSError as error:
        raise unwritable(place, error) from error
    return place
