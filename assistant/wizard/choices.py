"""Several of many: a box to tick for each, which needs no Ctrl key as a list of the browser's does."""

from __future__ import annotations

import anywidget
import traitlets

from assistant.wizard.stepper import STATIC


class Choices(anywidget.AnyWidget):
    """A named group of boxes; `options` are (words, key), `value` the ticked keys in the options' order."""

    _esm = STATIC / "choices.js"

    description = traitlets.Unicode().tag(sync=True)
    options: traitlets.List[tuple[str, str]] = traitlets.List().tag(sync=True)
    value: traitlets.List[str] = traitlets.List(traitlets.Unicode()).tag(sync=True)
