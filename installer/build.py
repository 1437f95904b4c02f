"""Make a release's files for a start without Python: `python3 installer/build.py OWNER/PROJECT FOLDER`.

They are the two scripts and `torch-setup-assistant.pyz`, with the repository and the default package index filled in.
"""

from __future__ import annotations

import sys
import zipapp
from pathlib import Path
from tempfile import TemporaryDirectory

from pip._internal.models.index import PyPI  # the address that pip itself takes where nothing is set

HERE = Path(__file__).parent


def build(repository: str, folder: Path) -> None:
    """Write the three files into a folder; `repository` is a name on GitHub such as `someone/project`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("install.sh", "install.ps1"):
        (folder / name).write_bytes(filled((HERE / name).read_text("utf-8"), repository).encode())
    with TemporaryDirectory() as scratch:
        main = filled((HERE / "pyz" / "__main__.py").read_text("utf-8"), repository)
        (Path(scratch) / "__main__.py").write_bytes(main.encode())
        target = folder / "torch-setup-assistant.pyz"
        zipapp.create_archive(scratch, target, interpreter="/usr/bin/env python3", compressed=True)


def filled(text: str, repository: str) -> str:
    """Put the repository and the default package index in their places."""
    return text.replace("OWNER/PROJECT", repository).replace("https://PYPI/simple", PyPI.simple_url)


if __name__ == "__main__":
    build(sys.argv[1], Path(sys.argv[2]))
