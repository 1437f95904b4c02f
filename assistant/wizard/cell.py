"""The guided setup for a notebook's cell that failed: it begins at what is wrong."""

from __future__ import annotations

from assistant.host.live import IN_BROWSER
from assistant.model.record import replace
from assistant.session.cells import beginning_at
from assistant.wizard.app import DEMO, SetupWizard, begin, standing

_CELL = "a cell"  # stands where the name of a machine does, and is none


def open_at_cell(printed: str, python: str) -> SetupWizard:
    """Show what is wrong with a cell, by what it printed and the Python of its kernel.

    A wizard of this kernel that is changing something is shown instead, as it stands.
    """
    if wizard := standing(None):
        return wizard
    begins = beginning_at(printed, python)
    return begin(_CELL, replace(begins, machine=DEMO) if IN_BROWSER else begins)
