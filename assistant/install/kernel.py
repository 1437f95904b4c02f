"""Kernelspecs: how an environment appears in JupyterLab's launcher."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from assistant.host.files import read_plain, sweep, write_whole
from assistant.host.telemetry import quiet
from assistant.i18n import _
from assistant.install.constraints import constraint_variables
from assistant.model.errors import WorkFailed
from assistant.model.plan import Plan
from assistant.model.record import Record

FILE = "kernel.json"
# Jupyter's own rule (`_kernel_name_pat` in jupyter_client/kernelspec.py), and no name that leads out of a folder.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")


class KernelNote(Record, frozen=True):
    """A kernelspec that is about to be written: its name, its interpreter, and the text that stood there before."""

    name: str
    python: str
    before: str | None = None


def is_kernel_name(name: str) -> bool:
    """Return whether a text can be the name of a kernel, and of nothing else."""
    return _NAME.fullmatch(name) is not None


def note_kernel(name: str, python: Path) -> KernelNote:
    """Record what a kernelspec holds now, so that it can be put back."""
    with suppress(OSError, UnicodeDecodeError):
        return KernelNote(name=name, python=str(python), before=read_plain(kernel_file(name)).decode())
    return KernelNote(name=name, python=str(python))


def put_kernel_back(note: KernelNote) -> None:
    """Restore a kernelspec as it was recorded; one that leads to another interpreter by now is left alone."""
    folder = kernel_folder(note.name)
    if folder.is_symlink():
        return
    sweep(folder)  # a kill may have come while it was written
    with suppress(OSError):
        if note.before is None:
            remove_kernel(note.name, Path(note.python))
            folder.rmdir()
        elif _leads_to(note.name, Path(note.python)):
            write_whole(folder / FILE, note.before)


def kernel_name(plan: Plan, python: Path) -> str:
    """Return a name made of variant and version, such as "torch-cu126-2.9.1".

    One that leads to another interpreter is left to it, and a number added; one that leads to this one is used again.
    """
    known = _known()
    wanted = re.sub(r"[^a-z0-9._-]+", "-", f"torch-{plan.variant}-{plan.torch}".lower())
    numbered = (f"{wanted}-{number}" for number in itertools.count(2))
    return next(
        name
        for name in itertools.chain([wanted], numbered)
        if not _is_taken(known.get(name, kernel_folder(name)), python)
    )


def kernel_folder(name: str) -> Path:
    """Return the folder of this user's kernelspec of a name; raise `WorkFailed` for what is no kernel's name."""
    if not is_kernel_name(name):
        raise WorkFailed(
            _("'{name}' cannot be the name of a kernel.", name=ascii(name)[1:-1][:80]),
            hint=_("Use letters, digits, dots, dashes and underscores."),
        )
    from jupyter_core.paths import jupyter_data_dir  # noqa: PLC0415 - see `_known`

    return Path(jupyter_data_dir()) / "kernels" / name


def kernel_file(name: str) -> Path:
    """Return the file of this user's kernelspec of a name."""
    return kernel_folder(name) / FILE


def register_kernel(plan: Plan, python: Path, name: str) -> None:
    """Register an interpreter for this user; raise `WorkFailed` when the spec cannot be written."""
    spec = {
        "argv": [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": f"PyTorch {plan.torch} ({plan.backend.title})",
        "language": "python",
        "metadata": {"debugger": True},
        "env": {**quiet(), **plan.env, **constraint_variables(python.parent.parent)},
    }
    _write(name, spec)


def set_variables(name: str, variables: Mapping[str, str]) -> None:
    """Set variables in a registered kernel, beside those that it has; raise `WorkFailed` when that cannot be done."""
    try:
        spec = json.loads(read_plain(kernel_file(name)))
        spec["env"] = {**spec.get("env", {}), **variables}
    except (OSError, ValueError) as error:
        raise WorkFailed(
            _("The kernel {name} cannot be read: {reason}.", name=name, reason=error),
            hint=_("Install again to register it."),
        ) from error
    _write(name, spec)


def _write(name: str, spec: Mapping[str, object]) -> None:
    try:
        folder = kernel_folder(name)
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / FILE, json.dumps(spec, indent=1, ensure_ascii=False))
    except OSError as error:
        raise WorkFailed(
            _("The kernel cannot be registered: {reason}.", reason=error),
            hint=_("Check that you may write to Jupyter's data folder (`jupyter --paths` names it)."),
        ) from error


def remove_kernel(name: str, python: Path) -> None:
    """Remove this user's kernelspec of a name from JupyterLab's launcher, if it leads to this interpreter.

    Only the kernelspec is deleted: a folder in which something else lies stays, and so does a link.
    """
    if not _leads_to(name, python):
        return
    folder = kernel_folder(name)
    with suppress(OSError):
        (folder / FILE).unlink()
        folder.rmdir()


def _leads_to(name: str, python: Path) -> bool:
    folder = kernel_folder(name)
    return not folder.is_symlink() and _interpreter(folder) == str(python)


def environments_with_kernels() -> dict[Path, list[str]]:
    """Return the names of the registered kernels by the folder of the environment that each leads to."""
    found: dict[Path, list[str]] = {}
    for name, folder in sorted(_known().items()):
        if program := _interpreter(folder):
            found.setdefault(Path(program).parent.parent, []).append(name)
    return found


def _known() -> dict[str, Path]:
    """Find the kernelspecs where and as Jupyter does: names in lower case, the first on its path wins.

    IPython's old folder is left out: asking for that makes it, or warns that it cannot.
    """
    from jupyter_core.paths import jupyter_path  # noqa: PLC0415 - only installing and detection pay for it

    found: dict[str, Path] = {}
    for folder in jupyter_path("kernels"):
        for spec in sorted(Path(folder).glob(f"*/{FILE}")):
            found.setdefault(spec.parent.name.lower(), spec.parent)
    return found


def _is_taken(folder: Path, python: Path) -> bool:
    """Return whether something stands where a kernelspec would go that does not lead to this interpreter."""
    return os.path.lexists(folder) and (folder.is_symlink() or _interpreter(folder) != str(python))


def _interpreter(folder: Path) -> str | None:
    try:
        return str(json.loads(read_plain(folder / FILE, 1 << 20, follow=True))["argv"][0])
    except (OSError, ValueError, LookupError, TypeError):
        return None
