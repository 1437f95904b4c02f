"""What makes a terminal the lab's own: a file to source, and tools that lead to the lab's indexes."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from assistant.api.steps import LiveHost, find_uv
from assistant.api.system import write_atomically

if TYPE_CHECKING:
    from assistant_addons.labs.workspace import Workspace

WINDOWS = sys.platform == "win32"
LEAD = "lab_index"
LEADS = Path(__file__).with_name("programs") / f"{LEAD}.py"
# What decides where packages come from; lab_index.py has a copy. In a lab one that is empty is not set at all: uv takes
# an empty UV_TORCH_BACKEND for an error.
SOURCES = (
    *("PIP_CONFIG_FILE", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX"),
    *("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_NO_INDEX"),
    *("UV_CONFIG_FILE", "UV_NO_CONFIG", "UV_TORCH_BACKEND"),
)
# What some labs set as well. Each is as the lab has it, or as it was when the lab was started, so nothing of another
# lab stays in a terminal.
OF_LABS = ("CUDA_VISIBLE_DEVICES", "LAB_DEVICE", "PYTHONPATH")


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
    settings = _settings(space)
    for name, lines in (("activate", _shell(settings, searched)), ("activate.ps1", _powershell(settings, searched))):
        # An index of the user's may name a password.
        write_atomically(space.folder / name, "\n".join([*lines, ""]), private=True)


def _settings(space: Workspace) -> dict[str, str | None]:
    """Return the variables of a terminal as the judge has them, None for one that is not set."""
    host, ours = LiveHost(), space.variables
    settings: dict[str, str | None] = {
        name: ours.get(name, host.variable(name).text) or None for name in (*SOURCES, *OF_LABS)
    }
    settings |= {name: value for name, value in space.program.variables(space).items() if name not in SOURCES}
    folder = str(space.folder)
    return settings | {"VIRTUAL_ENV": str(space.folder / "env"), "UV_LINK_MODE": "copy", "JUPYTER_PATH": folder}


def _tools(space: Workspace) -> dict[str, list[str]]:
    uv = [find_uv()]  # not `python -m uv`, which takes the environment of that Python for the terminal's
    if uses_own_index(space):
        uv = [str(space.python()), "-m", LEAD, *uv]
    return {"uv": uv, "assistant": [sys.executable, "-m", "assistant"]}


def _shell(settings: Mapping[str, str | None], path: str) -> Iterator[str]:
    yield "# Makes a terminal this lab's own, in sh, bash or zsh:  . ./activate"
    for name, value in settings.items():
        yield f"unset {name}" if value is None else f"export {name}={shlex.quote(value)}"
    yield f'export PATH={shlex.quote(path)}:"$PATH"'
    yield "hash -r"


def _powershell(settings: Mapping[str, str | None], path: str) -> Iterator[str]:
    yield "# Makes a terminal this lab's own, in PowerShell:  . .\\activate.ps1"
    # PowerShell holds no empty variable: it removes one.
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
