"""Runs the tasks of a session without a thread, so that a test sees each state as soon as it is there."""

from __future__ import annotations

from collections.abc import Callable


class InlineRunner:
    """Does the work in the caller's thread and shows each event as it comes."""

    pause = 0.0

    def start(self, work: Callable[[], object]) -> None:
        """Do the work."""
        work()
