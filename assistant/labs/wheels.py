"""Small wheels for any Python, and folders that pip and uv read as package indexes."""

from __future__ import annotations

import hashlib
import io
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path

from assistant.host.files import write_temporary


def wheel(
    name: str,
    version: str,
    files: Mapping[str, str],
    *,
    summary: str = "",
    requires: Sequence[str] = (),
    entry_points: str = "",
) -> bytes:
    """Return a wheel for any Python with these files; the same content gives the same bytes."""
    about = f"{name.replace('-', '_')}-{version}.dist-info"
    told = [("Name", name), ("Version", version), *([("Summary", summary)] if summary else [])]
    told += [("Requires-Dist", one) for one in requires]
    contents = {
        **files,
        f"{about}/METADATA": "".join(f"{field}: {value}\n" for field, value in [("Metadata-Version", "2.1"), *told]),
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: lab\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if entry_points:
        contents[f"{about}/entry_points.txt"] = entry_points
    rows = [f"{path},sha256={_digest(text.encode())},{len(text.encode())}" for path, text in contents.items()]
    contents[f"{about}/RECORD"] = "\n".join([*rows, f"{about}/RECORD,,", ""])
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, text in contents.items():
            archive.writestr(zipfile.ZipInfo(path), text)
    return packed.getvalue()


def file_of(name: str, version: str) -> str:
    """Return the name of the file of such a wheel."""
    return f"{name.replace('-', '_')}-{version}-py3-none-any.whl"


def _digest(content: bytes) -> str:
    """Return a hash in the form of RECORD: https://packaging.python.org/specifications/recording-installed-packages/."""
    return urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def add_to_index(index: Path, name: str, wheels: Mapping[str, bytes]) -> None:
    """Write a project's wheels, by version, into an index, which each start of a lab makes anew, with their hashes."""
    folder = index / name
    folder.mkdir(parents=True, exist_ok=True)
    links = []
    for version, content in wheels.items():
        file = file_of(name, version)
        write_temporary(folder / file, content)
        sha256 = hashlib.sha256(content).hexdigest()
        links.append(f'<a href="{file.replace("+", "%2B")}#sha256={sha256}">{file}</a>')
    write_temporary(folder / "index.html", "\n".join(["<!DOCTYPE html>", *links, ""]))
