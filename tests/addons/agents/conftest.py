"""Servers that are started for a test, and ended after it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest
from addons.agents.agent import Agent, connected


@pytest.fixture
def connect() -> Iterator[Callable[..., Agent]]:
    """Give a function that starts a server and connects a client to it."""
    with contextlib.ExitStack() as stack:
        yield lambda *arguments, **options: stack.enter_context(connected(*arguments, **options))
