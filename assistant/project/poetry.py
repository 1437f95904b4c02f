"""Poetry's own table of dependencies, and how it writes versions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from assistant.i18n import _
from assistant.project.gathering import Gathering
from assistant.project.lines import LONGEST_LINE, marked
from assistant.project.places import take_from
from assistant.project.source import Source, rows, table

_PARTS = re.compile(r"(?P<sign>\^|~|~=|==|!=|<=|>=|<|>|=)?\s*v?(?P<version>[\w.*+!-]+)")


# [tool.poetry.dependencies]
# python = "^3.10"
# torch = { version = "~2.9", source = "pytorch" }
# flash-attn = { version = "^2.8", optional = true }
# mine = { path = "../mine" }
def take_poetry(poetry: dict[str, Any], source: Source, gathering: Gathering) -> None:
    """Take Poetry's dependencies: those of its main group, and the optional ones and groups that are wanted."""
    offered: dict[str, list[Any]] = {
        canonicalize_name(name): rows(names) for name, names in table(poetry.get("extras")).items()
    }
    wanted = {canonicalize_name(str(one)) for extra in source.extras for one in offered.get(extra, [])}
    indexes = {str(one.get("name")): str(one["url"]) for one in map(table, rows(poetry.get("source"))) if "url" in one}
    groups = [given for name, given in poetry_groups(poetry).items() if canonicalize_name(name) in source.extras]
    for name, given in (item for group in (table(poetry.get("dependencies")), *groups) for item in group.items()):
        for value in given if isinstance(given, list) else [given]:
            terms = table(value) or {"version": str(value)}
            if terms.get("optional") and canonicalize_name(name) not in wanted:
                continue
            if "source" in terms and (index := str(terms["source"])).lower() != "pypi":
                terms = {**terms, "index": indexes.get(index, "")}
            _take(name, terms, source, gathering)
    for index in indexes.values():
        gathering.take_index(index)


# [tool.poetry.group.dev.dependencies], and [tool.poetry.dev-dependencies] of Poetry 1.1
def poetry_groups(poetry: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the dependencies of each group beside the main one."""
    groups = {name: table(table(group).get("dependencies")) for name, group in table(poetry.get("group")).items()}
    old = table(poetry.get("dev-dependencies"))
    return {**groups, "dev": {**old, **groups.get("dev", {})}} if old else groups


def _take(name: str, terms: dict[str, Any], source: Source, gathering: Gathering) -> None:
    extras, marker = ",".join(map(str, rows(terms.get("extras")))), " and ".join(_markers(terms))
    named = f"{name}[{extras}]" if extras else name
    versions = _specifier(str(terms.get("version", "*")))
    if take_from(terms, named, marker, source, gathering):
        return
    if versions is None:
        gathering.skip(f"{name} {terms.get('version')}", _("it is not a valid range of versions"))
    elif name == "python":
        gathering.take_pythons(versions)
    else:
        gathering.take(marked(f"{named}{versions}", marker), source)


def _markers(terms: dict[str, Any]) -> Iterator[str]:
    if terms.get("markers"):
        yield f"({terms['markers']})"
    if terms.get("python") and (versions := _specifier(str(terms["python"]))):
        bounds = sorted(SpecifierSet(versions), key=str)
        yield " and ".join(f'python_version {bound.operator} "{bound.version}"' for bound in bounds)
    if terms.get("platform"):
        yield f'sys_platform == "{terms["platform"]}"'


def _specifier(text: str) -> str | None:
    """Write Poetry's versions as packaging does: "^1.2" is ">=1.2,<2"; None for what has no such form ("1 || 3")."""
    if len(text) > LONGEST_LINE:
        return None
    text = " ".join(text.split())
    if text in {"*", ""}:
        return ""
    parts = [_PARTS.fullmatch(part.strip()) for part in re.split(r",|(?<=[\w*]) (?=[<>=!^~])", text)]
    if not all(parts):
        return None
    written = ",".join(_bounds(part["sign"] or "", part["version"]) for part in parts if part)
    try:
        SpecifierSet(written)
    except InvalidSpecifier:
        return None
    return written


def _bounds(sign: str, version: str) -> str:
    """Write one bound: https://python-poetry.org/docs/dependency-specification/#version-constraints."""
    numbers = [int(number) for number in re.findall(r"\d+", version.partition("-")[0])] or [0]
    if sign == "^":
        kept = next((place for place, number in enumerate(numbers) if number), len(numbers) - 1)
        return f">={version},<{_next(numbers, kept)}"
    if sign == "~":
        return f">={version},<{_next(numbers, min(1, len(numbers) - 1))}"
    return f"{sign if sign and sign != '=' else '=='}{version}"


def _next(numbers: list[int], kept: int) -> str:
    return ".".join(map(str, [*numbers[:kept], numbers[kept] + 1]))
