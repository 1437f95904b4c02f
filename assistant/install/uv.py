"""uv's command lines, and the project that it resolves."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import tomli_w

from assistant.catalog.companions import carried_by_torch_index, required_by_torch
from assistant.catalog.rows import CORE
from assistant.host.files import write_temporary
from assistant.host.uv import find_uv
from assistant.model.plan import Plan
from assistant.model.requirement import name_of, requirement

KERNEL = "ipykernel"  # without it an environment cannot be a kernel, and JupyterLab could not offer it
LOCK = "pylock.toml"  # uv accepts only `pylock.toml` and `pylock.NAME.toml`, as PEP 751 says
VERSIONS = "versions.txt"  # uv tells by the ending that these are requirements


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
        """Return the command that installs exactly what a requirements file names, hashes checked.

        It installs into the folder `staged` where one is given.
        """
        where = ["--prefix", str(staged)] if staged else []
        words = ["--python", str(python), *where, "--no-deps", "--requirements", str(file)]
        return [*self._pip("install"), *words, *self.arguments]

    def resolve(
        self, python: str, plan: Plan, folder: Path, keep: Mapping[str, str], constraints: Path | None
    ) -> list[str]:
        """Return the command that resolves a plan to wheels, into a `pylock.toml` (PEP 751) in a folder.

        The versions in `keep` are kept where they fit; those in the file `constraints` must hold.
        """
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

    def _compile(self, python: str, plan: Plan, folder: Path, words: list[str]) -> list[str]:
        project = folder / "pyproject.toml"
        write_temporary(project, project_file(plan, self.also))
        words = ["--no-header", "--quiet", *words, *_bounds(plan, folder), *self.elsewhere]
        return [*self._pip("compile"), str(project), "--python", python, *words, *self.arguments]

    def _pip(self, verb: str) -> list[str]:
        return [find_uv(), "pip", verb, "--no-progress", "--no-build"]  # no code of a package runs


def own_cache(folder: Path) -> dict[str, str]:
    """Return the variable that makes uv work without its cache, which may be damaged."""
    return {"UV_CACHE_DIR": str(folder / "cache")}


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
