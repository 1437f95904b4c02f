"""Shows wizards without a thread that draws, so that a test sees each state as soon as it is there."""

from __future__ import annotations

from runners import watch

from assistant.session.session import Session
from assistant.wizard.app import SetupWizard


def wizard_on(session: Session) -> SetupWizard:
    """Show a session in a wizard that draws at each change."""
    wizard = SetupWizard(session)
    watch(session, lambda _old, _new: wizard.catch_up())
    return wizard
