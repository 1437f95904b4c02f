"""The notebook shell: a guided setup drawn with widgets; it decides nothing and touches nothing but the session."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assistant.wizard.app import SetupWizard


def open_wizard(machine: str = "", *, language: str | None = None) -> SetupWizard:
    """Return the guided setup as a widget; call it as the last line of a cell, which shows it.

    `machine` names a recorded machine to look at instead of this one; `language` is "en" or "zh_CN", by default the
    environment's for a new wizard. A second call in the same kernel returns the same wizard, switched to `language` if
    that is given. For another machine it closes the first and returns a new one, unless the first is changing
    something: then it returns that.
    """
    from assistant.i18n import use_language  # noqa: PLC0415
    from assistant.wizard.app import find_wizard, show_wizard  # noqa: PLC0415 - widgets are loaded only on demand

    wizard = find_wizard(machine)
    if wizard and language:
        wizard.speak(language)
    elif not wizard:
        use_language(language)
    return wizard or show_wizard(machine)


def open_doctor(printed: str = "", python: str = "", *, language: str | None = None) -> SetupWizard:
    """Return the wizard at the page on what is wrong with a notebook's cell, and what helps; call it as `open_wizard`.

    `printed` is what the cell printed, above all its traceback; `python` the interpreter of its kernel, "" for this
    one; `language` that of a new wizard, by default the environment's. This kernel's wizard is closed, but one that is
    changing something is returned as it is.
    """
    from assistant.i18n import use_language  # noqa: PLC0415
    from assistant.wizard.app import open_at_cell  # noqa: PLC0415 - widgets are loaded only on demand

    use_language(language)
    return open_at_cell(printed, python or sys.executable)


def torch_doctor(line: str = "") -> object:
    """Return the wizard at what is wrong with the cell that failed last; `%torch_doctor zh_CN` does so in Chinese.

    If no cell has failed, the kernel's environment is looked at. Without widgets, return one line on what to install.
    """
    import traceback  # noqa: PLC0415 - only a question pays for it

    from assistant.host.extras import find_extra, missing_extra_error  # noqa: PLC0415 - likewise
    from assistant.i18n import render  # noqa: PLC0415 - likewise
    from assistant.model.visible import visible  # noqa: PLC0415 - likewise

    failure = getattr(sys, "last_value", None)  # where Python keeps the exception that nobody caught
    printed = "".join(traceback.format_exception(failure)) if failure else ""
    try:
        return open_doctor(printed, language=line.strip() or None)
    except ModuleNotFoundError as error:
        found = find_extra(error.name or "")
        if found is None:
            raise
        return _Sentence(visible(render(missing_extra_error(*found).message)))


class _Sentence(str):
    """A text that a notebook shows as it is, without quotation marks."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)
