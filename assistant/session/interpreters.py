"""Which Python is which: that of this kernel, that of the server which shows it, and that of the plan."""

from __future__ import annotations

from pathlib import Path

from assistant.host.base import Host
from assistant.install.site import interpreter
from assistant.install.target import default_target
from assistant.session.nouns import State

__all__ = ["interpreters", "target_python"]


def interpreters(host: Host) -> dict[str, str]:
    """Name the interpreters of this kernel and of its Jupyter server ("" where none was found)."""
    own, server = host.facts("platform"), host.facts("server")
    return {
        "kernel": str(own.get("executable", "")),
        "version": str(own.get("python", "")),
        "server": str(server.get("executable", "")),
    }


def target_python(state: State) -> str:
    """Name the interpreter of the environment that the plan goes into; "" while there is no plan."""
    if state.environment and state.preview is None:
        return state.environment.python
    if state.plan is None:
        return ""
    if state.target == "kernel":
        return state.pythons.get("kernel", "")
    target = Path(state.target).expanduser().absolute() if state.target else default_target(state.plan)
    return str(interpreter(target))
