"""For editors and notebooks: a kernelspec that travels with its environment, VS Code's settings, files to copy."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import assistant.runtime
from assistant.export.setup import MARKER, Setup, verified, without_path
from assistant.export.shells import powershell_quoted, variables
from assistant.export.templates import filled, json_text
from assistant.model.plan import Plan
from assistant.model.record import Record
from assistant.model.report import Environment
from assistant.privacy import at_home
from assistant.views import kernel_title


def kernelspec_text(setup: Setup) -> str:
    """Write `kernel.json` for `jupyter kernelspec install --prefix ENV kernelspec`, naming no path of this machine."""
    # Jupyter fills in {resource_dir}: ENV/share/jupyter/kernels/NAME, four folders below ENV.
    python = without_path(verified(setup)[0]).python
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
    python = re.sub("^~", "${userHome}", at_home(verified(setup)[0].python))
    settings = {"python.defaultInterpreterPath": python, "python.envFile": "${workspaceFolder}/.env"}
    return filled("settings.json", settings=settings)


def verify_text(setup: Setup) -> str:
    """Write `verify.py`, which computes on the device and compares with the CPU."""
    return filled("verify.py", torch=setup.plan.torch)


def runtime_text(name: str) -> str:
    """Return a file of `assistant/runtime/` (`device.py`, `fallback.py`) under our marker."""
    text = (Path(assistant.runtime.__path__[0]) / name).read_text(encoding="utf-8")
    return f"# {MARKER}\n{text}"


class Uses(Record, frozen=True):
    """How an environment is used elsewhere: a line for the terminal, and the interpreter to choose in VS Code."""

    terminal: str
    interpreter: str


def uses(environment: Environment, plan: Plan, *, windows: bool) -> Uses:
    """Return the line that makes an environment the terminal's own, with the plan's variables, and its interpreter.

    The line is for bash and zsh, on Windows for PowerShell; conda's environments are activated by conda.
    """
    python = environment.python
    folder, separator = (python.rpartition("\\")[0], "\\") if windows else (python.rpartition("/")[0], "/")
    inside = (
        folder.rpartition(separator)[2] in {"bin", "Scripts"} and not (Path(environment.path) / "conda-meta").is_dir()
    )
    if windows:
        settings = [f"$env:{name} = {powershell_quoted(value)};" for name, value in plan.env.items()]
        activate = f"& {powershell_quoted(f'{folder}{separator}Activate.ps1')}"
        conda = f"conda activate {powershell_quoted(environment.path)}"
    else:
        settings = [f"export {name}={shlex.quote(value)};" for name, value in plan.env.items()]
        activate, conda = (
            f"source {shlex.quote(f'{folder}/activate')}",
            f"conda activate {shlex.quote(environment.path)}",
        )
    return Uses(terminal=" ".join([*settings, activate if inside else conda]), interpreter=python)
