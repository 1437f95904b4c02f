"""Keeps an environment as it was made: a later `pip install` or `uv pip install` cannot replace torch's build unseen.

The environment gets a constraints file, and pip's own configuration inside the environment (`pip.conf` in its prefix)
names it, so every pip that runs there reads it. uv reads no such file: the kernelspec sets `UV_CONSTRAINT`.
"""

from __future__ import annotations

import configparser
import io
import os
from collections.abc import Mapping
from pathlib import Path

import tomli_w

from assistant.i18n import _
from assistant.model.plan import Plan, of_torch_family

__all__ = ["CONSTRAINTS", "constraint_variables", "constraints", "protect", "uv_snippet"]

CONSTRAINTS = "assistant-constraints.txt"
PIP_FILE = "pip.ini" if os.name == "nt" else "pip.conf"
_BESIDE = ("onnxruntime", "torch-directml")  # packages of which one flavour shadows another


def constraints(packages: Mapping[str, str]) -> str:
    """Write the pins (constraints file) of what carries the accelerator: torch, its family, ONNX Runtime."""
    pins = (f"{name}=={version}" for name, version in sorted(packages.items()) if _guarded(name))
    note = _("What the accelerator needs; delete this file and its line in {file} to let go of it.")
    return "\n".join([f"# {note.format(file=PIP_FILE)}", *pins, ""])


def pip_settings(already: str, file: Path) -> str:
    """Add the constraints file to the text of an environment's pip configuration; what is there stays."""
    parser = configparser.RawConfigParser()
    parser.read_string(already)
    if not parser.has_section("install"):
        parser.add_section("install")
    kept = parser.get("install", "constraint", fallback="").split()
    parser.set("install", "constraint", "\n".join(dict.fromkeys([*kept, file.as_uri()])))
    written = io.StringIO()
    parser.write(written)
    return written.getvalue()


def protect(prefix: Path, packages: Mapping[str, str], folder: Path | None = None) -> None:
    """Write both files into an environment, or into `folder` for the environment to take over."""
    into = folder or prefix
    (into / CONSTRAINTS).write_text(constraints(packages), encoding="utf-8")
    settings = prefix / PIP_FILE
    already = settings.read_text(encoding="utf-8") if settings.is_file() else ""
    try:
        text = pip_settings(already, prefix / CONSTRAINTS)
    except configparser.Error:
        return  # pip could not read it either; it is not ours to mend
    (into / PIP_FILE).write_text(text, encoding="utf-8")


def constraint_variables(prefix: Path) -> dict[str, str]:
    """Give the variable that makes uv keep to the constraints; it cannot name a path with a space."""
    file = str(prefix / CONSTRAINTS)
    return {} if " " in file else {"UV_CONSTRAINT": file}


def uv_snippet(plan: Plan, packages: Mapping[str, str]) -> str:
    """Write the lines of a `pyproject.toml` that tie torch's family to its index and versions for uv."""
    family = [name for name in packages if of_torch_family(name)]
    told: dict[str, object] = {
        "constraint-dependencies": [f"{name}=={packages[name]}" for name in packages if _guarded(name)]
    }
    if plan.index_url:
        told["sources"] = {name: {"index": "torch"} for name in family}
        told["index"] = [{"name": "torch", "url": plan.index_url, "explicit": True}]
    return tomli_w.dumps({"tool": {"uv": told}})


def _guarded(name: str) -> bool:
    return of_torch_family(name) or name.startswith(_BESIDE)
