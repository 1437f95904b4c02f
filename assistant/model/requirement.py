"""Requirement lines (PEP 508): what may be one, and each read once, as a search reads the same ones over and over."""

from __future__ import annotations

from functools import lru_cache

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import InvalidVersion, Version


@lru_cache(maxsize=4096)
def requirement(line: str) -> Requirement:
    """Read a line; what is returned is shared: change a copy. Raises `InvalidRequirement`, a `ValueError`."""
    return Requirement(line)


@lru_cache(maxsize=4096)
def name_of(line: str) -> NormalizedName:
    """Return the canonical name of the package that a line asks for; raise as `requirement` does."""
    return canonicalize_name(requirement(line).name)


@lru_cache(maxsize=4096)
def plain_requirement(text: str) -> Requirement | None:
    r"""Read a requirement that hides nothing; None for any other text. What is returned is shared: change a copy.

    Markers may hold escapes, which `packaging` decodes: of "\u202e" one sees nothing once it is read, and what "\\"
    becomes cannot be read again. After `===` any signs may stand; uv takes none but a version.
    """
    try:
        need = Requirement(text)
        Requirement(str(need))
        for one in need.specifier:
            Version(one.version.removesuffix(".*"))
    except (InvalidRequirement, InvalidVersion):
        return None
    return need if f"{text}{need}".isprintable() else None
