"""What web pages do to a text before it is pasted, undone for every reader alike."""

from __future__ import annotations

import re

_ENTITIES = {"quot": '"', "apos": "'", "amp": "&", "lt": "<", "gt": ">", "nbsp": " ", "#39": "'", "#x27": "'"}
_ENTITY = re.compile(f"&({'|'.join(map(re.escape, _ENTITIES))});")


def without_entities(text: str) -> str:
    """Put the marks back that a page writes as `&lt;`; other words after "&", as in addresses, are left alone."""
    return _ENTITY.sub(lambda found: _ENTITIES[found[1]], text) if "&" in text else text
