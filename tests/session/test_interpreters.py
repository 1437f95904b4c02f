"""Which Python is which, and the files that a front end offers."""

from __future__ import annotations

import sys
from pathlib import Path

from assistant.host.live import LiveHost
from assistant.model.plan import Backend, Plan, Planning
from assistant.model.report import Environment
from assistant.session.exporting import downloads
from assistant.session.interpreters import interpreters, kernel_is_ours, target_python
from assistant.session.state import State

PLAN = Plan(backend=Backend.CPU, variant="cpu", torch="2.13.0", python="3.12")
PLANNED = {"planning": Planning(choice=PLAN, plans=(PLAN,))}


def test_this_python_is_named_and_a_server_that_is_not_there_is_not() -> None:
    """Outside of Jupyter only this interpreter is known."""
    found = interpreters(LiveHost())
    assert found["kernel"] == sys.executable
    assert set(found) == {"kernel", "version", "server", "ours"}


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
        assert kernel_is_ours(State(pythons=interpreters(host))) is ours
    assert not kernel_is_ours(State())


def test_the_target_follows_the_plan_and_the_users_wish(tmp_path: Path) -> None:
    """By default a folder of the plan's own, else the folder that was named, or this kernel's own environment."""
    assert target_python(State()) == ""
    assert "cpu-torch2.13.0-py3.12" in target_python(State(**PLANNED))
    assert target_python(State(target=str(tmp_path), **PLANNED)).startswith(str(tmp_path))
    assert target_python(State(target="kernel", pythons={"kernel": "/k/python"}, **PLANNED)) == "/k/python"


def test_an_environment_that_was_made_is_the_target() -> None:
    """After the installation its own interpreter is named."""
    made = Environment(path="/env", python="/env/bin/python")
    assert target_python(State(environment=made, **PLANNED)) == "/env/bin/python"


def test_files_are_given_with_their_content_and_missing_ones_with_the_reason(tmp_path: Path) -> None:
    """A file that is gone does not hide the others."""
    file = tmp_path / "a.txt"
    file.write_bytes(b"\xff text")
    there, gone = downloads([str(file), str(tmp_path / "gone")])
    assert (there.name, there.content, there.fault) == ("a.txt", b"\xff text", "")
    assert gone.content == b""
    assert gone.fault
