"""What `pyproject.toml` declares: the standard's tables, and uv's additions."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from assistant.api import _
from assistant.api.planning import carried_by_torch_index
from assistant_addons.projects.gathering import Gathering
from assistant_addons.projects.source import (
    TOO_DEEP,
    NotRead,
    Source,
    marked,
    not_read,
    refused,
    rows,
    table,
    toml,
)

_MOST_PARTS = 1000  # chosen: parts that name one another, each once for every condition that it is under


def take_pyproject(text: str, source: Source, gathering: Gathering) -> bool:
    """Take the tables of a `pyproject.toml`, and of its optional parts those that are wanted.

    Returns whether it declares what the project needs. Raises `BadInput` where the text is no TOML, and `NotRead` where
    only another tool's own table declares anything.
    """
    whole = toml(text, source.name)
    project, tools = table(whole.get("project")), table(whole.get("tool"))
    uv, dynamic = table(tools.get("uv")), rows(project.get("dynamic"))
    parts, places = _parts(project, whole, uv), _places(uv)
    optional, taken = _optional(parts, source, str(project.get("name", "")))
    needs = project.get("dependencies", [])
    if not isinstance(needs, list):
        gathering.note(_("{name} in {file} was ignored.", name="dependencies", file=source.label))
    for line in map(str, [*rows(needs), *optional]):
        _take(line, places, source, gathering)
    gathering.offer(parts, taken, source, whole=bool(project) and "optional-dependencies" not in dynamic)
    if requires_python := project.get("requires-python"):
        gathering.take_pythons(str(requires_python))
    _take_uv(uv, source, gathering)
    declares = "dependencies" not in dynamic and (bool(parts) or "dependencies" in project)
    if fault := _of_another_tool(tools, dynamic, source):
        if not declares:
            raise fault
        gathering.note_fault(fault)
    return declares


# [tool.poetry.dependencies], [tool.poetry.group.dev.dependencies], [tool.pixi.pypi-dependencies]
def _of_another_tool(tools: dict[str, Any], dynamic: list[Any], source: Source) -> NotRead | None:
    """Return the error for what another tool lists, or fills in when it builds the project; None where nothing is."""
    lists = {"dependencies", "pypi-dependencies", "dev-dependencies", "group", "feature"}
    named = (name for name in ("poetry", "pixi") if lists & table(tools.get(name)).keys())
    built = ["dynamic pyproject.toml"] if "dependencies" in dynamic else []
    kinds = [(f"{name}.lock", f"[tool.{name}] in {source.name}") for name in named]
    kinds += [(name, f"dynamic in {source.name}") for name in built]
    return next((not_read(kind, file) for kind, file in kinds), None)


# [project.optional-dependencies], [dependency-groups] (PEP 735), and dev-dependencies of [tool.uv], a group of its own
def _parts(project: dict[str, Any], whole: dict[str, Any], uv: dict[str, Any]) -> dict[str, list[Any]]:
    """Return the lines of each optional part by its name: of extras, and of groups of dependencies."""
    old = {"dev": uv["dev-dependencies"]} if "dev-dependencies" in uv else {}
    parts: dict[str, list[Any]] = defaultdict(list)
    for given in (project.get("optional-dependencies"), whole.get("dependency-groups"), old):
        for name, lines in table(given).items():
            parts[name] += rows(lines)
    return parts


def _optional(parts: dict[str, list[Any]], source: Source, project: str) -> tuple[list[str], set[str]]:
    """List the lines of the wanted parts and of those that they name ("flux[torch]"), and the names of them all.

    What a part names under a marker ("flux[apple] ; sys_platform == 'darwin'") keeps it.
    """
    offered: dict[str, list[Any]] = {canonicalize_name(name): lines for name, lines in parts.items()}
    waiting = [(part, frozenset[str]()) for part in sorted(source.extras)]
    done, found = set[tuple[str, frozenset[str]]](), list[str]()
    for part, markers in waiting:  # which grows on the way
        if {(part, markers), (part, frozenset())} & done:
            continue
        done.add((part, markers))
        if len(done) > _MOST_PARTS:
            raise refused(source.name, TOO_DEEP)
        for line in offered.get(part, []):
            own = _parsed(str(line))
            if isinstance(line, dict):  # {include-group = "test"}
                waiting.append((canonicalize_name(str(line.get("include-group", ""))), markers))
            elif own and project and canonicalize_name(own.name) == canonicalize_name(project):
                both = markers | {str(own.marker)} if own.marker else markers
                waiting += [(one, both) for one in sorted(map(canonicalize_name, own.extras))]
            else:
                bare, _semicolon, marker = str(line).partition(";")
                found.append(marked(bare, *sorted({*markers, marker})) if markers else str(line))
    return found, {part for part, _markers in done}


def _parsed(line: str) -> Requirement | None:
    try:
        return Requirement(line)
    except InvalidRequirement:
        return None


# [tool.uv.sources]
# torch = [{ index = "pytorch-cu128", marker = "…" }]
# flash-attn = { git = "https://…" }
# [[tool.uv.index]]
# name = "pytorch-cu128"
# url = "https://download.pytorch.org/whl/cu128"
def _places(uv: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return where uv has packages from, by their canonical names; an index by its address, "" where none is given."""
    addresses = {str(one.get("name")): str(one.get("url", "")) for one in map(table, rows(uv.get("index")))}
    return {
        canonicalize_name(name): [
            {**one, "index": addresses.get(str(one["index"]), "")} if "index" in one else one
            for one in map(table, given if isinstance(given, list) else [given])
        ]
        for name, given in table(uv.get("sources")).items()
    }


def _take(line: str, places: dict[str, list[dict[str, Any]]], source: Source, gathering: Gathering) -> None:
    """Take a requirement from each place that holds under its own condition, or as it stands."""
    requirement = _parsed(line)
    given = []
    for place in places.get(canonicalize_name(requirement.name), []) if requirement else ():
        parts = [canonicalize_name(str(place[key])) for key in ("extra", "group") if key in place]
        if not parts or source.extras.intersection(parts):  # the place holds only where that part is wanted
            given.append(place)
    if requirement is None or requirement.url or not given:
        gathering.take(line, source)
        return
    extras = ",".join(sorted(requirement.extras))
    name = f"{requirement.name}[{extras}]" if extras else requirement.name
    left = []
    for place in given:
        marker = " and ".join(f"({part})" for part in (requirement.marker, place.get("marker")) if part)
        if not _take_from(place, name, marker, source, gathering):
            left.append(marked(f"{name}{requirement.specifier}", marker))
    for text in [line] if len(left) == len(given) else left:
        gathering.take(text, source)


# { git = "https://…", rev = "1f" }, { url = "https://…/x.whl" }, { path = "../mine" }, { workspace = true },
# { index = "https://company.example/simple" }
def _take_from(place: dict[str, Any], name: str, marker: str, source: Source, gathering: Gathering) -> bool:
    """Take a package (`name` with its extras) from the place that uv has it from; return False for an allowed index.

    What belongs to an index that is not known, or to the workspace, would be somebody else's on PyPI. For torch's own
    family the plan chooses the index.
    """
    bare, bracket, extras = name.partition("[")
    match place:
        case {"git": address}:
            at = next((f"@{place[key]}" for key in ("rev", "tag", "branch") if key in place), "")
            gathering.skip_source(f"{name} @ git+{str(address).removeprefix('git+')}{at}")
        case {"url": address}:
            gathering.take(marked(f"{name} @ {address}", marker), source)
        case {"path": str(path)}:
            gathering.take_path(marked(f"{path}{bracket}{extras}", marker), source)
        case {"workspace": True}:
            gathering.skip(name, _("it is another part of the project"))
        case {"index": str(url)} if not (gathering.allows(url) or carried_by_torch_index(canonicalize_name(bare))):
            gathering.skip(name, _("it comes from an unknown index"))
        case _:
            return False
    return True


def _take_uv(uv: dict[str, Any], source: Source, gathering: Gathering) -> None:
    """Take uv's overrides, constraints and indexes."""
    for line in rows(uv.get("constraint-dependencies")):
        gathering.take(str(line), source, "constraints")
    for line in rows(uv.get("override-dependencies")):
        gathering.take(str(line), source, "overrides")
    indexes = [table(index).get("url") for index in rows(uv.get("index"))]
    for url in filter(None, [uv.get("index-url"), *rows(uv.get("extra-index-url")), *indexes]):
        gathering.take_index(str(url))
    for place in rows(uv.get("find-links")):
        gathering.take_links(str(place), source)
