"""The notebook shell: a guided setup drawn with widgets; it decides nothing and touches nothing but the session."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assistant.wizard.app import SetupWizard

__all__ = ["open_wizard"]


def open_wizard(machine: str = "", *, language: str | None = None) -> SetupWizard:
    """Show the guided setup; call it as the last line of a cell.

    `machine` names a recorded machine to look at instead of this one; `language` is "en" or "zh_CN".
    A second call in the same kernel shows a wizard that is at work as it stands, and replaces one that is not.
    """
    from assistant.i18n import use_language  # noqa: PLC0415
    from assistant.wizard.app import open_here  # noqa: PLC0415 - widgets are loaded only where a wizard is wanted

    use_language(language)
    return open_here(machine)
