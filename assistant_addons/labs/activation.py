"""What makes a terminal the lab's own: a file to source, and tools that lead to the lab's indexes."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from assistant.api.steps import find_uv

if TYPE_CHECKING:
    from assistant_addons.labs.workspace import Workspace

WINDOWS = sys.platform == "win32"
LEAD = "lab_index"
LEADS = Path(__file__).with_name("programs") / f"{LEAD}.py"
# What decides where packages come from: each is set as the lab has it, or as it was when the lab was started, so that
# nothing of another lab stays in a terminal.
SOURCES = (
    *("PIP_CONFIG_FILE", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX"),
    *("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_NO_INDEX"),
    *("UV_NO_CONFIG", "UV_TORCH_BACKEND", "JUPYTER_PATH", "PYTHONPATH", "LAB_DEVICE"),
)


def hooks(space: Workspace, name: str) -> dict[str, str]:
    """Return the files by which an environment's pip asks the lab's own indexes, where the lab has some."""
    if name != "env" or not uses_own_index(space):
        return {}
    return {f"{LEAD}.py": LEADS.read_text("utf-8"), f"{LEAD}.pth": f"import {LEAD}; {LEAD}.lead()\n"}


def uses_own_index(space: Workspace) -> bool:
    """Return whether a lab has indexes of its own."""
    return "PIP_INDEX_URL" in space.program.variables(space)


def write(space: Workspace) -> None:
    """Write the files that a terminal reads, and the tools that it finds first."""
    bin_folder = space.folder / "bin"
    for name, command in _tools(space).items():
        path = bin_folder / (f"{name}.cmd" if WINDOWS else name)
        quoted = " ".join(f'"{part}"' for part in command)
        space.write(path, f"@{quoted} %*\n" if WINDOWS else f'#!/bin/sh\nexec {quoted} "$@"\n')
        path.chmod(0o755)
    searched = os.pathsep.join([str(bin_folder), str(space.python().parent)])
    settings = {name: space.variables.get(name, os.environ.get(name, "")) for name in SOURCES}
    settings |= {"VIRTUAL_ENV": str(space.folder / "env"), "UV_LINK_MODE": "copy", "JUPYTER_PATH": str(space.folder)}
    for name, lines in (("activate", _shell(settings, searched)), ("activate.ps1", _powershell(settings, searched))):
        space.write(space.folder / name, "\n".join([*lines, ""]))
        (space.folder / name).chmod(0o600)  # an index of the user's may name a password


def _tools(space: Workspace) -> dict[str, list[str]]:
    uv = [find_uv()]  # not `python -m uv`, which takes the environment of that Python for the terminal's
    if uses_own_index(space):
        uv = [str(space.python()), "-m", LEAD, *uv]
    return {"uv": uv, "assistant": [sys.executable, "-m", "assistant"]}


def _shell(settings: dict[str, str], path: str) -> Iterator[str]:
    yield "# Makes a terminal this lab's own, in sh, bash or zsh:  . ./activate"
    for name, value in settings.items():
        yield f"export {name}={shlex.quote(value)}" if value else f"unset {name}"
    yield f'export PATH={shlex.quote(path)}:"$PATH"'
    yield "hash -r"


def _powershell(settings: dict[str, str], path: str) -> Iterator[str]:
    yield "# Makes a terminal this lab's own, in PowerShell:  . .\\activate.ps1"
    for name, value in settings.items():
        yield f"$env:{name} = {_single(value)}" if value else f"Remove-Item Env:{name} -ErrorAction Ignore"
    yield f"$env:PATH = {_single(path + os.pathsep)} + $env:PATH"


def _single(value: str) -> str:
    """Return a text in PowerShell's single quotation marks."""
    return "'" + value.replace("'", "''") + "'"


def command(folder: Path) -> str:
    """Return the line by which a terminal becomes the lab's own."""
    if WINDOWS:
        return f'cd "{folder}"; . .\\activate.ps1'
    return f"cd {shlex.quote(str(folder))} && . ./activate"
