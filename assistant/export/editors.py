"""For editors and notebooks: a kernelspec that travels with its environment, VS Code's files, files to copy."""

from __future__ import annotations

import re
from pathlib import Path

import assistant.runtime
from assistant.export.drift import DIFFERS
from assistant.export.setup import MARKER, Setup, without_path
from assistant.export.shells import ALLOW_SCRIPTS, variables
from assistant.export.templates import filled, json_text
from assistant.i18n import say
from assistant.model.plan import Plan
from assistant.model.record import Record
from assistant.model.report import Environment
from assistant.model.shell import HERE, Shell, powershell_quoted, quoted, setting
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
    """Write VS Code's settings."""
    python = _at_user_home(setup.environment.python)
    settings = {"python.defaultInterpreterPath": python, "python.envFile": "${workspaceFolder}/.env"}
    return filled("settings.json", settings=settings)


def vscode_tasks_text(setup: Setup) -> str:
    """Write VS Code's tasks that run `assistant check`, and what finds the differences in its output.

    The output names the file, then each difference on a line of its own; those become problems of that file. Without
    COLUMNS a line that is wider than the panel would go on below it, and a problem would lose its end.
    """
    target = _at_user_home(setup.environment.path)
    check = ["check", "${workspaceFolder}/assistant.toml", "--target", target]
    found = {
        "owner": "torch-setup-assistant",
        "source": "assistant check",
        "severity": "warning",
        "fileLocation": "absolute",
        "pattern": [
            {"kind": "file", "regexp": r"^(\S.*)$", "file": 1},
            {"regexp": rf"^ {{2}}{DIFFERS} (.+)$", "message": 1, "loop": True},
        ],
    }
    shared = {
        "type": "process",
        "command": "assistant",
        "options": {"env": {"COLUMNS": "10000"}},
        "presentation": {"reveal": "silent", "revealProblems": "onProblem", "clear": True},
        "problemMatcher": found,
    }
    tasks = [
        {"label": say("PyTorch: compare with the setup that was exported"), **shared, "args": [*check, "--no-verify"]},
        {"label": say("PyTorch: compare, and compute"), **shared, "args": check},
    ]
    return filled("settings.json", settings={"version": "2.0.0", "tasks": tasks})


def _at_user_home(path: str) -> str:
    """Write a path with `${userHome}` for the home folder, which is VS Code's variable for it."""
    return re.sub("^~", "${userHome}", at_home(path))


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


def uses(environment: Environment, plan: Plan, shell: Shell = HERE) -> Uses:
    """Return the line that makes an environment the terminal's own, with the plan's variables, and its interpreter.

    On Windows it is for PowerShell where either shell may be at hand; conda's environments are activated by conda.
    """
    python = environment.python
    separator = "/" if shell is Shell.SH else "\\"
    shell = Shell.POWERSHELL if shell is Shell.WINDOWS else shell
    folder = python.rpartition(separator)[0]
    script = {
        Shell.SH: f"source {quoted(f'{folder}/activate', shell)}",
        Shell.CMD: quoted(f"{folder}\\activate.bat", shell),
        Shell.POWERSHELL: f"{ALLOW_SCRIPTS}; & {powershell_quoted(f'{folder}{separator}Activate.ps1')}",
    }[shell]
    by_conda = (Path(environment.path) / "conda-meta").is_dir()
    if by_conda or folder.rpartition(separator)[2] not in {"bin", "Scripts"}:
        script = f"conda activate {quoted(environment.path, shell)}"
    lines = [setting(name, value, shell) for name, value in plan.env.items()]
    between = " && " if shell is Shell.CMD else "; "
    return Uses(terminal=between.join([*lines, script]), interpreter=python)
