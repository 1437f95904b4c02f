"""The widgets that the wizard is made of, its own and those of ipywidgets with one look for each kind."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path
from typing import Any

import anywidget
import ipywidgets as widgets
import traitlets

from assistant.markup import Markup

STATIC = Path(__file__).with_name("static")


def make(kind: type[widgets.Widget], **traits: Any) -> Any:  # noqa: ANN401 - as the library, which has no types
    """Make a widget; how it looks is said by the stylesheet alone.

    One layout and one style serve all of a kind: else the browser would be sent three models for each widget.
    """
    style = kind.class_traits().get("style")
    looks = {"style": _shared(style.klass)} if style else {}
    return kind(layout=_shared(widgets.Layout), **looks, **traits)


@cache
def _shared(kind: type[widgets.Widget]) -> widgets.Widget:
    return kind()


def show(widget: widgets.Widget, *, visible: bool) -> None:
    """Show or hide a widget by a class, as its layout belongs to others, too."""
    if visible:
        widget.remove_class("ptsa-hidden")
    else:
        widget.add_class("ptsa-hidden")


def _only_markup(_widget: widgets.Widget, proposal: dict[str, Any]) -> str:
    """Refuse a text that was not escaped, whatever it holds, so that nobody can forget to escape one."""
    if not isinstance(proposal["value"], Markup):
        raise TypeError(proposal["value"])
    return str(proposal["value"])  # what is sent to the browser knows no kinds of text


class Drawing(widgets.HTML):  # type: ignore[misc]  # the library has no types
    """Shows HTML, and takes none but what `markup.tag` has written and so has escaped.

    The browser takes it as it stands: `innerHTML`, unsanitised (jupyter-widgets/ipywidgets#2636).
    """

    _checked = traitlets.validate("value")(_only_markup)


class Stepper(anywidget.AnyWidget):
    """The six steps, a live status line and a progress bar that screen readers understand.

    It draws what it is given; a click on a step arrives as the message `{"show": key}`.
    `steps` are (key, title) and `phases`, in the same order, (phase, word); `words` are all other texts of its own.
    While `progress` says that something runs, no control of a panel can be changed.
    `{"file": key, "view": id}` asks for a file, which is sent to that view alone, with what else the message said.
    """

    _esm = STATIC / "stepper.js"
    _css = STATIC / "wizard.css"

    steps: traitlets.List[tuple[str, str]] = traitlets.List().tag(sync=True)
    phases: traitlets.List[tuple[str, str]] = traitlets.List().tag(sync=True)
    current = traitlets.Unicode().tag(sync=True)
    status = traitlets.Unicode().tag(sync=True)
    progress = traitlets.Dict().tag(sync=True)
    words: traitlets.Dict[str, str | dict[str, str]] = traitlets.Dict().tag(sync=True)
    language = traitlets.Unicode().tag(sync=True)
    _sent_at = 0.0

    def send_progress(self, progress: dict[str, object], figures: str) -> None:
        """Send whole percents and new texts at once, mere figures once a second: every message has its price."""
        same = {key: self.progress.get(key) for key in progress} == progress
        if not same or time.monotonic() - self._sent_at >= 1:
            self._sent_at = time.monotonic()
            self.progress = {**progress, "figures": figures}


class Buttons(anywidget.AnyWidget):
    """The three below a panel. A press arrives as `{"press": name, "offer": n}`.

    `buttons` are (name, words, whether it can be pressed); `offer` counts what the main one has offered: a press that
    meant something else by now is recognised by it. `why` is HTML, as in a `Drawing`.
    """

    _esm = STATIC / "buttons.js"

    buttons: traitlets.List[tuple[str, str, bool]] = traitlets.List().tag(sync=True)
    offer = traitlets.Int().tag(sync=True)
    why = traitlets.Unicode().tag(sync=True)
    _checked = traitlets.validate("why")(_only_markup)


class Choices(anywidget.AnyWidget):
    """Several of many: a named group of boxes to tick, which needs no Ctrl key as a list of the browser's does.

    `options` are (words, key), `value` the ticked keys in the options' order.
    """

    _esm = STATIC / "choices.js"

    description = traitlets.Unicode().tag(sync=True)
    options: traitlets.List[tuple[str, str]] = traitlets.List().tag(sync=True)
    value: traitlets.List[str] = traitlets.List(traitlets.Unicode()).tag(sync=True)
