"""A resolved plan: every package with version, address, size and hash; and how it is read from a lock file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

from packaging.pylock import Pylock

from assistant.model.record import Record
from assistant.privacy import without_credentials


class Package(Record, frozen=True):
    """One package; `size` in bytes, None where no source gives it; `sha256` "" likewise; no password in `url`."""

    name: str
    version: str
    url: str
    size: int | None = None
    sha256: str = ""


class Resolution(Record, frozen=True):
    """A resolved plan: the lock file's text (PEP 751) and the packages in it."""

    lock: str
    packages: tuple[Package, ...]

    @property
    def download(self) -> int:
        """The sum of the known sizes, in bytes."""
        return sum(package.size or 0 for package in self.packages)

    @property
    def versions(self) -> dict[str, str]:
        """The version of each package."""
        return {package.name: package.version for package in self.packages}

    def changes(self, installed: Mapping[str, str]) -> list[Package]:
        """List the packages that are not installed in the resolved version; `installed` maps names to versions."""
        return [package for package in self.packages if installed.get(package.name) != package.version]


# `uv pip compile --format pylock.toml` writes for each package (PEP 751), beside its name and version:
# wheels = [{ url = "https://…/numpy-2.4.6-cp311-….whl", size = 16000000, hashes = { sha256 = "…" } }]
def read_lock(text: str) -> Resolution:
    """Read a `pylock.toml`; the first wheel stands for the package, else its source archive; no password is kept."""
    text = without_credentials(text)
    packages = []
    for one in Pylock.from_dict(tomllib.loads(text)).packages:
        if file := next(iter(one.wheels or ()), one.sdist):
            url = file.url or Path(file.path or "").absolute().as_uri()
            sha256 = file.hashes.get("sha256", "")
            packages.append(Package(name=one.name, version=str(one.version), url=url, size=file.size, sha256=sha256))
    return Resolution(lock=text, packages=tuple(packages))
