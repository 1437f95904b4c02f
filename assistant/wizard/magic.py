"""The magic `%torch_doctor`: asks about the cell that failed last, in any notebook whose kernel has the assistant."""

from __future__ import annotations

import sys
import traceback

from assistant.host.extras import find_extra, missing_extra_error
from assistant.i18n import render
from assistant.model.visible import visible
from assistant.wizard import open_doctor


def torch_doctor(line: str = "") -> object:
    """Return the wizard at what is wrong with the cell that failed last; `%torch_doctor zh_CN` does so in Chinese.

    If no cell has failed, the kernel's environment is looked at. Without widgets, return one line on what to install.
    """
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
