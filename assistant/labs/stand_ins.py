"""Small wheels with the real names and versions, in folders that installers read as package indexes.

The torch in them is a stand-in of a few kilobytes that makes torch's own checks: which build it is, whether the
machine's driver is new enough for it, and whether it holds code for the card. What the builds hold is the catalogue's.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from pathlib import Path

from assistant.catalog import Catalog, TorchWheel, number
from assistant.host.files import write_whole

PLATFORM = "linux_x86_64"
OLDEST = (2, 7)  # the release line from which on the indexes hold torch
_CODE = Path(__file__).with_name("programs") / "stand_in" / "torch"
_SUMMARY = "A stand-in for torch in a lab: it checks build, driver and card as torch does, and computes nothing else"


def wheel(name: str, version: str, files: Mapping[str, str], *, summary: str = "", entry_points: str = "") -> bytes:
    """Return a wheel for any Python with these files; the same content gives the same bytes."""
    about = f"{name.replace('-', '_')}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    contents = {
        **files,
        f"{about}/METADATA": metadata + (f"Summary: {summary}\n" if summary else ""),
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


def _digest(content: bytes) -> str:
    """Return a hash in the form of RECORD: https://packaging.python.org/specifications/recording-installed-packages/."""
    return urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def add_to_index(index: Path, name: str, wheels: Mapping[str, bytes]) -> None:
    """Write a project's wheels, by version, into an index and list them with their hashes."""
    folder = index / name
    folder.mkdir(parents=True, exist_ok=True)
    links = []
    for version, content in wheels.items():
        file = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
        write_whole(folder / file, content)
        sha256 = hashlib.sha256(content).hexdigest()
        links.append(f'<a href="{file.replace("+", "%2B")}#sha256={sha256}">{file}</a>')
    write_whole(folder / "index.html", "\n".join(["<!DOCTYPE html>", *links, ""]))


def torch_files(version: str, build: str, catalog: Catalog) -> dict[str, str]:
    """Return the stand-in's files by name for a version and the build that it is, such as "cu130" or "cpu"."""
    files = {f"torch/{path.name}": path.read_text("utf-8") for path in sorted(_CODE.glob("*.py"))}
    known = {one.variant: one for one in catalog.wheels(PLATFORM, None) if one.version == version.partition("+")[0]}
    held = known.get(build)
    driver = catalog.driver(build) if build.startswith("cu") else None
    cuda = f"{build[2:-1]}.{build[-1]}" if driver else None
    files["torch/version.py"] = f"__version__ = {version!r}\ncuda = {cuda!r}\nhip = None\n"
    files["torch/build.py"] = (
        '"""What the build holds: the oldest driver that runs it, code for cards, and PTX for newer ones."""\n\n'
        f"LEAST_DRIVER = {driver and driver.linux!r}\nCODE = {list(held.sm) if held else []}\n"
        f"PTX = {held.ptx if held else None}\n"
    )
    return files


def torch_indexes(catalog: Catalog) -> dict[str, dict[str, bytes]]:
    """Return the wheels of PyTorch's indexes ("cpu", "cu130", …) and of PyPI ("pypi") by index and version."""
    found: dict[str, dict[str, bytes]] = {}
    for index, version, build in _builds(catalog):
        content = wheel("torch", version, torch_files(version, build, catalog), summary=_SUMMARY)
        found.setdefault(index, {})[version] = content
    return found


def _builds(catalog: Catalog) -> Iterator[tuple[str, str, str]]:
    """Yield the index, the version and the build of each wheel for the CPU and for CUDA."""
    for one in catalog.wheels(PLATFORM, None):
        if one.minor >= OLDEST and _offered(one):
            yield one.variant, f"{one.version}+{one.variant}", one.variant
    for release in catalog.releases:
        if number(release.version) >= OLDEST:
            yield "pypi", release.version, catalog.build_of(release.version, "pypi", PLATFORM)


def _offered(one: TorchWheel) -> bool:
    return one.variant == "cpu" or (one.variant.startswith("cu") and bool(one.sm))
