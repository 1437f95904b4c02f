"""pip's command lines and its report, for those who may not use uv."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import canonicalize_name

from assistant.install.packages import Package, Resolution
from assistant.install.uv import KERNEL
from assistant.model.plan import Plan
from assistant.privacy import without_credentials

GUARD = Path(__file__).with_name("programs") / "wheels_only.py"
QUIETLY = ("--no-input", "--disable-pip-version-check")
ONLY_WHEELS = ("--only-binary", ":all:")
REPORT = "report.json"


@dataclass(frozen=True)
class Pip:
    """pip; `by` is the Python whose pip works for one that has none, "" where it has its own."""

    by: str = ""

    def venv(self, python: str, target: Path) -> list[str]:
        """Make an environment with the standard library's own means; it brings pip along."""
        return [python, "-m", "venv", str(target)]

    def install(self, python: Path, file: Path, staged: Path | None = None) -> list[str]:
        """Install exactly what a requirements file names, hashes checked; into a folder `staged` where one is given."""
        where = ["--ignore-installed", "--prefix", str(staged)] if staged else []
        words = ["--no-compile", "--no-deps", "--no-warn-script-location", "-r", str(file)]
        return [*self._pip(str(python)), "install", *ONLY_WHEELS, *where, *words]

    def build(self, python: str, archive: Path, folder: Path) -> list[str]:
        """Build the wheel of one source archive into a folder; what its build needs comes as wheels only."""
        return [*self._pip(python), "wheel", *ONLY_WHEELS, "--no-deps", "--wheel-dir", str(folder), str(archive)]

    def resolve(
        self, python: str, plan: Plan, folder: Path, keep: Mapping[str, str], constraints: Path | None
    ) -> list[str]:
        """Resolve a plan into a report (JSON) without installing anything; an index of torch's own goes before pip's.

        Only wheels are looked at, whatever a package asks for. pip cannot tie a package to an index; torch's builds win
        all the same, as their versions carry a local part. It knows no mere preferences, so what an environment holds
        is kept only by the user's own pins.
        """
        del keep
        index = ["--extra-index-url", plan.index_url] if plan.index_url else []
        index += ["--constraint", str(constraints)] if constraints else []
        asked = [self.by or python, str(GUARD), *(["--for", python] if self.by else []), *QUIETLY, "install"]
        asked += [*ONLY_WHEELS, "--dry-run", "--ignore-installed", "--quiet", "--report", str(folder / REPORT)]
        return [*asked, *index, "--", *plan.requirements, KERNEL]

    def resolution(self, folder: Path) -> Resolution:
        """Read what `resolve` wrote."""
        return read_report((folder / REPORT).read_text(encoding="utf-8"))

    def own_cache(self, folder: Path) -> dict[str, str]:
        """Give nothing: pip's cache holds whole wheels, whose hashes it checks."""
        del folder
        return {}

    def _pip(self, python: str) -> list[str]:
        """Call a Python's own pip, or that of another for it."""
        for_it = ["--python", python] if self.by else []
        return [self.by or python, "-m", "pip", *for_it, *QUIETLY]


# pip install --report: {"install": [{"metadata": {"name": "six", "version": "1.17.0"}, "download_info":
#   {"url": "https://…/six-1.17.0-py2.py3-none-any.whl", "archive_info": {"hashes": {"sha256": "…"}}}}]}
def read_report(text: str) -> Resolution:
    """Read the packages that `pip install --report` told, sorted; none from another text."""
    try:
        packages = [
            Package(
                name=canonicalize_name(item["metadata"]["name"]),
                version=item["metadata"]["version"],
                url=without_credentials(item["download_info"]["url"]),
                sha256=item["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256", ""),
            )
            for item in json.loads(text)["install"]
        ]
    except (ValueError, LookupError, TypeError, AttributeError):
        packages = []
    return Resolution(lock="", packages=tuple(sorted(packages, key=lambda package: package.name)))
