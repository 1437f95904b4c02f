"""Kernelspecs: how an environment shows in JupyterLab's launcher."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from assistant.i18n import _
from assistant.install.protect import constraint_variables
from assistant.model.errors import WorkFailed
from assistant.model.plan import Plan

__all__ = [
    "environments_with_kernels",
    "kernel_folder",
    "kernel_name",
    "register_kernel",
    "remove_kernel",
    "set_variables",
]


def kernel_name(plan: Plan, python: Path) -> tuple[str, bool]:
    """Choose a name made of variant and version, and tell whether it is free.

    A name that leads to another interpreter is left to it; one that leads to this one is taken again.
    """
    known: dict[str, str] = _manager().find_kernel_specs()
    name = _free_name(known, f"torch-{plan.variant}-{plan.torch}".replace("/", "-").lower(), python)
    return name, name not in known


def kernel_folder(name: str) -> Path:
    """Name the folder of this user's kernelspec of a name."""
    return Path(_manager().user_kernel_dir) / name


def register_kernel(plan: Plan, python: Path, name: str) -> None:
    """Register an interpreter for this user; raise `WorkFailed` when the spec cannot be written."""
    spec = {
        "argv": [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": f"PyTorch {plan.torch} ({plan.backend.value.upper()})",
        "language": "python",
        "metadata": {"debugger": True},
        "env": {**plan.env, **constraint_variables(python.parent.parent)},
    }
    _write(name, spec)


def set_variables(name: str, variables: Mapping[str, str]) -> None:
    """Set variables in a registered kernel, beside those that it has; raise `WorkFailed` when that cannot be done."""
    try:
        spec = json.loads((kernel_folder(name) / "kernel.json").read_text(encoding="utf-8"))
        spec["env"] = {**spec.get("env", {}), **variables}
    except (OSError, ValueError) as error:
        raise WorkFailed(
            _("The kernel {name} cannot be read: {reason}.").format(name=name, reason=error),
            hint=_("Install again, which registers it."),
        ) from error
    _write(name, spec)


def _write(name: str, spec: Mapping[str, object]) -> None:
    try:
        folder = kernel_folder(name)
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / "kernel.json.part"
        part.write_text(json.dumps(spec, indent=1, ensure_ascii=False), encoding="utf-8")
        part.replace(folder / "kernel.json")
    except OSError as error:
        raise WorkFailed(
            _("The kernel cannot be registered: {reason}.").format(reason=error),
            hint=_("Check that you may write in Jupyter's data folder (`jupyter --paths` names it)."),
        ) from error


def remove_kernel(name: str) -> None:
    """Take a kernelspec of this user out of JupyterLab's launcher; one that is gone already is no failure."""
    shutil.rmtree(kernel_folder(name), ignore_errors=True)


def environments_with_kernels() -> dict[Path, list[str]]:
    """Give the names of the registered kernels by the folder of the environment that each leads to."""
    found: dict[Path, list[str]] = {}
    for name, folder in sorted(_manager().find_kernel_specs().items()):
        if program := _interpreter(Path(folder)):
            found.setdefault(Path(program).parent.parent, []).append(name)
    return found


def _manager() -> Any:  # noqa: ANN401 - the library has no types
    """Look where Jupyter does, but for IPython's old folder: asking for that makes it, or warns that it cannot."""
    from jupyter_client.kernelspec import KernelSpecManager  # noqa: PLC0415 - 100 ms that only this room pays
    from jupyter_core.paths import jupyter_path  # noqa: PLC0415 - likewise

    return KernelSpecManager(kernel_dirs=jupyter_path("kernels"), ensure_native_kernel=False)


def _free_name(known: dict[str, str], wanted: str, python: Path) -> str:
    name, number = wanted, 1
    while name in known and _interpreter(Path(known[name])) != str(python):
        number += 1
        name = f"{wanted}-{number}"
    return name


def _interpreter(folder: Path) -> str | None:
    try:
        return str(json.loads((folder / "kernel.json").read_text(encoding="utf-8"))["argv"][0])
    except (OSError, ValueError, LookupError, TypeError):
        return None
