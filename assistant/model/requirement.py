"""Requirements (PEP 508), parsed and checked, and what is a valid address of a package index."""

from __future__ import annotations

import re
from collections.abc import Container
from functools import lru_cache

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import InvalidVersion, Version

from assistant.i18n import Text, _
from assistant.model.errors import BadInput
from assistant.model.plan import Plan
from assistant.privacy import Policy, redact

SCHEMES = ("https://", "http://", "file://")


@lru_cache(maxsize=4096)
def requirement(line: str) -> Requirement:
    """Parse a requirement; the result is shared: change only a copy. Raises `InvalidRequirement`, a `ValueError`."""
    return Requirement(line)


@lru_cache(maxsize=4096)
def name_of(line: str) -> NormalizedName:
    """Return the canonical name of the package in a requirement; raise as `requirement` does."""
    return canonicalize_name(requirement(line).name)


@lru_cache(maxsize=4096)
def plain_requirement(text: str) -> Requirement | None:
    r"""Parse a requirement without hidden characters, with valid versions; None for other texts. Shared: change a copy.

    Markers may hold escapes, which `packaging` decodes: of "\u202e" one sees nothing once it is read, and what "\\"
    becomes cannot be read again. After `===` any signs may stand; uv takes none but a version.
    """
    try:
        need = Requirement(text)
        Requirement(str(need))
        for bound in need.specifier:
            Version(bound.version.removesuffix(".*"))
    except (InvalidRequirement, InvalidVersion):
        return None
    return need if f"{text}{need}".isprintable() else None


def check_requirement(text: str) -> str:
    """Return a requirement (PEP 508) as it is; raise `BadInput` for options, hidden characters and anything else."""
    need = plain_requirement(text)
    if need is None or (need.url and not need.url.startswith(SCHEMES)):
        raise BadInput(
            _("'{text}' is not a requirement.", text=redact(ascii(text)[1:-1], Policy.USABLE)[:80]),
            hint=_("Write a name, and a version if you need one, such as torch==2.9.1."),
        )
    return text


def packages_to_import(plan: Plan, packages: Container[str]) -> tuple[str, ...]:
    """Return the distributions that a plan was asked for, but not those with a marker that are not in `packages`."""
    bound = {name_of(line) for line in plan.requirements if requirement(line).marker}
    return tuple(name for name in plan.asked if name in packages or name not in bound)


_FOREIGN = re.compile(
    r"(https?://[\w.-]{1,200}(:\d{1,5})?|file:///)(/?[\w./+~:%-]{0,400})?(\?[\w=&.%-]{0,200})?", re.ASCII
)


def index_fault(text: str) -> Text:
    """Return why a text cannot be the address of a package index, "" if it can; no request is made."""
    if not text.isprintable() or any(sign in text for sign in " \"'`<>\\"):
        return _("it holds a character that no address has")
    if not text.startswith(SCHEMES):
        return _("it does not begin with https://, http:// or file://")
    server = re.split("[/?#]", text.partition("://")[2], maxsplit=1)[0]
    return "" if text.startswith("file:") or server.rpartition("@")[2] else _("it names no server")


def foreign_index_fault(text: str) -> Text:
    """Return why an index's address in a stranger's file is refused, as for a user name or `..`; "" if it is not."""
    # Windows takes file:////server/share for \\server\share, and each of / . \ may be spelt %2f %2e %5c.
    outside = "/.." in text or text.startswith("file:////") or re.search("(?i)%(2e|2f|5c)", text)
    plain = _FOREIGN.fullmatch(text) and not outside
    return "" if plain else _("it is not the plain address of a package index")
