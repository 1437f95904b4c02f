"""The shell that a command was typed into."""

from __future__ import annotations

import sys
from contextlib import suppress

from assistant.model.shell import HERE, Shell, shell_of

_SHELLS = {"cmd.exe": Shell.CMD, "powershell.exe": Shell.POWERSHELL, "pwsh.exe": Shell.POWERSHELL}


def shell_for(system: str | None = None) -> Shell:
    """Return what lines for a system are typed into: on this one, the shell that this process was started from."""
    shell = shell_of(system)
    if sys.platform == "win32" and shell is HERE:
        import psutil  # noqa: PLC0415 - 15 ms that only who prints a command need pay

        with suppress(psutil.Error):
            started_by = [parent.name().lower() for parent in psutil.Process().parents()]
            shell = next((_SHELLS[name] for name in started_by if name in _SHELLS), shell)
    return shell
