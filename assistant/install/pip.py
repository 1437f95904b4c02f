"""pip's command lines and its report, for those who may not use uv."""

from __future__ import annotations

import json
from pathlib import Path

from assistant.install.uv import KERNEL
from assistant.model.plan import Plan

__all__ = ["build_command", "install_command", "read_report", "report_command", "venv_command"]


GUARD = Path(__file__).with_name("programs") / "wheels_only.py"
QUIETLY = ("--no-input", "--disable-pip-version-check")
ONLY_WHEELS = ("--only-binary", ":all:")


def venv_command(python: str, target: Path) -> list[str]:
    """Make an environment with the standard library's own means; it brings pip along."""
    return [python, "-m", "venv", str(target)]


def install_command(python: Path, file: Path, staged: Path | None = None, by: str = "") -> list[str]:
    """Install exactly what a requirements file names, hashes checked; into a folder `staged` where one is given."""
    where = ["--ignore-installed", "--prefix", str(staged)] if staged else []
    return [
        *_pip(str(python), by),
        "install",
        *ONLY_WHEELS,
        *where,
        "--no-compile",
        "--no-deps",
        "--no-warn-script-location",
        "-r",
        str(file),
    ]


def report_command(python: str, plan: Plan, report: Path, by: str = "", constraints: Path | None = None) -> list[str]:
    """Resolve a plan into a report (JSON) without installing anything; an index of torch's own goes before pip's.

    Only wheels are looked at, whatever a package asks for. `constraints` is a file of versions that must hold. pip
    cannot tie a package to an index; torch's builds win all the same, as their versions carry a local part.
    """
    index = ["--extra-index-url", plan.index_url] if plan.index_url else []
    index += ["--constraint", str(constraints)] if constraints else []
    asked = [by or python, str(GUARD), *(["--for", python] if by else []), *QUIETLY, "install", *ONLY_WHEELS]
    asked += ["--dry-run", "--ignore-installed", "--quiet", "--report", str(report)]
    return [*asked, *index, "--", *plan.requirements, KERNEL]


def build_command(python: str, archive: Path, folder: Path, by: str = "") -> list[str]:
    """Build the wheel of one source archive into a folder; what its build needs comes as wheels only."""
    return [*_pip(python, by), "wheel", *ONLY_WHEELS, "--no-deps", "--wheel-dir", str(folder), str(archive)]


def read_report(text: str) -> list[tuple[str, str, str, str]]:
    """Read name, version, address and SHA-256 of each package that `pip install --report` told; [] for another text."""
    try:
        items = json.loads(text)["install"]
        return [
            (
                item["metadata"]["name"],
                item["metadata"]["version"],
                item["download_info"]["url"],
                item["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256", ""),
            )
            for item in items
        ]
    except (ValueError, LookupError, TypeError, AttributeError):
        return []


def _pip(python: str, by: str) -> list[str]:
    """Call a Python's own pip, or that of another (`by`) for it."""
    for_it = ["--python", python] if by else []
    return [by or python, "-m", "pip", *for_it, *QUIETLY]
