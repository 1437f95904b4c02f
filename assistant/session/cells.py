"""A notebook's cell that failed: what it printed, and the environment of its kernel, whoever asks about them."""

from __future__ import annotations

from pathlib import Path

from assistant.install import interpreter, is_environment, read_marker
from assistant.model.plan import Planning
from assistant.model.record import replace
from assistant.model.report import Environment
from assistant.parsers.decode import tidied
from assistant.session.pasted import WHOLE
from assistant.session.state import Page, Pasted, State


def beginning_at(printed: str, python: str) -> State:
    """Return where a guided setup begins: at what is wrong with a cell and with the environment of its kernel's Python.

    A Python that is not on this machine, as one behind a gateway is not, belongs to no environment here.
    """
    path = Path(python)
    pasted = Pasted(text=tidied(printed)[-WHOLE:])
    begins = State(page=Page.WRONG, pasted=pasted, failed_cell=True)
    if not (path.is_absolute() and path.is_file()):
        return begins
    above = (path.parent, path.parent.parent)  # conda on Windows keeps python.exe in the environment's own folder
    folder = next(filter(is_environment, above), None)
    if folder is None:
        return replace(begins, environment=Environment(path=str(path.parent.parent), python=str(path)))
    if marker := read_marker(folder):
        planning = Planning(choice=marker.plan, plans=(marker.plan,))
        return replace(begins, environment=marker.environment, planning=planning)
    return replace(begins, environment=Environment(path=str(folder), python=str(interpreter(folder))))
