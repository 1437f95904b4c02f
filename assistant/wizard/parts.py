"""Widgets that share one layout and one style per kind: three models for each would be sent to the browser else."""

from __future__ import annotations

from functools import cache
from typing import Any

import ipywidgets as widgets


def made(kind: type[widgets.Widget], **traits: Any) -> Any:  # noqa: ANN401 - as the library, which has no types
    """Make a widget; how it looks is said by the stylesheet alone."""
    style = kind.class_traits().get("style")
    looks = {"style": _shared(style.klass)} if style else {}
    return kind(layout=_shared(widgets.Layout), **looks, **traits)


def show(widget: widgets.Widget, *, visible: bool) -> None:
    """Show or hide a widget by a class, as its layout belongs to others, too."""
    if visible:
        widget.remove_class("ptsa-hidden")
    else:
        widget.add_class("ptsa-hidden")


@cache
def _shared(kind: type[widgets.Widget]) -> widgets.Widget:
    return kind()
