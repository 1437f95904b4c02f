"""The variables of the setup as shells read them: `.env` (also Docker Compose and VS Code), PowerShell, fish."""

from __future__ import annotations

import re
from collections.abc import Callable

from assistant.export.setup import MARKER, Setup
from assistant.host.telemetry import quiet
from assistant.model.shell import Shell, setting

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Windows refuses every script of PowerShell, one that was made here too, unless that is changed; here until the window
# is closed: https://learn.microsoft.com/powershell/module/microsoft.powershell.core/about/about_execution_policies
ALLOW_SCRIPTS = "Set-ExecutionPolicy -Scope Process RemoteSigned -Force"
_PLAIN = re.compile(r"[\w.,:/+@%=-]*", re.ASCII)


def variables(setup: Setup) -> dict[str, str]:
    """Return the plan's variables, `INFERENCE_DEVICE` (the one that was verified) and what keeps libraries quiet.

    Line breaks become spaces: no format of these has a way to write one.
    """
    every = {**quiet(), **setup.plan.env, "INFERENCE_DEVICE": setup.report.device}
    return {name: " ".join(value.splitlines()) for name, value in sorted(every.items()) if _NAME.fullmatch(name)}


def dotenv_text(setup: Setup) -> str:
    """Write `.env`."""
    return _lines(setup, lambda name, value: f"{name}={_quoted(value)}")


def powershell_text(setup: Setup) -> str:
    """Write a script to be dotted into PowerShell."""
    return _lines(setup, lambda name, value: setting(name, value, Shell.POWERSHELL))


def fish_text(setup: Setup) -> str:
    """Write a script to be sourced by fish."""
    escaped = str.maketrans({"\\": "\\\\", "'": "\\'"})
    return _lines(setup, lambda name, value: f"set -gx {name} '{value.translate(escaped)}'")


def _lines(setup: Setup, line: Callable[[str, str], str]) -> str:
    return "\n".join([f"# {MARKER}", *(line(name, value) for name, value in variables(setup).items()), ""])


def _quoted(line: str) -> str:
    """Quote only what needs it: `docker run --env-file` keeps quotes (https://github.com/docker/cli/issues/3630)."""
    if _PLAIN.fullmatch(line):
        return line
    if "'" not in line:
        return f"'{line}'"  # the one form in which neither shells nor dotenv readers expand anything
    escaped = re.sub(r"([\\\"$`])", r"\\\1", line)
    return f'"{escaped}"'
