"""Makes the small wheels that labs install: what pip and uv do with them is real, and no index has to be asked."""

from __future__ import annotations

import hashlib
import io
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping

from assistant.labs.installed import packages_of
from assistant.labs.scene import Scene


def wheel(name: str, version: str, files: Mapping[str, str], requires: Iterable[str] = ()) -> tuple[str, bytes]:
    """Return the file name and the content of a wheel for any Python, whose RECORD holds the hash of each file.

    The same arguments give the same bytes. Format: https://packaging.python.org/specifications/binary-distribution-format/.
    """
    stem = f"{name.replace('-', '_')}-{version}"
    needs = "".join(f"Requires-Dist: {one}\n" for one in requires)
    held = {
        **files,
        f"{stem}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
        f"{stem}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: lab\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = f"{stem}.dist-info/RECORD"
    rows = [f"{path},sha256={_hash(text)},{len(text.encode())}\n" for path, text in held.items()]
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, text in {**held, record: f"{''.join(rows)}{record},,\n"}.items():
            archive.writestr(zipfile.ZipInfo(path), text)
    return f"{stem}-py3-none-any.whl", packed.getvalue()


def _hash(text: str) -> str:
    return urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def installed_as(scene: Scene, package: str, files: Mapping[str, str]) -> bool:
    """Return whether a package is installed in the scene's environment with exactly these files of its wheel."""
    folder = packages_of(scene.folder / "env")
    if folder is None or scene.altered(package):
        return False
    place = folder.relative_to(scene.folder)
    return all(scene.read(str(place / path)) == text for path, text in files.items())
