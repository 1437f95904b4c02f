"""What the package indexes list of torch and its companions, for the catalogue to be checked and refreshed by."""

from __future__ import annotations

import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from assistant.catalog import Catalog
from assistant.catalog.refresh import Seen
from assistant.host.index import Found
from assistant.i18n import Message, _
from assistant.install import Sources
from assistant.model.plan import Wheel

_LOCAL = re.compile(r"-[^-+]+\+(cpu|xpu|cu\d+|rocm\d+(?:\.\d+)+)-")


class Listing(NamedTuple):
    """What the indexes listed, and a sentence for each that could not be asked."""

    seen: tuple[Seen, ...]
    unchecked: tuple[Message, ...]


def list_builds(sources: Sources, known: Catalog, projects: tuple[str, ...]) -> Listing:
    """Ask all indexes at once: pip's own for every project, torch's own (or the one named) for torch."""
    own = sources.index_url or known.index_url("")
    asked = [("torch", own), *((project, None) for project in projects)]
    with ThreadPoolExecutor(max_workers=len(asked)) as pool:
        found = list(pool.map(lambda question: sources.listing(*question), asked))
    seen = (_seen(wheel) for answer in found for wheel in answer.wheels)
    return Listing(tuple(filter(None, seen)), tuple(dict.fromkeys(_unchecked(found))))


def _seen(wheel: Wheel) -> Seen | None:
    """Read the build off the version's local part, as on an index of all builds; one without is PyPI's."""
    if "+" not in wheel.filename:
        return Seen("pypi", wheel.filename, wheel.size)
    local = _LOCAL.search(wheel.filename)
    return Seen(local[1], wheel.filename, wheel.size) if local else None


def _unchecked(found: Iterable[Found]) -> Iterable[Message]:
    for asked in (asked for answer in found for asked in answer.asked if asked.status == "unreachable"):
        yield _("Not checked: {source} cannot be reached ({reason}).", source=asked.source, reason=asked.reason)
