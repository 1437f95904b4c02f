"""The wheels that indexes list, read off their file names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from assistant.catalog.metadata import Metadata

_PLATFORMS = {
    r"manylinux.*_x86_64|linux_x86_64": "linux_x86_64",
    r"manylinux.*_aarch64|linux_aarch64": "linux_aarch64",
    "win_amd64": "windows_amd64",
    "win_arm64": "windows_arm64",
    r"macosx_.*_arm64": "macos_arm64",
    r"macosx_.*_x86_64": "macos_x86_64",
}
ANY = "any"  # the platform of a wheel without code of a machine
_LEGACY = {"manylinux1": "2.5", "manylinux2010": "2.12", "manylinux2014": "2.17"}  # https://peps.python.org/pep-0600/

Facts = Mapping[str, Metadata]  # by file name


class Seen(NamedTuple):
    """A wheel that an index lists: the variant of that index ("pypi" for PyPI), its file name, size in bytes, place."""

    source: str
    filename: str
    size: int | None = None
    url: str = ""


class File(NamedTuple):
    """A wheel for one platform; `floor` is the glibc or macOS that its tag asks for, "" where it does not tell.

    `python` is a tag such as "312" or "313t", "3" for any; with `later`, newer Pythons with a lock take it, too.
    """

    package: str
    version: str
    platform: str
    python: str
    floor: str
    seen: Seen
    later: bool = False

    def pythons(self, known: Iterable[str]) -> tuple[str, ...]:
        """Return the tags that it serves, of those that are known where it serves later ones, too."""
        if not self.later:
            return (self.python,)
        return tuple(tag for tag in known if tag.isdigit() and int(tag[1:]) >= int(self.python[1:] or 0))

    @property
    def variant(self) -> str:
        """The variant that the catalogue files it under: PyPI's and torch's own index have the same one for macOS."""
        return "pypi" if self.platform.startswith("macos") else self.seen.source


def files_of(seen: Iterable[Seen]) -> list[File]:
    """Read file names; pre-releases and platforms that the catalogue does not keep give nothing."""
    return [file for wheel in seen for file in _files(wheel)]


def _files(wheel: Seen) -> list[File]:
    try:
        name, version, _build, tags = parse_wheel_filename(wheel.filename)
    except InvalidWheelFilename:
        return []
    found = {}
    for tag in () if version.is_prerelease else tags:
        platform = next((key for pattern, key in _PLATFORMS.items() if re.fullmatch(pattern, tag.platform)), None)
        python = re.sub(r"^(cp|py)", "", tag.interpreter) + ("t" if tag.abi.endswith("t") else "")
        later = tag.abi == "abi3" or tag.interpreter == "py3"  # cp310-abi3: https://docs.python.org/3/c-api/stable.html
        # manylinux_2_28 asks for glibc 2.28, macosx_14_0 for macOS 14.0; linux_x86_64 does not say.
        numbers = re.search(r"_(\d+)_(\d+)_", tag.platform)
        floor = f"{numbers[1]}.{numbers[2]}" if numbers else _LEGACY.get(tag.platform.partition("_")[0], "")
        platform = ANY if tag.platform == ANY else platform
        if platform and python[:1].isdigit():
            found[platform] = File(name, version.public, platform, python, floor, wheel, later)
    return list(found.values())
