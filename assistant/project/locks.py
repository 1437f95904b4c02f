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
from assistant.project.gathering import Gathering
from assistant.project.lines import marked
from assistant.project.places import take_from
from assistant.project.pyproject import take_pyproject
from assistant.project.source import Source, file_text, is_file, real, refused, rows, shown, source_of, table, toml

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
    packages = [one for one in map(table, rows(whole.get("package"))) if isinstance(one.get("name"), str)]
    roots = [package for package in packages if {"editable", "virtual"} & {*table(package.get("source"))}]
    if not roots:
        raise refused(source.name, _("it does not say which project it is for"))
    if "requires-python" in whole:
        gathering.take_pythons(str(whole["requires-python"]))
    own = {one["name"] for one in roots}  # another part of the same workspace
    for root in roots:
        metadata = table(root.get("metadata"))
        gathering.offer(map(str, rows(metadata.get("provides-extras"))), (), source, whole=False)
        for needed in map(table, rows(metadata.get("requires-dist"))):
            name, marker = needed.get("name"), str(needed.get("marker", ""))
            if isinstance(name, str) and name not in own and "extra ==" not in marker:
                _take_needed(needed, name, marker, source, gathering)
    by_name: dict[str, list[dict[str, Any]]] = {}
    for package in packages:
        by_name.setdefault(package["name"], []).append(package)
    beside = _reached([root["name"] for root in roots], by_name)
    for package in packages:
        if package["name"] in beside and package not in roots:
            _lock(package, " or ".join(map(str, rows(package.get("resolution-markers")))), source, gathering)


def _take_needed(needed: Mapping[str, Any], name: str, marker: str, source: Source, gathering: Gathering) -> None:
    extras = ",".join(map(str, rows(needed.get("extras"))))
    named = f"{name}[{extras}]" if extras else name
    if not take_from(needed, named, marker, source, gathering):
        gathering.take(marked(f"{named}{_LOCAL.sub('', str(needed.get('specifier', '')))}", marker), source)


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
        gathering.take(marked(line, marker), source, "constraints")


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
        gathering.take_pythons(str(lock.requires_python or ""))
    except (PylockValidationError, ValueError) as error:
        raise refused(source.name, shown(error)) from error
    for package in lock.packages:
        of_a_part = re.search(r"\bin (?:extras|dependency_groups)\b", str(package.marker or ""))
        if not (of_a_part or _libraries().fullmatch(package.name)):
            _take_locked(package, source, gathering)


def _take_locked(package: Package, source: Source, gathering: Gathering) -> None:
    marker, place = str(package.marker or ""), dict[str, Any]()
    if package.vcs:
        place["git"] = package.vcs.url or package.vcs.path
    elif package.directory:
        place["directory"] = package.directory.path
    elif package.archive:
        place["url" if package.archive.url else "path"] = package.archive.url or package.archive.path
    elif package.index:
        place["index"] = package.index
    if not take_from(place, package.name, marker, source, gathering) and package.version:
        gathering.take(marked(f"{package.name}=={package.version.public}", marker), source)


def take_poetry_lock(text: str, source: Source, gathering: Gathering) -> None:
    """Take a `poetry.lock`: its versions as bounds, and what is required from the `pyproject.toml` beside it."""
    pyproject = source.beside("pyproject.toml")
    if pyproject is None or not is_file(pyproject):
        raise refused(source.name, _("the pyproject.toml that belongs to it is not in its folder"))
    gathering.paths[real(pyproject)] = None
    take_pyproject(file_text(pyproject), source_of(pyproject, source.extras), gathering)
    for package in map(table, rows(toml(text, source.name).get("package"))):
        name = str(package.get("name", ""))
        if name and not _libraries().fullmatch(canonicalize_name(name)):
            _lock(package, "", source, gathering)
