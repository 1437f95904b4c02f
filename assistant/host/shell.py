"""The shell that a command was typed into."""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import cache
from pathlib import PureWindowsPath
from typing import TYPE_CHECKING

from assistant.model.shell import HERE, Shell, shell_of

if TYPE_CHECKING:
    import psutil

_SHELLS = {"cmd": Shell.CMD, "powershell": Shell.POWERSHELL, "pwsh": Shell.POWERSHELL}


@cache  # nobody changes what a process was started from
def shell_for(system: str | None = None) -> Shell:
    """Return the shell for commands on a system; on this one, the shell that this process was started from."""
    shell = shell_of(system)
    if sys.platform == "win32" and shell is HERE:
        import psutil  # noqa: PLC0415 - 15 ms that only who prints a command need pay

        with suppress(psutil.Error, OSError):
            started_by = [_program_name(parent) for parent in psutil.Process().parents()]
            shell = next((_SHELLS[name] for name in started_by if name in _SHELLS), shell)
    return shell


def _program_name(process: psutil.Process) -> str:
    """Return the name of a process's program in lower case, without ".exe"."""
    try:
        name = process.name()
    except OSError:  # Wine does not name a process, but tells how it was started
        name = PureWindowsPath(*process.cmdline()[:1]).name
    return name.lower().removesuffix(".exe")
