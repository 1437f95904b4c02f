"""What `pyproject.toml` declares: the standard's table, uv's additions, Poetry's table, and setuptools' files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from assistant.i18n import _
from assistant.model.errors import BadInput
from assistant.model.visible import printable
from assistant.project.gathering import Gathering
from assistant.project.poetry import take_poetry
from assistant.project.requirements import take_lines
from assistant.project.source import Source, file_text, is_file, rows, source_of, table, toml

_NO_EXTRAS: frozenset[str] = frozenset()


def read_pyproject(path: Path, gathering: Gathering, extras: frozenset[str] = _NO_EXTRAS) -> bool:
    """Read a `pyproject.toml`; return whether it declares what the project needs."""
    declares = take_pyproject(file_text(path), source_of(path), gathering, extras)
    if declares:
        gathering.paths[path.resolve()] = None
    return declares


def take_pyproject(text: str, source: Source, gathering: Gathering, extras: frozenset[str] = _NO_EXTRAS) -> bool:
    """Take the tables of a `pyproject.toml`, with its optional dependencies `extras`; return whether it has any.

    Raises `BadInput` where the text is no TOML or lacks an extra.
    """
    whole = toml(text, source.name)
    project, tools = table(whole.get("project")), table(whole.get("tool"))
    uv, poetry = table(tools.get("uv")), table(tools.get("poetry"))
    elsewhere = table(uv.get("sources"))
    declared = [*rows(project.get("dependencies")), *_optional(project, extras, source)]
    files = _dynamic(project, tools)
    _tell_extras(
        {*table(project.get("optional-dependencies")), *table(poetry.get("extras"))} - extras, source, gathering
    )
    indexes = map(table, rows(uv.get("index")))
    closed = {str(one.get("name")) for one in indexes if not gathering.allows(str(one.get("url")))}
    for line in map(str, declared):
        if not _taken_elsewhere(line, elsewhere, closed, source, gathering):
            gathering.take(line, source)
    for file in files:
        if (beside := source.beside(file)) and is_file(beside):
            take_lines(file_text(beside), source_of(beside), gathering)
    if requires_python := project.get("requires-python"):
        gathering.take_pythons(str(requires_python))
    _take_uv(uv, source, gathering)
    if "dependencies" in poetry:
        take_poetry(poetry, source, gathering, extras)
    return bool(declared or files or "dependencies" in poetry or "dependencies" in project)


def _optional(project: dict[str, Any], extras: frozenset[str], source: Source) -> list[str]:
    """List the lines of extras, those that an extra asks of its own project included: "flux[torch]"."""
    offered = {
        canonicalize_name(name): rows(lines) for name, lines in table(project.get("optional-dependencies")).items()
    }
    own = canonicalize_name(str(project.get("name", "")))
    wanted, seen, lines = [*sorted(map(canonicalize_name, extras))], set(), []
    while wanted:
        extra = wanted.pop(0)
        if extra in seen:
            continue
        seen.add(extra)
        if extra not in offered:
            raise BadInput(
                _("{file} has no extra called '{name}'.", file=source.label, name=printable(extra)),
                hint=_("It offers: {names}.", names=", ".join(sorted(offered)) or "-"),
            )
        for line in map(str, offered[extra]):
            inner = _parsed(line)
            if inner and own and canonicalize_name(inner.name) == own:
                wanted += sorted(map(canonicalize_name, inner.extras))
            else:
                lines.append(line)
    return lines


def _tell_extras(names: set[str], source: Source, gathering: Gathering) -> None:
    if names:
        offered = ", ".join(sorted(map(printable, names)))
        gathering.tell(
            _(
                "{file} has optional parts, which were left out: {names}.",
                file=source.label,
                names=offered,
                option="--extra",
            )
        )


def _parsed(line: str) -> Requirement | None:
    try:
        return Requirement(line)
    except InvalidRequirement:
        return None


def _dynamic(project: dict[str, Any], tools: dict[str, Any]) -> list[str]:
    """List the requirement files that setuptools reads in place of a list: dependencies = {file = ["…"]}."""
    if "dependencies" not in rows(project.get("dynamic")):
        return []
    given = table(table(table(tools.get("setuptools")).get("dynamic")).get("dependencies")).get("file", [])
    return [given] if isinstance(given, str) else [file for file in rows(given) if isinstance(file, str)]


# torch = [{ index = "pytorch-cu128", marker = "…" }], flash-attn = { git = "https://…" }, mine = { path = "../mine" }
def _taken_elsewhere(
    line: str, elsewhere: dict[str, Any], closed: set[str], source: Source, gathering: Gathering
) -> bool:
    """Take a requirement from where `[tool.uv.sources]` has it; return False where that is a known index.

    What belongs to an index that is not known (`closed`), or to the workspace, would be somebody else's on PyPI.
    """
    requirement = _parsed(line)
    given = {canonicalize_name(name): value for name, value in elsewhere.items()}
    value = given.get(canonicalize_name(requirement.name)) if requirement else None
    places = [table(one) for one in (value if isinstance(value, list) else [value])]
    place = places[0] if places else {}
    if requirement is None or not place:
        return False
    if any(one.get("index") in closed for one in places):
        gathering.leave(line, _("it comes from an index that is not known"))
    elif "index" in place:
        return False
    elif place.get("workspace"):
        gathering.leave(line, _("it is another part of the project"))
    elif "git" in place:
        at = next((f"@{place[name]}" for name in ("rev", "tag", "branch") if name in place), "")
        gathering.leave_source(f"{requirement.name} @ git+{str(place['git']).removeprefix('git+')}{at}")
    elif "url" in place:
        gathering.take(f"{requirement.name} @ {place['url']}", source)
    elif "path" in place:
        gathering.take_path(str(place["path"]), source)
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
