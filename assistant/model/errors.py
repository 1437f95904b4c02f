"""The few ways in which the assistant fails; each carries one sentence, one next step and an exit code."""

from __future__ import annotations

from pathlib import Path

from assistant.i18n import Text, _, render


class AssistantError(Exception):
    """A failure told in one sentence, with the next step in `hint`; the cause is chained."""

    exit_code = 1

    def __init__(self, message: Text, *, hint: Text = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return render(self.message)


class WorkFailed(AssistantError):
    """The work itself failed: an install, a verification, a file that could not be written."""


class BadInput(AssistantError):
    """What the user gave cannot be read or makes no sense."""

    exit_code = 2


class NothingFits(AssistantError):
    """No wheel exists for this machine and request."""

    exit_code = 3


class Cancelled(AssistantError):
    """The user stopped the work; what had been begun was taken back."""

    exit_code = 130


def unreadable(file: str | Path, error: OSError) -> BadInput:
    """Say that a file which the user named cannot be read."""
    message = _("{file} cannot be read: {reason}.", file=file, reason=error.strerror or error)
    return BadInput(message, hint=_("Check the name and try again."))


def unwritable(file: str | Path, error: OSError) -> WorkFailed:
    """Say that a file cannot be written where the user wants it."""
    message = _("{file} cannot be written: {reason}.", file=file, reason=error.strerror or error)
    return WorkFailed(message, hint=_("Choose another place."))
