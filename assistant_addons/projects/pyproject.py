"""What `pyproject.toml` declares: the standard's tables, uv's additions, and the files that setuptools reads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from assistant.api import _
from assistant.api.planning import carried_by_torch_index
from assistant_addons.projects.gathering import Gathering
from assistant_addons.projects.requirements import take_beside
from assistant_addons.projects.source import TOO_DEEP, NotRead, Source, marked, not_read, refused, rows, table, toml

_MOST_PARTS = 1000  # chosen: parts that name one another, each once for every condition that it is under


def take_pyproject(text: str, source: Source, gathering: Gathering) -> bool:
    """Take the tables of a `pyproject.toml`, and of its optional parts those that are wanted.

    Returns whether it declares what the project needs. Raises `BadInput` where the text is no TOML, and `NotRead` where
    only another tool's own table declares anything.
    """
    whole = toml(text, source.name)
    project, tools = table(whole.get("project")), table(whole.get("tool"))
    uv = table(tools.get("uv"))
    parts, places = _parts(project, whole, uv), _places(uv)
    optional, taken = _optional(parts, source, str(project.get("name", "")))
    needs = project.get("dependencies", [])
    if not isinstance(needs, list):
        gathering.note(_("{name} in {file} was ignored.", name="dependencies", file=source.label))
    for line in map(str, [*rows(needs), *optional]):
        _take(line, places, source, gathering)
    dynamic = _take_dynamic(project, tools, source, gathering)
    elsewhere = "optional-dependencies" in _fields(project) and not dynamic
    gathering.offer({*parts, *dynamic}, taken, source, whole=bool(project) and not elsewhere)
    if requires_python := project.get("requires-python"):
        gathering.take_pythons(str(requires_python))
    _take_uv(uv, source, gathering)
    by_setuptools = "dependencies" in _fields(project) and "setuptools" in tools
    declares = bool(parts or "dependencies" in project) or by_setuptools
    if fault := _of_another_tool(tools, source):
        if not declares:
            raise fault
        gathering.note_fault(fault)
    return declares


# [tool.poetry.dependencies], [tool.poetry.group.dev.dependencies], [tool.pixi.pypi-dependencies]
def _of_another_tool(tools: dict[str, Any], source: Source) -> NotRead | None:
    """Return the error for a table of another tool's in which it lists packages, None where there is none."""
    lists = {"dependencies", "pypi-dependencies", "dev-dependencies", "group", "feature"}
    named = (name for name in ("poetry", "pixi") if lists & table(tools.get(name)).keys())
    return next((not_read(f"{name}.lock", f"[tool.{name}] in {source.name}") for name in named), None)


def _fields(project: dict[str, Any]) -> list[Any]:
    """Return the fields of the project that its build fills in."""
    return rows(project.get("dynamic"))


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
    while waiting:
        part, markers = waiting.pop(0)
        if {(part, markers), (part, frozenset())} & done:
            continue
        done.add((part, markers))
        if len(done) > _MOST_PARTS:
            raise refused(source.name, TOO_DEEP)
        for line in offered.get(part, []):
            own = _parsed(str(line))
            both = markers | {str(own.marker)} if own and own.marker else markers
            if isinstance(line, dict):  # {include-group = "test"}
                waiting.append((canonicalize_name(str(line.get("include-group", ""))), markers))
            elif own and project and canonicalize_name(own.name) == canonicalize_name(project):
                waiting += [(one, both) for one in sorted(map(canonicalize_name, own.extras))]
            elif own and markers:
                own.marker = Marker(" and ".join(f"({marker})" for marker in sorted(both)))
                found.append(str(own))
            else:
                found.append(str(line))
    return found, {part for part, _markers in done}


def _parsed(line: str) -> Requirement | None:
    try:
        return Requirement(line)
    except InvalidRequirement:
        return None


# [tool.setuptools.dynamic]
# dependencies = { file = ["requirements.txt"] }
# optional-dependencies.train = { file = "train.txt" }
def _take_dynamic(project: dict[str, Any], tools: dict[str, Any], source: Source, gathering: Gathering) -> set[str]:
    """Take the requirement files that setuptools reads in place of a list; return the optional parts that have some."""
    dynamic = table(table(tools.get("setuptools")).get("dynamic"))
    optional = table(dynamic.get("optional-dependencies")) if "optional-dependencies" in _fields(project) else {}
    wanted = [lists for name, lists in optional.items() if canonicalize_name(name) in source.extras]
    if "dependencies" in _fields(project):
        wanted.append(dynamic.get("dependencies"))
    for given in (table(lists).get("file", []) for lists in wanted):
        for file in [given] if isinstance(given, str) else map(str, rows(given)):
            take_beside(file, source, gathering)
    return set(optional)


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
    given = places.get(canonicalize_name(requirement.name), []) if requirement else []
    of_parts = {"extra", "group"}  # the place holds only where that part is wanted
    given = [
        one
        for one in given
        if not of_parts & one.keys() or {canonicalize_name(str(one.get(key))) for key in of_parts} & source.extras
    ]
    if requirement is None or requirement.url or not given:
        gathering.take(line, source)
        return
    extras = ",".join(sorted(requirement.extras))
    name = f"{requirement.name}[{extras}]" if extras else requirement.name
    left = []
    for one in given:
        marker = " and ".join(f"({part})" for part in (requirement.marker, one.get("marker")) if part)
        if not _take_from(one, name, marker, source, gathering):
            left.append(marked(f"{name}{requirement.specifier}", marker))
    for text in [line] if len(left) == len(given) else left:
        gathering.take(text, source)


# { git = "https://…", rev = "1f" }, { url = "https://…/x.whl" }, { path = "../mine" }, { workspace = true },
# { index = "https://company.example/simple" }
def _take_from(place: Mapping[str, Any], name: str, marker: str, source: Source, gathering: Gathering) -> bool:
    """Take a package (`name` with its extras) from the place that uv has it from; return False for an allowed index.

    What belongs to an index that is not known, or to the workspace, would be somebody else's on PyPI. For torch's own
    family the plan chooses the index.
    """
    bare, bracket, extras = name.partition("[")
    if "git" in place:
        at = next((f"@{place[key]}" for key in ("rev", "tag", "branch") if key in place), "")
        gathering.skip_source(f"{name} @ git+{str(place['git']).removeprefix('git+')}{at}")
    elif "url" in place:
        gathering.take(marked(f"{name} @ {place['url']}", marker), source)
    elif isinstance(place.get("path"), str):
        gathering.take_path(marked(f"{place['path']}{bracket}{extras}", marker), source)
    elif place.get("workspace"):
        gathering.skip(name, _("it is another part of the project"))
    elif "index" in place and not (
        gathering.allows(str(place["index"])) or carried_by_torch_index(canonicalize_name(bare))
    ):
        gathering.skip(name, _("it comes from an unknown index"))
    else:
        return False
    return True


def _take_uv(uv: dict[str, Any], source: Source, gathering: Gathering) -> None:
    """Take uv's overrides, constraints and indexes."""
    for line in rows(uv.get("constraint-dependencies")):
        gathering.take(str(line), source, "constraints")
    for line in rows(uv.get("override-dependencies")):
        gathering.take(str(line), source, "overrides")
    named = [uv.get("index-url"), *rows(uv.get("extra-index-url"))]
    named += [table(index).get("url") for index in rows(uv.get("index"))]
    for url in filter(None, named):
        gathering.take_index(str(url))
    for place in rows(uv.get("find-links")):
        gathering.take_links(str(place), source)
