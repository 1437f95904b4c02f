"""The variables of the setup as shells read them: `.env` (also Docker Compose and VS Code), PowerShell, fish."""

from __future__ import annotations

import re
from collections.abc import Callable

from assistant.export.bundle import MARKER, Bundle
from assistant.host.quiet import quiet

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN = re.compile(r"[\w.,:/+@%=-]*", re.ASCII)
_POWERSHELL_QUOTES = re.compile(r"(['\u2018-\u201b])")  # PowerShell takes curly ones for straight ones


def variables(bundle: Bundle) -> dict[str, str]:
    """Give the plan's variables, `INFERENCE_DEVICE` (the device that was verified) and what keeps libraries quiet.

    Line feeds become spaces.
    """
    told = {**quiet(), **bundle.plan.env, "INFERENCE_DEVICE": bundle.report.device}
    return {name: " ".join(value.splitlines()) for name, value in sorted(told.items()) if _NAME.fullmatch(name)}


def dotenv_text(bundle: Bundle) -> str:
    """Write `.env`."""
    return _lines(bundle, lambda name, value: f"{name}={_quoted(value)}")


def powershell_text(bundle: Bundle) -> str:
    """Write a script to be dotted into PowerShell."""

    def line(name: str, value: str) -> str:
        return "$env:{} = '{}'".format(name, _POWERSHELL_QUOTES.sub(r"\1\1", value))

    return _lines(bundle, line)


def fish_text(bundle: Bundle) -> str:
    """Write a script to be sourced by fish."""
    escaped = str.maketrans({"\\": "\\\\", "'": "\\'"})
    return _lines(bundle, lambda name, value: f"set -gx {name} '{value.translate(escaped)}'")


def _lines(bundle: Bundle, line: Callable[[str, str], str]) -> str:
    return "\n".join([f"# {MARKER}", *(line(name, value) for name, value in variables(bundle).items()), ""])


def _quoted(line: str) -> str:
    """Quote only what needs it: Docker's `--env-file` takes quotes literally."""
    if _PLAIN.fullmatch(line):
        return line
    if "'" not in line:
        return f"'{line}'"  # the one form in which neither shells nor dotenv readers expand anything
    escaped = re.sub(r"([\\\"$`])", r"\\\1", line)
    return f'"{escaped}"'
