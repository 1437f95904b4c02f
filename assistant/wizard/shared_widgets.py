"""The widgets that the wizard is made of, its own and those of ipywidgets with one look for each kind."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import anywidget
import ipywidgets as widgets
import traitlets

from assistant.i18n import Message, render
from assistant.model.visible import Markup

STATIC = Path(__file__).with_name("static")
DRAWING = threading.RLock()  # held while widgets are drawn, opened, or take what the browser set


def join_modules(*names: str) -> str:
    """Return one text of several files: what widgets share comes before their own, as a module imports nothing.

    Empty lines and comments stay here, as each browser would be sent them.
    """
    whole = "".join((STATIC / name).read_text(encoding="utf-8") for name in names)
    return re.sub(r"^[ \t]*(?://.*|/\*[^*]*\*/)?\n", "", whole, flags=re.MULTILINE)


class Late(widgets.Widget):  # type: ignore[misc]  # the library has no types
    """A widget of which the browser hears when it is shown first, with all that it holds by then: one message."""

    def open(self) -> None:
        """Wait for `model_id`, which is asked for when this is shown."""

    @property
    def model_id(self) -> str:
        """The model's number; the browser is told of the model now, if it has not been."""
        with DRAWING:
            if self.comm is None:
                super().open()
        return str(super().model_id)

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Take what the browser set, once no other thread draws: a drawing takes each change for its own."""
        with DRAWING:
            super().set_state(sync_data)

    def close(self) -> None:
        """Free the model, and write its words anew no more."""
        with DRAWING:
            _worded.pop(self, None)
        super().close()


@cache
def _late(kind: type[widgets.Widget]) -> type[widgets.Widget]:
    """Return a kind of widget that is `Late`."""
    return type(kind.__name__, (Late, kind), {"__module__": kind.__module__})


def make(kind: type[widgets.Widget], **traits: Any) -> Any:  # noqa: ANN401 - as the library, which has no types
    """Return a new `Late` widget of a kind with these traits; how it looks is said by the stylesheet alone.

    One layout and one style serve all of a kind: else the browser would be sent three models for each widget. A trait
    that is a `Message`, or a function that returns words, is put in the language in force, and again by `reword`.
    """
    style = kind.class_traits().get("style")
    looks = {"style": shared(style.klass)} if style else {}
    words = {name: value for name, value in traits.items() if callable(value) or isinstance(value, Message)}
    late = _late(kind)  # type: ignore[arg-type]  # the library has no types
    made = late(layout=shared(widgets.Layout), **looks, **traits | _in_force(words))
    if words:
        with DRAWING:
            _worded[made] = words
    return made


Words = Mapping[str, Message | Callable[[], object]]
_worded: WeakKeyDictionary[widgets.Widget, Words] = WeakKeyDictionary()


def _in_force(words: Words) -> dict[str, object]:
    """Return words in the language in force."""
    return {name: render(one) if isinstance(one, Message) else one() for name, one in words.items()}


def reword() -> None:
    """Write the words of all widgets anew, in the language in force; what was typed, chosen and opened stays."""
    with DRAWING:
        for widget, words in list(_worded.items()):
            with widget.hold_sync():
                for name, text in _in_force(words).items():
                    setattr(widget, name, text)


@cache
def shared(kind: type[widgets.Widget]) -> widgets.Widget:
    """Return the one layout or style for all widgets of a kind."""
    return kind()


def _only_markup(_widget: widgets.Widget, proposal: dict[str, Any]) -> str:
    """Return a proposed value as text; raise `TypeError` unless it is `Markup`, so that none is forgotten."""
    if not isinstance(proposal["value"], Markup):
        raise TypeError(proposal["value"])
    return str(proposal["value"])  # what is sent to the browser knows no kinds of text


class Drawing(widgets.HTML):  # type: ignore[misc]  # the library has no types
    """Shows HTML, and takes none but what `markup.tag` has written and so has escaped.

    The browser inserts it unchanged: `innerHTML`, unsanitised (jupyter-widgets/ipywidgets#2636).
    """

    _checked = traitlets.validate("value")(_only_markup)


class Head(anywidget.AnyWidget):
    """The title, the ways to the other pages, and the language.

    A press arrives as `{"page": key}` or `{"language": code}`; `links` are (key, words), `languages` (code, name).
    `view` changes with what is shown: its heading then takes the focus. While `held`, no control can be changed. Of the
    page's parts those whose places are `hidden` are not seen.
    `{"file": key, "view": id}` asks for a file, which is sent to that view alone, with what else the message said.
    """

    _esm = join_modules("element.js", "head.js")
    _css = join_modules("wizard.css")

    links: traitlets.List[tuple[str, str]] = traitlets.List().tag(sync=True)
    languages: traitlets.List[tuple[str, str]] = traitlets.List().tag(sync=True)
    language = traitlets.Unicode().tag(sync=True)
    page = traitlets.Unicode().tag(sync=True)
    view = traitlets.Unicode().tag(sync=True)
    words: traitlets.Dict[str, str] = traitlets.Dict().tag(sync=True)
    held = traitlets.Bool().tag(sync=True)
    hidden: traitlets.List[int] = traitlets.List().tag(sync=True)


class Foot(anywidget.AnyWidget):
    """The buttons, always in sight; while something works, a bar that screen readers understand and the time.

    `buttons` are (name, words, whether it can be pressed). A press arrives as `{"press": name, "offer": n, "view":
    id}`; `offer` counts what was offered: a press that meant something else by now is recognised by it. `note` is HTML,
    as in a `Drawing`; screen readers read `status` out. A message `{"event": name, "detail": …, "view": id}` is
    dispatched as an event of that page's document; if nobody there takes it, `{"refused": name, "detail": …}` comes
    back.
    """

    _esm = join_modules("element.js", "hand_on.js", "foot.js")

    buttons: traitlets.List[tuple[str, str, bool]] = traitlets.List().tag(sync=True)
    offer = traitlets.Int().tag(sync=True)
    note = traitlets.Unicode().tag(sync=True)
    status = traitlets.Unicode().tag(sync=True)
    words: traitlets.Dict[str, str] = traitlets.Dict().tag(sync=True)
    progress = traitlets.Dict().tag(sync=True)
    _checked = traitlets.validate("note")(_only_markup)
    _sent_at = 0.0

    def send_progress(self, progress: Mapping[str, object], figures: Mapping[str, object]) -> None:
        """Send `progress` at once if it has changed, mere `figures` at most once a second, as messages cost time.

        Its `share` is in whole percent, None if it is unknown.
        """
        same = {key: self.progress.get(key) for key in progress} == progress
        if not same or time.monotonic() - self._sent_at >= 1:
            self._sent_at = time.monotonic()
            self.progress = {**progress, **figures, "at": time.time()}


class Foldable(anywidget.AnyWidget):
    """A line that shows and hides something."""

    _esm = join_modules("fold.js")

    title = traitlets.Unicode().tag(sync=True)
    unfolded = traitlets.Bool().tag(sync=True)


class Fold(Foldable):
    """A line that shows and hides the `box` that stands below it.

    The widgets that it `holds` are put there, and so sent to the browser, when it is unfolded for the first time.
    """

    holds: tuple[widgets.Widget, ...] = ()

    @cached_property
    def box(self) -> widgets.VBox:
        """The place of what is shown and hidden."""
        return make(widgets.VBox, _dom_classes=("ptsa-folded",))

    @traitlets.observe("unfolded")
    def _fill(self, _change: object) -> None:
        if self.holds:
            self.box.children = self.holds


class Details(Foldable):
    """A line that shows and hides HTML of its own, which is written and sent to the browser while it is unfolded.

    Whoever shows it draws its page anew when it is unfolded.
    """

    value = traitlets.Unicode().tag(sync=True)
    _checked = traitlets.validate("value")(_only_markup)

    def draw(self, drawn: Callable[[], Markup]) -> None:
        """Show what a function returns, which is called only while this is unfolded."""
        if self.unfolded:
            self.value = drawn()


class LogBox(anywidget.AnyWidget):
    """A place to paste, drop or choose a log of any size, which the browser keeps until the main button is pressed.

    Then it is sent in pieces: `{"id": id, "piece": n, "last": bool, "name": file}` with one buffer each, of which the
    next follows when `{"id": id, "piece": n}` has come back, with a "fault" if the log is refused. What the last
    piece completes goes to `arrived`, which returns why it cannot be taken, "" if it can. `{"edited": true}` says that
    the box holds another text than `shown` (the fields of `session.state.Pasted`) now. While `busy` it is only read.
    """

    _esm = join_modules("element.js", "logbox.js")

    words: traitlets.Dict[str, str] = traitlets.Dict().tag(sync=True)
    shown: traitlets.Dict[str, str | int] = traitlets.Dict().tag(sync=True)
    language = traitlets.Unicode().tag(sync=True)
    busy = traitlets.Bool().tag(sync=True)

    def __init__(self, edited: Callable[[], None], arrived: Callable[[bytes, str], str]) -> None:
        super().__init__(layout=shared(widgets.Layout))
        self._edited, self._arrived = edited, arrived
        self._pieces: dict[str, list[bytes]] = {}
        self.on_msg(self._on_message)

    def _on_message(self, _widget: object, content: object, buffers: Sequence[bytes]) -> None:
        """Pass on that the text was changed, or collect a piece of a log, as the browser's message says."""
        message = content if isinstance(content, dict) else {}
        if message.get("edited"):
            self._edited()
        if "piece" in message:
            self._collect(message, bytes(buffers[0]) if buffers else b"")

    def _collect(self, message: dict[str, Any], piece: bytes) -> None:
        """Keep a piece of a log and confirm it; after the last one pass the whole log on, and send back any fault.

        A new log ends the one before; a piece that does not follow the last one is ignored.
        """
        key, number = str(message.get("id")), message["piece"]
        if number == 0:
            self._pieces = {key: []}
        before, fault = self._pieces.get(key), ""
        if before is None or number != len(before):
            return  # another window has begun to send its own
        before.append(piece)
        if message.get("last"):
            fault = self._arrived(b"".join(self._pieces.pop(key)), str(message.get("name") or ""))
        self.send({"id": key, "piece": number, "fault": fault})
