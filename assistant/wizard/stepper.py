"""The stepper: the six steps, a live status line and a progress bar that screen readers understand."""

from __future__ import annotations

from pathlib import Path

import anywidget
import traitlets

STATIC = Path(__file__).with_name("static")


class Stepper(anywidget.AnyWidget):
    """Draws what it is given; a click on a step arrives as the message `{"show": key}`.

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


class Buttons(anywidget.AnyWidget):
    """The three below a panel. A press arrives as `{"press": name, "offer": n}`.

    `buttons` are (name, words, whether it can be pressed); `offer` counts what the main one has offered: a press that
    meant something else by now can be told by it. `why` is HTML, already escaped.
    """

    _esm = STATIC / "buttons.js"

    buttons: traitlets.List[tuple[str, str, bool]] = traitlets.List().tag(sync=True)
    offer = traitlets.Int().tag(sync=True)
    why = traitlets.Unicode().tag(sync=True)
