"""Poetry's own table of dependencies, and how it writes versions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from assistant.i18n import _
from assistant.model.visible import printable
from assistant.project.gathering import Gathering
from assistant.project.source import Source, rows, table

_PARTS = re.compile(r"(?P<sign>\^|~|~=|==|!=|<=|>=|<|>|=)?\s*v?(?P<version>[\w.*+!-]+)")


# [tool.poetry.dependencies]
# python = "^3.10"
# torch = { version = "~2.9", source = "pytorch" }
# flash-attn = { version = "^2.8", optional = true }
# mine = { path = "../mine" }
def take_poetry(poetry: dict[str, Any], source: Source, gathering: Gathering, extras: frozenset[str]) -> None:
    """Take Poetry's dependencies: those of its main group, and the optional ones that an extra asks for."""
    offered = {canonicalize_name(name): rows(names) for name, names in table(poetry.get("extras")).items()}
    wanted = {canonicalize_name(str(one)) for extra in extras for one in offered.get(canonicalize_name(extra), [])}
    indexes = {str(one.get("name")): str(one["url"]) for one in map(table, rows(poetry.get("source"))) if "url" in one}
    closed = {name for name, url in indexes.items() if not gathering.allows(url)}
    for name, given in table(poetry.get("dependencies")).items():
        for value in given if isinstance(given, list) else [given]:
            terms = table(value) or {"version": str(value)}
            if terms.get("optional") and canonicalize_name(name) not in wanted:
                continue
            if terms.get("source") in closed:
                gathering.leave(name, _("it comes from an index that is not known"))
            else:
                _take(name, terms, source, gathering)
    for index in indexes.values():
        gathering.take_index(index)


def _take(name: str, terms: dict[str, Any], source: Source, gathering: Gathering) -> None:
    if "git" in terms:
        gathering.leave_source(f"{name} @ git+{terms['git']}")
        return
    if "path" in terms:
        gathering.take_path(str(terms["path"]), source)
        return
    if "url" in terms:
        gathering.take(f"{name} @ {terms['url']}", source)
        return
    versions = _specifier(str(terms.get("version", "*")))
    if versions is None:
        text = printable(f"{name} {terms.get('version')}")
        gathering.tell(
            _("{line} was left out: {reason}.", line=text, reason=_("it is not a range of versions that can be read"))
        )
    elif name == "python":
        gathering.take_pythons(versions)
    else:
        extras = ",".join(map(str, rows(terms.get("extras"))))
        marker = " and ".join(f"({part})" for part in _markers(terms))
        gathering.take(f"{name}{f'[{extras}]' if extras else ''}{versions}{f' ; {marker}' if marker else ''}", source)


def _markers(terms: dict[str, Any]) -> Iterator[str]:
    if terms.get("markers"):
        yield str(terms["markers"])
    if terms.get("python") and (versions := _specifier(str(terms["python"]))):
        bounds = sorted(SpecifierSet(versions), key=str)
        yield " and ".join(f'python_version {bound.operator} "{bound.version}"' for bound in bounds)
    if terms.get("platform"):
        yield f'sys_platform == "{terms["platform"]}"'


def _specifier(text: str) -> str | None:
    """Write Poetry's versions as packaging does: "^1.2" is ">=1.2,<2"; None for what has no such form ("1 || 3")."""
    if text.strip() in {"*", ""}:
        return ""
    parts = [_PARTS.fullmatch(part.strip()) for part in re.split(r"\s*,\s*|(?<=[\w*])\s+(?=[<>=!^~])", text)]
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
