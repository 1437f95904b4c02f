"""For editors and notebooks: a kernelspec, VS Code's files, files to copy, and the first notebook on a new kernel."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

import assistant.runtime
from assistant.export.config import DIFFERS
from assistant.export.launch import ALLOW_SCRIPTS
from assistant.export.setup import MARKER, Setup, filled, json_text, variables, without_path
from assistant.host.files import read_plain, write_whole
from assistant.i18n import say
from assistant.model.errors import unwritable
from assistant.model.plan import Backend, Plan
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


NAME = "first-steps"
_KERNEL = "python3"  # the one that is there in any case, for an environment without a kernel of its own
_MOST = 1000  # chosen: a folder with so many notebooks of that name has another trouble

# The name by which torch knows a backend's devices, and the part of torch that says whether there is one.
_KINDS = {
    Backend.CUDA: ("cuda", "cuda"),
    Backend.ROCM: ("cuda", "cuda"),  # a ROCm build calls its devices cuda
    Backend.XPU: ("xpu", "xpu"),
    Backend.MPS: ("mps", "backends.mps"),
}


def first_notebook(environment: Environment, plan: Plan) -> dict[str, Any]:
    """Return a notebook (nbformat 4.5) for an environment's kernel, in the language in force.

    It needs nothing but torch, and draws with matplotlib where the plan has that.
    """
    plots = any(Requirement(line).name == "matplotlib" for line in plan.requirements)
    title = say("# First steps with PyTorch")
    runs = say(
        "This notebook runs on **{kernel}**. Shift + Enter runs a cell and goes on to the next; change what you like.",
        kernel=environment.launcher_name or plan.backend.title,
    )
    device = say(
        "A *tensor* is a table of numbers. It lives on a device, and what you compute with it is computed there."
    )
    picture = say("One short formula, applied to 240,000 points at once: a Julia set.")
    learning = say(
        "A small network learns to tell two spirals apart: the loss falls, and the picture shows what it sees."
    )
    speed = say("How long does one training step of a larger network take?")
    onwards = say(
        "**Next:** `%pip install NAME` in a cell adds a package to this environment and to no other. "
        "[PyTorch's tutorials](https://docs.pytorch.org/tutorials/beginner/basics/intro.html) build on these steps."
    )
    kind, module = _KINDS.get(plan.backend, ("", ""))
    cells = [
        _words(title, runs),
        _words(say("## The device"), device),
        _code("device", backend=plan.backend.value, kind=kind, module=module),
        _words(say("## A picture"), picture),
        _code("show", hidden=not plots, plots=plots),
        _code("picture"),
        _words(say("## Learning"), learning),
        _code("learning"),
        _words(say("## Speed"), speed),
        _code("speed"),
        _words(onwards),
    ]
    kernel = {"name": environment.kernel or _KERNEL, "display_name": environment.launcher_name, "language": "python"}
    return {
        "metadata": {"origin": MARKER, "kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
        "cells": [{"id": f"step-{number}", **cell} for number, cell in enumerate(cells)],
    }


def write_first_notebook(folder: Path, environment: Environment, plan: Plan) -> Path:
    """Write the first notebook into a folder and return its path; one for the same kernel that is there is kept.

    Raises `WorkFailed` where the folder cannot be written.
    """
    names = [NAME, *(f"{NAME}-{number}" for number in range(2, _MOST))]
    for path in (folder / f"{name}.ipynb" for name in names):
        if not path.exists():
            break
        if _kernel_of(path) == (environment.kernel or _KERNEL):
            return path
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(first_notebook(environment, plan), ensure_ascii=False, indent=1) + "\n")
    except OSError as error:
        raise unwritable(path, error) from error
    return path


def _kernel_of(path: Path) -> str | None:
    """Return the kernel that a notebook of ours asks for; None for anything else."""
    try:
        metadata = json.loads(read_plain(path))["metadata"]
        return str(metadata["kernelspec"]["name"]) if metadata.get("origin") == MARKER else None
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def _words(*paragraphs: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": "\n\n".join(paragraphs)}


def _code(name: str, *, hidden: bool = False, **content: object) -> dict[str, Any]:
    """Return a cell with the code of `templates/first_steps/<name>.py.j2`."""
    metadata = {"jupyter": {"source_hidden": True}} if hidden else {}
    source = filled(f"first_steps/{name}.py", None, **content).rstrip("\n")
    return {"cell_type": "code", "metadata": metadata, "execution_count": None, "outputs": [], "source": source}
