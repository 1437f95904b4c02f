"""The stepper: the six steps, a live status line and a progress bar that screen readers understand."""

from __future__ import annotations

from pathlib import Path

import anywidget
import traitlets

__all__ = ["Stepper"]

STATIC = Path(__file__).with_name("static")


class Stepper(anywidget.AnyWidget):
    """Draws what it is given; a click on a step arrives as the message `{"show": key}`.

    `words` are all texts of its own; `offer` counts what the main button has offered: a press on it is announced by the
    message `{"seen": offer}`, so that a press which meant something else by now can be told.
    `{"file": key, "view": id}` asks for a file, which is sent to that view alone.
    """

    _esm = STATIC / "stepper.js"
    _css = STATIC / "wizard.css"

    steps: traitlets.List[dict[str, str]] = traitlets.List().tag(sync=True)
    current = traitlets.Unicode().tag(sync=True)
    status = traitlets.Unicode().tag(sync=True)
    progress = traitlets.Dict().tag(sync=True)
    words: traitlets.Dict[str, str] = traitlets.Dict().tag(sync=True)
    language = traitlets.Unicode().tag(sync=True)
    offer = traitlets.Int().tag(sync=True)
