"""Undoes what web pages do to a text that is copied from their source."""

from __future__ import annotations

import re

_ENTITIES = {"quot": '"', "apos": "'", "amp": "&", "lt": "<", "gt": ">", "nbsp": " ", "#39": "'", "#x27": "'"}
_ENTITY = re.compile(f"&({'|'.join(map(re.escape, _ENTITIES))});")


def without_entities(text: str) -> str:
    """Decode the entities of `_ENTITIES`; `html.unescape` would also change addresses (`?a=1&copy=2`)."""
    return _ENTITY.sub(lambda found: _ENTITIES[found[1]], text) if "&" in text else text
