"""Lets an environment that was built in a work folder name the place it goes to.

Installers write the interpreter's path into scripts (`#!/home/ada/.assistant-install-4f…/torch/bin/python`), into
`activate` and `pyvenv.cfg`. What the work folder adds to a path is made of plain characters alone, so it can be cut out
of any text, however the rest of the path is quoted there.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from pathlib import Path

from assistant.host.files import write_whole
from assistant.install.site import package_folders

SCRIPTS = "Scripts" if os.name == "nt" else "bin"


def relocate(folder: Path, infix: str) -> None:
    """Cut `infix` ("/" between its parts) out of every path in the environment's scripts and its `pyvenv.cfg`.

    The hashes in RECORD follow (PEP 376).
    """
    slash = rb"[\\/]+"
    extra = re.compile(slash + slash.join(re.escape(part.encode()) for part in infix.split("/")) + rb"(?=[\\/])")
    rows: dict[str, str] = {}
    for path in (folder / "pyvenv.cfg", *sorted((folder / SCRIPTS).iterdir())):
        if path.is_symlink() or not path.is_file():
            continue
        old = path.read_bytes()
        new = extra.sub(b"", old)
        if new != old:
            mode = path.stat().st_mode
            write_whole(path, new)
            path.chmod(mode)
            rows[_row(old)] = _row(new)
    records = (record for place in package_folders(folder) for record in place.glob("*.dist-info/RECORD"))
    for record in records if rows else ():
        text = record.read_text(encoding="utf-8")
        if known := [row for row in rows if row in text]:
            for row in known:
                text = text.replace(row, rows[row])
            write_whole(record, text)


def _row(content: bytes) -> str:
    """Write hash and size as a RECORD does: `sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0`."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"sha256={digest},{len(content)}"
