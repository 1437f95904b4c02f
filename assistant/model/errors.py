"""The ways in which the assistant fails, each with one sentence, the next step and an exit code."""

from __future__ import annotations

from pathlib import Path

from assistant.i18n import Text, _, render


class AssistantError(Exception):
    """A failure: one sentence in `message`, the next step in `hint`; the cause is `__cause__`."""

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
    """The user stopped the work; all changes were rolled back."""

    exit_code = 130


def unreadable_error(file: str | Path, error: OSError) -> BadInput:
    """Return the error for a file of the user's that cannot be read."""
    message = _("{file} cannot be read: {reason}.", file=file, reason=error.strerror or error)
    return BadInput(message, hint=_("Check the name and try again."))


def unwritable_error(file: str | Path, error: OSError) -> WorkFailed:
    """Return the error for a file that cannot be written where the user wants it."""
    message = _("{file} cannot be written: {reason}.", file=file, reason=error.strerror or error)
    return WorkFailed(message, hint=_("Choose another place."))
