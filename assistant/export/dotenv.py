"""`.env`: the variables of the setup, as python-dotenv, shells, Docker Compose and VS Code read them."""

from __future__ import annotations

import re

from assistant.export.bundle import MARKER, Bundle

__all__ = ["dotenv_text"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN = re.compile(r"[\w.,:/+@%=-]*", re.ASCII)


def dotenv_text(bundle: Bundle) -> str:
    """Write `INFERENCE_DEVICE`, the device that was verified, and the plan's variables."""
    variables = {**bundle.plan.env, "INFERENCE_DEVICE": bundle.report.device}
    lines = [f"{name}={_quoted(value)}" for name, value in sorted(variables.items()) if _NAME.fullmatch(name)]
    return "\n".join([f"# {MARKER}", *lines, ""])


def _quoted(value: str) -> str:
    """Quote only what needs it: Docker's `--env-file` takes quotes literally. Line feeds cannot be carried."""
    line = " ".join(value.splitlines())
    if _PLAIN.fullmatch(line):
        return line
    if "'" not in line:
        return f"'{line}'"  # the one form in which neither shells nor dotenv readers expand anything
    escaped = re.sub(r"([\\\"$`])", r"\\\1", line)
    return f'"{escaped}"'
