"""Which Python is which, and the files that a front end offers."""

from __future__ import annotations

import sys

from assistant.host.live import LiveHost
from assistant.model.machine import Detection, Machine
from assistant.session.state import Detected, State
from assistant.session.steps import find_interpreters, is_kernel_ours


def test_this_python_is_named_and_a_server_that_is_not_there_is_not() -> None:
    """Outside of Jupyter only this interpreter is known."""
    found = find_interpreters(LiveHost())
    assert found["kernel"] == sys.executable
    assert set(found) == {"kernel", "server", "ours"}


def test_the_assistants_own_environment_is_known_for_what_it_is() -> None:
    """The one that start.py made is no place to offer; any other kernel's is."""

    class Elsewhere(LiveHost):
        """A machine on which this Python runs in another environment."""

        def facts(self, kind: str, *arguments: str) -> dict[str, object]:
            """Name the environment."""
            return {**super().facts(kind, *arguments), "prefix": self.prefix}

    for prefix, ours in (("/p/.assistant/python3.12-1-2-lab", True), ("/home/ada/.venv", False), ("", False)):
        host = Elsewhere()
        host.prefix = prefix
        assert (
            is_kernel_ours(
                State(detected=Detected(detection=Detection(machine=Machine()), pythons=find_interpreters(host)))
            )
            is ours
        )
    assert not is_kernel_ours(State())
