"""The two programs that can install packages, behind one protocol: uv, and pip where uv may not be used."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import tomli_w
from packaging.utils import canonicalize_name

from assistant.catalog.companions import carried_by_torch_index, required_by_torch
from assistant.catalog.rows import CORE
from assistant.host.files import write_temporary
from assistant.host.uv import find_uv
from assistant.install.packages import Package, Resolution, read_lock
from assistant.model.plan import Plan
from assistant.model.requirement import name_of, requirement
from assistant.privacy import without_credentials

KERNEL = "ipykernel"  # without it an environment cannot be a kernel, and JupyterLab could not offer it
LOCK = "pylock.toml"  # uv accepts only `pylock.toml` and `pylock.NAME.toml`, as PEP 751 says
VERSIONS = "versions.txt"  # uv tells by the ending that these are requirements
REPORT = "report.json"
WHEELS_ONLY = Path(__file__).with_name("programs") / "wheels_only.py"
QUIETLY = ("--no-input", "--disable-pip-version-check")
ONLY_BINARY = ("--only-binary", ":all:")


class Backend(Protocol):
    """A program that installs packages: its command lines, and how it reports what it resolved."""

    def venv(self, python: str, target: Path) -> list[str]:
        """Return the command that makes an environment."""

    def install(self, python: Path, file: Path, staged: Path | None = None) -> list[str]:
        """Return the command that installs exactly what a requirements file names, hashes checked.

        It installs into the folder `staged` where one is given.
        """

    def resolve(
        self, python: str, plan: Plan, folder: Path, keep: Mapping[str, str], constraints: Path | None
    ) -> list[str]:
        """Return the command that resolves a plan to wheels, and writes the result into a folder.

        The versions in `keep` are kept where they fit; those in the file `constraints` must hold.
        """

    def resolution(self, folder: Path) -> Resolution:
        """Read what the command of `resolve` wrote."""

    def own_cache(self, folder: Path) -> dict[str, str]:
        """Return the variables that make it work without its cache, which may be damaged; {} where it needs none."""


@dataclass(frozen=True)
class Uv:
    """uv; `arguments` are what it needs beside its variables, `also` what every environment gets beside its plan.

    `elsewhere` names another machine to resolve for.
    """

    arguments: tuple[str, ...] = ()
    also: tuple[str, ...] = (KERNEL,)
    elsewhere: tuple[str, ...] = ()

    def venv(self, python: str, target: Path) -> list[str]:
        """Return the command that makes an empty environment."""
        return [find_uv(), "venv", "--no-progress", "--no-project", "--allow-existing", "--python", python, str(target)]

    def install(self, python: Path, file: Path, staged: Path | None = None) -> list[str]:
        """Return the command that installs a requirements file."""
        where = ["--prefix", str(staged)] if staged else []
        words = ["--python", str(python), *where, "--no-deps", "--requirements", str(file)]
        return [*self._pip("install"), *words, *self.arguments]

    def resolve(
        self, python: str, plan: Plan, folder: Path, keep: Mapping[str, str], constraints: Path | None
    ) -> list[str]:
        """Return the command that resolves a plan into a `pylock.toml` (PEP 751)."""
        lock = folder / LOCK
        if keep:
            # uv keeps the versions of a lock file that is there already, where they fit.
            rows = [{"name": name, "version": version} for name, version in keep.items()]
            write_temporary(lock, tomli_w.dumps({"lock-version": "1.0", "created-by": "assistant", "packages": rows}))
        words = ["--format", "pylock.toml", "-o", str(lock)]
        words += ["--constraints", str(constraints)] if constraints else []
        return self._compile(python, plan, folder, words)

    def try_out(self, python: str, plan: Plan, folder: Path) -> list[str]:
        """Return the command that resolves a plan into a file `VERSIONS`, which is read in no time.

        It has a line "numpy==2.4.6" for each package that an index has.
        """
        return self._compile(python, plan, folder, ["--no-annotate", "-o", str(folder / VERSIONS)])

    def resolution(self, folder: Path) -> Resolution:
        """Read the lock file."""
        return read_lock((folder / LOCK).read_text(encoding="utf-8"))

    def own_cache(self, folder: Path) -> dict[str, str]:
        """Return the variable that names another cache."""
        return {"UV_CACHE_DIR": str(folder / "cache")}

    def _compile(self, python: str, plan: Plan, folder: Path, words: list[str]) -> list[str]:
        project = folder / "pyproject.toml"
        write_temporary(project, project_file(plan, self.also))
        words = ["--no-header", "--quiet", *words, *_bounds(plan, folder), *self.elsewhere]
        return [*self._pip("compile"), str(project), "--python", python, *words, *self.arguments]

    def _pip(self, verb: str) -> list[str]:
        return [find_uv(), "pip", verb, "--no-progress", "--no-build"]  # no code of a package runs


def project_file(plan: Plan, also: tuple[str, ...] = (KERNEL,)) -> str:
    """Write the project that uv resolves: the plan's requirements, with torch's family tied to its own index."""
    minor = ".".join(re.findall(r"\d+", plan.python)[:2])  # "3.13t" is 3.13 here
    project = {
        "name": "environment",
        "version": "0",
        "requires-python": f"=={minor}.*",
        "dependencies": [*plan.requirements, *also],
    }
    # A workspace of its own: a project in a folder above could send its members to other indexes.
    tables: dict[str, object] = {"workspace": {}}
    if plan.index_url:
        tables["index"] = [{"name": "torch", "url": plan.index_url, "explicit": True}]
        tables["sources"] = {name: {"index": "torch"} for name in tied(plan)}
    return tomli_w.dumps({"project": project, "tool": {"uv": tables}})


def tied(plan: Plan) -> list[str]:
    """Return the canonical names of what a plan takes from torch's own index: its family, and what else it carries.

    A file that is named by its address comes from there, and the plan's own index must be torch's.
    """
    names = dict.fromkeys(name_of(line) for line in plan.requirements if not requirement(line).url)
    listed = (name for name in names if carried_by_torch_index(name, plan.variant))
    return [name for name in listed if name not in plan.apart and plan.index_url]


def _bounds(plan: Plan, folder: Path) -> list[str]:
    """Write what a project says beside its requirements, and return uv's words for it.

    What stands in for torch's own needs could not be tied to torch's index, and the plan names torch's version itself.
    """
    found = []
    overrides = [line for line in plan.overrides if not _is_torchs(name_of(line))]
    for option, lines in (("--constraints", plan.constraints), ("--overrides", overrides)):
        if lines:
            file = folder / f"{option.strip('-')}.txt"
            write_temporary(file, "".join(f"{line}\n" for line in lines))
            found += [option, str(file)]
    return found


def _is_torchs(name: str) -> bool:
    return name in CORE or required_by_torch(name)


@dataclass(frozen=True)
class Pip:
    """pip; `by` is the Python whose pip works for one that has none, "" where it has its own."""

    by: str = ""
    also: tuple[str, ...] = (KERNEL,)

    def venv(self, python: str, target: Path) -> list[str]:
        """Return the command of the standard library that makes an environment, with pip in it."""
        return [python, "-m", "venv", str(target)]

    def install(self, python: Path, file: Path, staged: Path | None = None) -> list[str]:
        """Return the command that installs a requirements file."""
        where = ["--ignore-installed", "--prefix", str(staged)] if staged else []
        words = ["--no-compile", "--no-deps", "--no-warn-script-location", "-r", str(file)]
        return [*self._pip(str(python)), "install", *ONLY_BINARY, *where, *words]

    def resolve(
        self, python: str, plan: Plan, folder: Path, keep: Mapping[str, str], constraints: Path | None
    ) -> list[str]:
        """Return the command that resolves a plan into a report (JSON) and installs nothing.

        Only wheels are looked at, whatever a package asks for. pip cannot tie a package to an index; torch's builds win
        all the same, as their versions carry a local part ("+cu126"). It knows no mere preferences, so what an
        environment holds is kept only by the user's own pins.
        """
        del keep
        index = ["--extra-index-url", plan.index_url] if plan.index_url else []
        index += ["--constraint", str(constraints)] if constraints else []
        if plan.constraints:
            file = folder / "constraints.txt"
            write_temporary(file, "".join(f"{line}\n" for line in plan.constraints))
            index += ["--constraint", str(file)]
        start = [self.by or python, str(WHEELS_ONLY), *(["--for", python] if self.by else []), *QUIETLY, "install"]
        start += [*ONLY_BINARY, "--dry-run", "--ignore-installed", "--quiet", "--report", str(folder / REPORT)]
        return [*start, *index, "--", *plan.requirements, *self.also]

    def resolution(self, folder: Path) -> Resolution:
        """Read the report."""
        return read_report((folder / REPORT).read_text(encoding="utf-8"))

    def own_cache(self, folder: Path) -> dict[str, str]:
        """Return nothing: pip's cache holds whole wheels, whose hashes it checks."""
        del folder
        return {}

    def _pip(self, python: str) -> list[str]:
        """Return the words that start a Python's own pip, or another Python's pip for it."""
        for_it = ["--python", python] if self.by else []
        return [self.by or python, "-m", "pip", *for_it, *QUIETLY]


# pip install --report: {"install": [{"metadata": {"name": "six", "version": "1.17.0"}, "download_info":
#   {"url": "https://…/six-1.17.0-py2.py3-none-any.whl", "archive_info": {"hashes": {"sha256": "…"}}}}]}
def read_report(text: str) -> Resolution:
    """Read the packages of a report of `pip install --report`, sorted by name; none from another text."""
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
