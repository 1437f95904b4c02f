"""What exactly would be installed: every package with version, address and size, before anything is fetched."""

from __future__ import annotations

import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path

from assistant.host.index import wheel_sizes
from assistant.i18n import _
from assistant.install.uv import Installer, compile_command, project_file
from assistant.model.errors import WorkFailed
from assistant.model.plan import Plan
from assistant.model.record import Record

__all__ = ["Package", "Resolution", "resolve"]


class Package(Record, frozen=True):
    """One package of the lock; `size` in bytes, None where no source tells it."""

    name: str
    version: str
    url: str
    size: int | None = None


class Resolution(Record, frozen=True):
    """A solved plan: the lock file's text (PEP 751) and the packages in it."""

    lock: str
    packages: tuple[Package, ...]

    @property
    def download(self) -> int:
        """Sum the known sizes, in bytes."""
        return sum(package.size or 0 for package in self.packages)


def resolve(plan: Plan, installer: Installer) -> Resolution:
    """Solve a plan for the installer's interpreter against the sources that its variables name.

    Raises `WorkFailed` with the resolver's own last lines when the sources cannot be reached or nothing fits.
    """
    with tempfile.TemporaryDirectory(prefix="assistant-") as folder:
        project, lock = Path(folder) / "pyproject.toml", Path(folder) / "pylock.toml"
        project.write_text(project_file(plan), encoding="utf-8")
        said: list[str] = []
        if installer.run(compile_command(installer.python, project, lock), said.append):
            raise WorkFailed(unsolved(said), hint=_("Check the network and the index, or choose another plan."))
        text = lock.read_text(encoding="utf-8")
    return Resolution(lock=text, packages=_with_sizes(read_lock(text)))


def read_lock(text: str) -> tuple[Package, ...]:
    """Read the packages of a `pylock.toml`; the first wheel stands for the package, else its source archive."""
    return tuple(
        Package(name=row["name"], version=row["version"], url=_address(files[0]), size=files[0].get("size"))
        for row in tomllib.loads(text)["packages"]
        if (files := [*row.get("wheels", ()), *([row["sdist"]] if "sdist" in row else ())])
    )


def unsolved(said: list[str]) -> str:
    """Say in one sentence why uv found no solution, from its own words."""
    words = " ".join(line.strip() for line in said if line.strip())
    if any(sign in words.lower() for sign in ("dns error", "error sending request", "failed to fetch", "connect")):
        return _("The package index cannot be reached: {reason}").format(reason=words[:400])
    return _("No set of packages fits this plan: {reason}").format(reason=words[:600])


def _address(file: Mapping[str, object]) -> str:
    return str(file.get("url") or Path(str(file["path"])).absolute().as_uri())


def _with_sizes(packages: tuple[Package, ...]) -> tuple[Package, ...]:
    sizes = wheel_sizes([package.url for package in packages if package.size is None])
    return tuple(Package(name=p.name, version=p.version, url=p.url, size=p.size or sizes.get(p.url)) for p in packages)
