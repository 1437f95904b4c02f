"""Fills templates and writes JSON and TOML for exported files; what they show has been cleaned of secrets before."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import tomli_w

from assistant.export.setup import MARKER
from assistant.i18n import say
from assistant.model.visible import spelled

FOLDER = Path(__file__).with_name("templates")


def filled(template: str, filters: Mapping[str, Callable[..., str]] | None = None, **content: object) -> str:
    """Fill `templates/<template>.j2`; a missing name is an error, the filter `json` quotes for JSON and YAML."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 - 60 ms, needed only here

    templates = Environment(  # noqa: S701 - none of the formats is HTML; filters and `json` quote
        loader=FileSystemLoader(FOLDER),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters.update({"json": json_text, **(filters or {})})
    return templates.get_template(f"{template}.j2").render(_=say, marker=MARKER, **content)


def json_text(value: object, indent: int | None = None) -> str:
    """Encode as JSON with every hidden character escaped; YAML and Python read such strings alike."""
    return spelled(json.dumps(value, ensure_ascii=False, indent=indent))


def toml_text(value: Mapping[str, object]) -> str:
    """Encode as TOML with every hidden character escaped."""
    return spelled(tomli_w.dumps(value), long=True)
