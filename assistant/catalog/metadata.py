"""What the metadata of a wheel tell, which an index serves as a file of its own (PEP 658): its name and its needs."""

from __future__ import annotations

from packaging.metadata import parse_email
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from assistant.model.record import Record


class Metadata(Record, frozen=True):
    """The name, version and requirements of a wheel, without the requirements of extras."""

    name: str
    version: str
    requires: tuple[str, ...] = ()

    def bounds(self, name: str) -> str | None:
        """Return the bounds that it sets for a distribution, None where it does not require it."""
        needs = (Requirement(line) for line in self.requires)
        return next((str(need.specifier) for need in needs if canonicalize_name(need.name) == name), None)


# Metadata-Version: 2.4 / Name: torch / Version: 2.15.0 / Provides-Extra: optree / Requires-Dist: filelock …
def read_metadata(text: bytes) -> Metadata | None:
    """Read a file of metadata; None where it names no distribution."""
    metadata, _rest = parse_email(text)
    name, version = metadata.get("name"), metadata.get("version")
    if not (name and version):
        return None
    lines = tuple(filter(_needed, metadata.get("requires_dist", [])))
    return Metadata(name=canonicalize_name(name), version=version, requires=lines)


def _needed(line: str) -> bool:
    """Return whether a Requires-Dist line can be read and is not for an extra: "torch==2.15.0; extra == 'x'" is."""
    try:
        need = Requirement(line)
    except InvalidRequirement:
        return False
    return "extra" not in str(need.marker or "")
