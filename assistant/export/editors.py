"""For editors and notebooks: a kernelspec that travels with its environment, VS Code's settings, files to copy."""

from __future__ import annotations

import re
from pathlib import Path

import assistant.runtime
from assistant.export.setup import MARKER, Setup, without_path
from assistant.export.shells import variables
from assistant.export.templates import filled, json_text
from assistant.privacy import at_home
from assistant.views import kernel_title


def kernelspec_text(setup: Setup) -> str:
    """Write `kernel.json` for `jupyter kernelspec install --prefix ENV kernelspec`, naming no path of this machine."""
    # Jupyter fills in {resource_dir}: ENV/share/jupyter/kernels/NAME, four folders below ENV.
    python = without_path(setup.environment).python
    spec = {
        "metadata": {"origin": MARKER, "debugger": True},
        "argv": [f"{{resource_dir}}/../../../../{python}", "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": kernel_title(setup.plan),
        "language": "python",
        "env": variables(setup),
    }
    return json_text(spec, indent=1) + "\n"


def vscode_text(setup: Setup) -> str:
    """Write VS Code's settings; the home folder becomes `${userHome}`, VS Code's variable for it."""
    python = re.sub("^~", "${userHome}", at_home(setup.environment.python))
    settings = {"python.defaultInterpreterPath": python, "python.envFile": "${workspaceFolder}/.env"}
    return filled("settings.json", settings=settings)


def verify_text(setup: Setup) -> str:
    """Write `verify.py`, which computes on the device and compares with the CPU."""
    return filled("verify.py", torch=setup.plan.torch)


def runtime_text(name: str) -> str:
    """Return a file of `assistant/runtime/` (`device.py`, `fallback.py`) under our marker."""
    text = (Path(assistant.runtime.__path__[0]) / name).read_text(encoding="utf-8")
    return f"# {MARKER}\n{text}"
