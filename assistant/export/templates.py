"""Fills the templates of exported files; what they show has been cleaned before, and each quotes for its own format."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from assistant.export.bundle import MARKER
from assistant.i18n import _

__all__ = ["filled"]

FOLDER = Path(__file__).with_name("templates")


def filled(template: str, filters: Mapping[str, Callable[..., str]] | None = None, **content: object) -> str:
    """Fill `templates/<template>.j2`; a name that is missing is an error, `json` quotes for JSON and YAML."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 - 60 ms, needed only here

    templates = Environment(  # noqa: S701 - none of the formats is HTML; filters and `json` quote
        loader=FileSystemLoader(FOLDER),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters.update({"json": _json, **(filters or {})})
    return templates.get_template(f"{template}.j2").render(_=_, marker=MARKER, **content)


def _json(value: object, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)
