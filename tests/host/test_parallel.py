"""Work that is done on another thread before it is needed."""

from __future__ import annotations

import threading

import pytest

from assistant.host.process import Ahead
from assistant.model.errors import Cancelled


def test_the_result_is_there_when_it_is_asked_for() -> None:
    """What the work gives is given, and what it raises is raised where its result is wanted."""

    def late() -> None:
        raise TimeoutError

    assert Ahead(lambda: 42).result() == 42
    with pytest.raises(TimeoutError):
        Ahead(late).result()


def test_nobody_waits_who_wants_to_stop() -> None:
    """A check that raises ends the wait; the work is left to itself."""
    over = threading.Event()

    def check() -> None:
        raise Cancelled("Stopped.")

    with pytest.raises(Cancelled):
        Ahead(over.wait).result(check)
    over.set()
