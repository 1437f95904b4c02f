"""Lock files: what the project asks for itself, and the versions that its packages were locked at."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from packaging.pylock import Package, Pylock, PylockValidationError
from packaging.utils import canonicalize_name

from assistant.catalog.companions import carried_by_torch_index
from assistant.catalog.tables import Table
from assistant.i18n import _
from assistant.model.record import Record, from_json
from assistant.model.visible import printable
from assistant.project.gathering import Gathering
from assistant.project.pyproject import read_pyproject
from assistant.project.source import Source, is_file, refused, rows, table, toml

_LOCAL = re.compile(r"\+.*")  # 2.9.1+cu128: the plan chooses the build


class LockTables(Record, frozen=True):
    """What a build of torch brings by itself, as patterns of canonical names; a lock's versions of them do not bind."""

    of_torch: Table[str]


@cache
def _libraries() -> re.Pattern[str]:
    file = Path(__file__).parent / "data" / "locks.json"
    tables = from_json(file.read_bytes(), LockTables, "project/data/locks.json")
    return re.compile("|".join(f"(?:{row})" for row in tables.of_torch.rows))


# version = 1
# requires-python = ">=3.10"
# [[package]]
# name = "mine"
# source = { virtual = "." }
# dependencies = [{ name = "torch", version = "2.9.1+cu128", source = { registry = "…" }, marker = "extra == 'gpu'" }]
# [package.metadata]
# requires-dist = [{ name = "torch", specifier = "==2.9.1" }]
def take_uv_lock(text: str, source: Source, gathering: Gathering) -> None:
    """Take a `uv.lock`: what its root requires, and the versions of all packages that torch does not bring itself."""
    whole = toml(text, source.name)
    packages = [package for package in map(table, rows(whole.get("package"))) if package.get("name")]
    roots = [package for package in packages if {"editable", "virtual"} & {*table(package.get("source"))}]
    if not roots:
        raise refused(source.name, _("it names no project of its own"))
    if "requires-python" in whole:
        gathering.take_pythons(str(whole["requires-python"]))
    for root in roots:
        for needed in map(table, rows(table(root.get("metadata")).get("requires-dist"))):
            own = needed.get("name") in {one["name"] for one in roots}  # another part of the same workspace
            if needed.get("name") and not own and "extra ==" not in str(needed.get("marker", "")):
                _take_needed(needed, source, gathering)
    by_name: dict[str, list[dict[str, Any]]] = {}
    for package in packages:
        by_name.setdefault(str(package["name"]), []).append(package)
    beside = _reached([str(root["name"]) for root in roots], by_name)
    for package in packages:
        if package["name"] in beside and package not in roots:
            _lock(
                package, " or ".join(f"({one})" for one in rows(package.get("resolution-markers"))), source, gathering
            )


def _take_needed(needed: Mapping[str, Any], source: Source, gathering: Gathering) -> None:
    extras = ",".join(map(str, rows(needed.get("extras"))))
    if "git" in needed or "url" in needed or "path" in needed or "directory" in needed:
        gathering.leave_source(
            f"{needed['name']} @ {needed.get('git') or needed.get('url') or needed.get('path') or ''}"
        )
        return
    marker = f" ; {needed['marker']}" if needed.get("marker") else ""
    specifier = _LOCAL.sub("", str(needed.get("specifier", "")))
    gathering.take(f"{needed['name']}{f'[{extras}]' if extras else ''}{specifier}{marker}", source)


def _reached(roots: Iterable[str], packages: Mapping[str, list[dict[str, Any]]]) -> set[str]:
    """Return what the roots reach without passing through torch, whose own libraries go with its build."""
    reached, waiting = set(roots), [*roots]
    while waiting:
        name = waiting.pop()
        if carried_by_torch_index(name):
            continue
        for package in packages.get(name, []):
            optional = (one for lines in table(package.get("optional-dependencies")).values() for one in rows(lines))
            for needed in map(table, [*rows(package.get("dependencies")), *optional]):
                if (other := str(needed.get("name", ""))) not in reached:
                    reached.add(other)
                    waiting.append(other)
    return reached


def _lock(package: Mapping[str, Any], marker: str, source: Source, gathering: Gathering) -> None:
    """Bound a package to its locked version; one from a source repository or a folder has none to keep to."""
    if package.get("version") and not _elsewhere(table(package.get("source"))):
        line = f"{package['name']}=={_LOCAL.sub('', str(package['version']))}"
        gathering.take(f"{line} ; {marker}" if marker else line, source, "constraints")


def _elsewhere(source: Mapping[str, Any]) -> bool:
    """Return whether a package was locked at a repository or folder, in uv's spelling or Poetry's."""
    return bool({"git", "directory", "editable", "virtual"} & {*source, source.get("type")})


# lock-version = "1.0"
# [[packages]]
# name = "torch"
# version = "2.9.1"
# marker = "sys_platform == 'linux'"
def take_pylock(text: str, source: Source, gathering: Gathering) -> None:
    """Take a `pylock.toml` (PEP 751): it names no roots, so all is asked for, but for torch's own libraries."""
    try:
        lock = Pylock.from_dict(toml(text, source.name))
    except PylockValidationError as error:
        raise refused(source.name, printable(error)) from error
    gathering.take_pythons(str(lock.requires_python or ""))
    for package in lock.packages:
        of_a_part = re.search(r"\bin (?:extras|dependency_groups)\b", str(package.marker or ""))
        if not (of_a_part or _libraries().fullmatch(package.name)):
            _take_locked(package, source, gathering)


def _take_locked(package: Package, source: Source, gathering: Gathering) -> None:
    marker = f" ; {package.marker}" if package.marker else ""
    if package.vcs:
        gathering.leave_source(f"{package.name} @ {package.vcs.type}+{package.vcs.url or package.vcs.path}")
    elif package.directory:
        gathering.take_path(package.directory.path, source)
    elif package.archive:
        gathering.take(f"{package.name} @ {package.archive.url}{marker}", source)
    elif package.version:
        gathering.take(f"{package.name}=={package.version.public}{marker}", source)


def take_poetry_lock(text: str, source: Source, gathering: Gathering) -> None:
    """Take a `poetry.lock`: its versions as bounds, and what is required from the `pyproject.toml` beside it."""
    pyproject = source.beside("pyproject.toml")
    if pyproject is None or not is_file(pyproject):
        raise refused(source.name, _("the pyproject.toml that it locks is not beside it"))
    read_pyproject(pyproject, gathering)
    for package in map(table, rows(toml(text, source.name).get("package"))):
        name = str(package.get("name", ""))
        if name and not _libraries().fullmatch(canonicalize_name(name)):
            _lock(package, "", source, gathering)
