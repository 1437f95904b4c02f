"""What exactly would be installed: every package with version, address, size and hash, before anything is fetched."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

from packaging.utils import canonicalize_name

from assistant.host.index import wheel_sizes
from assistant.host.redact import without_credentials
from assistant.i18n import _
from assistant.install import pip
from assistant.install.installer import Installer
from assistant.install.scratch import scratch
from assistant.install.uv import compile_command, preferred, project_file
from assistant.install.validate import check_index_url, check_requirement
from assistant.model.errors import WorkFailed
from assistant.model.plan import Plan
from assistant.model.record import Record, replace

__all__ = ["Package", "Resolution", "resolve"]


class Package(Record, frozen=True):
    """One package; `size` in bytes, None where no source tells it; `sha256` "" likewise; no password in `url`."""

    name: str
    version: str
    url: str
    size: int | None = None
    sha256: str = ""


class Resolution(Record, frozen=True):
    """A solved plan: the lock file's text (PEP 751; "" from pip) and the packages in it."""

    lock: str
    packages: tuple[Package, ...]

    @property
    def download(self) -> int:
        """Sum the known sizes, in bytes."""
        return sum(package.size or 0 for package in self.packages)

    @property
    def versions(self) -> dict[str, str]:
        """Give the version of each package."""
        return {package.name: package.version for package in self.packages}


def resolve(plan: Plan, installer: Installer, keep: Mapping[str, str] | None = None) -> Resolution:
    """Solve a plan for the installer's interpreter against the sources that its variables name.

    The versions in `keep`, those that an environment holds already, are kept where they fit.
    Raises `WorkFailed` with the resolver's own last lines when the sources cannot be reached or nothing fits, and
    `BadInput` before for an index or a requirement that is none.
    """
    if plan.index_url:
        check_index_url(plan.index_url)
    for line in plan.requirements:
        check_requirement(line)
    with scratch() as folder:
        by = _by_uv if installer.program == "uv" else _by_pip
        found = by(plan, installer, folder, keep or {})
    asked = [package.url for package in found.packages if package.size is None]
    indexes = (*installer.index_urls, *filter(None, [plan.index_url]))
    sizes = wheel_sizes(asked, network=installer.settings.network, index_urls=indexes)
    known = (replace(package, size=package.size or sizes.get(package.url)) for package in found.packages)
    return replace(found, packages=tuple(known))


def _by_uv(plan: Plan, installer: Installer, folder: Path, keep: Mapping[str, str]) -> Resolution:
    project, lock = folder / "pyproject.toml", folder / "pylock.toml"
    project.write_text(project_file(plan), encoding="utf-8")
    if keep:
        lock.write_text(preferred(keep), encoding="utf-8")
    _ask(installer, [*compile_command(installer.python, project, lock), *installer.arguments], folder)
    text = without_credentials(lock.read_text(encoding="utf-8"), "")
    return Resolution(lock=text, packages=read_lock(text))


def _by_pip(plan: Plan, installer: Installer, folder: Path, keep: Mapping[str, str]) -> Resolution:
    """Let pip solve; it knows no mere preferences, so what an environment holds is kept only by the user's own pins."""
    del keep
    report = folder / "report.json"
    _ask(installer, pip.report_command(installer.python, plan, report, installer.pip), folder)
    rows = pip.read_report(report.read_text(encoding="utf-8"))
    packages = [
        Package(name=canonicalize_name(name), version=version, url=without_credentials(url, ""), sha256=digest)
        for name, version, url, digest in rows
    ]
    return Resolution(lock="", packages=tuple(sorted(packages, key=lambda package: package.name)))


def _ask(installer: Installer, argv: list[str], folder: Path) -> None:
    said: list[str] = []
    if installer.call(argv, said, folder):
        raise WorkFailed(unsolved(said), hint=_("Check the network and the index, or choose another plan."))


def read_lock(text: str) -> tuple[Package, ...]:
    """Read the packages of a `pylock.toml`; the first wheel stands for the package, else its source archive."""
    return tuple(
        Package(
            name=row["name"],
            version=row["version"],
            url=_address(files[0]),
            size=files[0].get("size"),
            sha256=files[0].get("hashes", {}).get("sha256", ""),
        )
        for row in tomllib.loads(text)["packages"]
        if (files := [*row.get("wheels", ()), *([row["sdist"]] if "sdist" in row else ())])
    )


def unsolved(said: list[str]) -> str:
    """Say in one sentence why no solution was found, from the resolver's own words."""
    words = " ".join(line.strip() for line in said if line.strip())
    if any(sign in words.lower() for sign in ("dns error", "error sending request", "failed to fetch", "connect")):
        return _("The package index cannot be reached: {reason}").format(reason=words[:400])
    reason = words.rpartition("dependencies cause: ")[2]  # without uv's own heading
    return _("No set of packages fits this plan: {reason}").format(reason=reason[:600])


def _address(file: Mapping[str, object]) -> str:
    return str(file.get("url") or Path(str(file["path"])).absolute().as_uri())
