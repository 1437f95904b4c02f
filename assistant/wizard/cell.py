"""The guided setup for a notebook's cell that failed: it begins at what is wrong."""

from __future__ import annotations

from assistant.session.cells import beginning_at
from assistant.wizard.app import SetupWizard, begin, standing

_CELL = "a cell"  # stands where the name of a machine does, and is none


def open_at_cell(printed: str, python: str) -> SetupWizard:
    """Show what is wrong with a cell, by what it printed and the Python of its kernel.

    A wizard of this kernel that is changing something is shown instead, as it stands.
    """
    if wizard := standing(None):
        return wizard
    return begin(_CELL, beginning_at(printed, python))
