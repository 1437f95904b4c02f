"""The first notebook on the kernel of a new environment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from assistant.export.setup import MARKER, fill_template
from assistant.host.files import read_regular, write_atomically
from assistant.i18n import say
from assistant.model.errors import unwritable_error
from assistant.model.plan import Backend, Plan
from assistant.model.report import Environment

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

    It needs nothing but torch, and draws with matplotlib if the plan requires that.
    """
    plots = any(Requirement(line).name == "matplotlib" for line in plan.requirements)
    runs = say(
        "This notebook runs on **{kernel}**. Shift + Enter runs a cell and goes on to the next; change what you like.",
        kernel=environment.launcher_name or plan.backend.title,
    )
    kind, module = _KINDS.get(plan.backend, ("", ""))
    cells = [
        _words(say("# First steps with PyTorch"), runs),
        _words(
            say("## The device"),
            say(
                "A *tensor* is a table of numbers. It lives on a device, and what you compute with it is computed "
                "there."
            ),
        ),
        _code("device", backend=plan.backend.value, kind=kind, module=module, chosen=environment.packages.get("torch")),
        _words(say("## A picture"), say("One short formula, applied to 240,000 points at once: a Julia set.")),
        _code("show", hidden=not plots, plots=plots),
        _code("picture"),
        _words(
            say("## Learning"),
            say(
                "A small network learns to tell two spirals apart: the loss falls, and the picture shows what it sees."
            ),
        ),
        _code("learning"),
        _words(say("## Speed"), say("How long does one training step of a larger network take?")),
        _code("speed"),
        _words(
            say(
                "**Next:** `%pip install NAME` in a cell adds a package to this environment and to no other. "
                "[PyTorch's tutorials](https://docs.pytorch.org/tutorials/beginner/basics/intro.html) build on these "
                "steps."
            )
        ),
    ]
    kernel = {"name": environment.kernel or _KERNEL, "display_name": environment.launcher_name, "language": "python"}
    return {
        "metadata": {"origin": MARKER, "kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
        "cells": [{"id": f"step-{number}", **cell} for number, cell in enumerate(cells)],
    }


def write_first_notebook(folder: Path, environment: Environment, plan: Plan) -> Path:
    """Write the first notebook into a folder and return its path, or that of one for the same kernel that is there.

    Other notebooks stay: the name then gets a number. Raises `WorkFailed` if the folder cannot be written.
    """
    names = [NAME, *(f"{NAME}-{number}" for number in range(2, _MOST))]
    for path in (folder / f"{name}.ipynb" for name in names):
        if not path.exists():
            break
        if _read_kernel(path) == (environment.kernel or _KERNEL):
            return path
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(first_notebook(environment, plan), ensure_ascii=False, indent=1) + "\n")
    except OSError as error:
        raise unwritable_error(path, error) from error
    return path


def _read_kernel(path: Path) -> str | None:
    """Return the kernel that a notebook of ours asks for; None for anything else."""
    try:
        metadata = json.loads(read_regular(path))["metadata"]
        return str(metadata["kernelspec"]["name"]) if metadata.get("origin") == MARKER else None
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def _words(*paragraphs: str) -> dict[str, Any]:
    """Return a cell of text."""
    return {"cell_type": "markdown", "metadata": {}, "source": "\n\n".join(paragraphs)}


def _code(name: str, *, hidden: bool = False, **content: object) -> dict[str, Any]:
    """Return a cell with the code of `templates/first_steps/<name>.py.j2`."""
    metadata = {"jupyter": {"source_hidden": True}} if hidden else {}
    source = fill_template(f"first_steps/{name}.py", None, **content).rstrip("\n")
    return {"cell_type": "code", "metadata": metadata, "execution_count": None, "outputs": [], "source": source}
