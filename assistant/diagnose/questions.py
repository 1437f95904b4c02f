"""What to ask the user when a fact decides and nobody knows it."""

from __future__ import annotations

from assistant.i18n import _
from assistant.model.finding import Remedy


def question(fact: str) -> Remedy:
    """Ask for one fact, with the command that tells it, as a remedy that comes before all others."""
    asked = {
        "os": (_("First tell the system: is this Windows, WSL, native Linux or macOS?"), ("uname -a", "ver")),
        "vendor": (_("First tell which GPU is in the computer."), ("assistant detect",)),
        "gpu": (_("First tell which GPU is in the computer."), ("assistant detect",)),
        "packages": (_("First tell which versions are installed."), ("python -m pip list",)),
        "python": (_("First tell which Python runs the program."), ("python -VV",)),
        "container": (_("First tell whether the program runs in a container."), ("cat /proc/1/cgroup",)),
    }
    text, commands = asked.get(fact, (_("First let the assistant look at the machine."), ("assistant detect",)))
    return Remedy(text=text, commands=commands)
