"""uv's command lines, and the project that it resolves."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import tomli_w
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assistant.host.files import write_whole
from assistant.install.packages import Resolution, read_lock
from assistant.model.plan import Plan, of_torch_family

LOCK = "pylock.toml"  # uv takes no other name

KERNEL = "ipykernel"  # an environment without it cannot be a kernel, and JupyterLab could not offer it


def find_uv() -> str:
    """Find the uv that was installed with the assistant."""
    from uv import find_uv_bin  # noqa: PLC0415 - looks through the environment's folders only when needed

    return str(find_uv_bin())


def project_file(plan: Plan) -> str:
    """Write the project that uv resolves: the plan's requirements, with torch's family tied to its own index."""
    project = {
        "name": "environment",
        "version": "0",
        "requires-python": f"=={_minor(plan.python)}.*",
        "dependencies": [*plan.requirements, KERNEL],
    }
    own: dict[str, object] = {
        "workspace": {}
    }  # of itself: a project in a folder above could send its members to other indexes
    if not plan.index_url:
        return tomli_w.dumps({"project": project, "tool": {"uv": own}})
    index = {"name": "torch", "url": plan.index_url, "explicit": True}
    sources = {name: {"index": "torch"} for name in _family(plan.requirements)}
    return tomli_w.dumps({"project": project, "tool": {"uv": {**own, "index": [index], "sources": sources}}})


def preferred(packages: Mapping[str, str]) -> str:
    """Write a lock that names what an environment holds already: uv keeps these versions where they fit."""
    rows = [{"name": name, "version": version} for name, version in packages.items()]
    return tomli_w.dumps({"lock-version": "1.0", "created-by": "assistant", "packages": rows})


def _pip(verb: str) -> list[str]:
    return [find_uv(), "pip", verb, "--no-progress", "--no-build"]  # no code of a package runs


@dataclass(frozen=True)
class Uv:
    """uv; `arguments` are what it is told beside its variables."""

    arguments: tuple[str, ...] = ()

    def venv(self, python: str, target: Path) -> list[str]:
        """Make an empty environment."""
        return [find_uv(), "venv", "--no-progress", "--no-project", "--allow-existing", "--python", python, str(target)]

    def install(self, python: Path, file: Path, staged: Path | None = None) -> list[str]:
        """Install exactly what a requirements file names, hashes checked; into a folder `staged` where one is given."""
        where = ["--prefix", str(staged)] if staged else []
        words = ["--python", str(python), *where, "--no-deps", "--requirements", str(file)]
        return [*_pip("install"), *words, *self.arguments]

    def build(self, python: str, archive: Path, folder: Path) -> list[str]:
        """Build the wheel of one source archive into a folder; what its build needs comes as wheels only."""
        words = ["--no-progress", "--no-build", "--no-sources", "--python", python, "--out-dir", str(folder)]
        return [find_uv(), "build", "--wheel", *words, str(archive), *self.arguments]

    def resolve(
        self, python: str, plan: Plan, folder: Path, keep: Mapping[str, str], constraints: Path | None
    ) -> list[str]:
        """Resolve a plan into a `pylock.toml` (PEP 751) in a folder; versions in `keep` are kept where they fit."""
        project, lock = folder / "pyproject.toml", folder / LOCK
        write_whole(project, project_file(plan))
        if keep:
            write_whole(lock, preferred(keep))
        words = ["--no-header", "--quiet", "--format", "pylock.toml", "-o", str(lock)]
        words += ["--constraints", str(constraints)] if constraints else []
        return [*_pip("compile"), str(project), "--python", python, *words, *self.arguments]

    def resolution(self, folder: Path) -> Resolution:
        """Read what `resolve` wrote."""
        return read_lock((folder / LOCK).read_text(encoding="utf-8"))

    def own_cache(self, folder: Path) -> dict[str, str]:
        """Give the variables that make it use a cache in a folder, in place of one that may be damaged."""
        return {"UV_CACHE_DIR": str(folder / "cache")}


def _family(requirements: tuple[str, ...]) -> list[str]:
    """Name the requirements that come from torch's own index."""
    return [name for line in requirements if of_torch_family(name := canonicalize_name(Requirement(line).name))]


def _minor(python: str) -> str:
    return ".".join(re.findall(r"\d+", python)[:2])
