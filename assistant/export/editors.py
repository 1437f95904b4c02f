"""For editors and notebooks: a kernelspec that travels with its environment, VS Code's settings, files to copy."""

from __future__ import annotations

import re
from pathlib import Path

import assistant.runtime
from assistant.export.bundle import MARKER, Bundle, without_path
from assistant.export.shells import variables
from assistant.export.templates import filled, json_text
from assistant.privacy import at_home


def kernelspec_text(bundle: Bundle) -> str:
    """Write `kernel.json` for `jupyter kernelspec install --prefix ENV kernelspec`, naming no path of this machine.

    Installed there, the interpreter lies four folders above it.
    """
    python = without_path(bundle.environment).python
    spec = {
        "metadata": {"origin": MARKER, "debugger": True},
        "argv": [f"{{resource_dir}}/../../../../{python}", "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": f"PyTorch {bundle.plan.torch} ({bundle.plan.backend.value.upper()})",
        "language": "python",
        "env": variables(bundle),
    }
    return json_text(spec, indent=1) + "\n"


def vscode_text(bundle: Bundle) -> str:
    """Write VS Code's settings; a home folder is written as VS Code's own variable for it."""
    python = re.sub("^~", "${userHome}", at_home(bundle.environment.python))
    told = {"python.defaultInterpreterPath": python, "python.envFile": "${workspaceFolder}/.env"}
    return filled("settings.json", told=told)


def verify_text(bundle: Bundle) -> str:
    """Write a program that computes on the device and compares with the CPU."""
    return filled("verify.py", torch=bundle.plan.torch)


def runtime_text(name: str) -> str:
    """Give one of the files that programs take along (`device.py`, `fallback.py`), marked."""
    text = (Path(assistant.runtime.__path__[0]) / name).read_text(encoding="utf-8")
    return f"# {MARKER}\n{text}"
