"""Kernelspecs: how an environment appears in JupyterLab's launcher, and what `!pip` means in its notebooks."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from assistant.host.files import discard, read_plain, sweep, write_whole
from assistant.host.telemetry import quiet
from assistant.i18n import _
from assistant.install.constraints import constraint_variables
from assistant.model.errors import WorkFailed
from assistant.model.plan import Plan
from assistant.model.record import Record, replace
from assistant.model.report import Environment
from assistant.views import kernel_title

FILE = "kernel.json"
LOGOS = Path(__file__).with_name("logos")  # under the names that JupyterLab and Notebook look for
# Jupyter's own rule (`_kernel_name_pat` in jupyter_client/kernelspec.py), and no name that leads out of a folder.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")


class KernelNote(Record, frozen=True):
    """A kernelspec that is about to be written: its name and interpreter; the text and the logos that stood there."""

    name: str
    python: str
    before: str | None = None
    logos: tuple[str, ...] = ()


def is_kernel_name(name: str) -> bool:
    """Return whether a text can be the name of a kernel, and of nothing else."""
    return _NAME.fullmatch(name) is not None


def note_kernel(name: str, python: Path) -> KernelNote:
    """Record what a kernelspec holds now, so that it can be put back."""
    folder = kernel_folder(name)
    logos = tuple(logo for logo in _logos() if (folder / logo).exists())
    note = KernelNote(name=name, python=str(python), logos=logos)
    with suppress(OSError, UnicodeDecodeError):
        return replace(note, before=read_plain(folder / FILE).decode())
    return note


def put_kernel_back(note: KernelNote) -> None:
    """Restore a kernelspec as it was recorded; one that leads to another interpreter by now is left alone."""
    folder, python = kernel_folder(note.name), Path(note.python)
    if folder.is_symlink():
        return
    sweep(folder)  # a kill may have come while it was written
    with suppress(OSError):
        if note.before is None:
            remove_kernel(note.name, python)
        elif _leads_to(folder, python):
            write_whole(folder / FILE, note.before)
        if note.before is None or _leads_to(folder, python):
            _remove_logos(folder, spare=note.logos)
        if note.before is None:
            folder.rmdir()


def kernel_name(plan: Plan, python: Path) -> str:
    """Return a name made of variant and version, such as "torch-cu126-2.9.1".

    One that leads to another interpreter is left to it, and a number added; one that leads to this one is used again.
    """
    kernelspecs = _kernelspecs()
    name = re.sub(r"[^a-z0-9._-]+", "-", f"torch-{plan.variant}-{plan.torch}".lower())
    numbered = (f"{name}-{number}" for number in itertools.count(2))
    return next(
        candidate
        for candidate in itertools.chain([name], numbered)
        if not _belongs_to_another(kernelspecs.get(candidate, kernel_folder(candidate)), python)
    )


def kernel_folder(name: str) -> Path:
    """Return the folder of the kernelspec of a name; raise `WorkFailed` for what is no kernel's name."""
    if not is_kernel_name(name):
        raise WorkFailed(
            _("'{name}' cannot be the name of a kernel.", name=ascii(name)[1:-1][:80]),
            hint=_("Use letters, digits, dots, dashes and underscores."),
        )
    from jupyter_core.paths import jupyter_data_dir  # noqa: PLC0415 - see `_kernelspecs`

    return Path(jupyter_data_dir(), "kernels", name)


def kernel_file(name: str) -> Path:
    """Return the file of the kernelspec of a name."""
    return kernel_folder(name) / FILE


def display_name(plan: Plan, python: Path, folder: str, card: str = "") -> str:
    """Return the name that the launcher shows: of torch and the card, and of the `folder` where it is taken already."""
    title = kernel_title(plan, card)
    others = {_shown(spec) for spec in _kernelspecs().values() if _interpreter(spec) != str(python)}
    numbered = (f"{title} ({folder} {number})" for number in itertools.count(2))
    return next(name for name in itertools.chain([title, f"{title} ({folder})"], numbered) if name not in others)


def register_kernel(plan: Plan, made: Environment) -> None:
    """Register an environment as a Jupyter kernel; raise `WorkFailed` when its kernelspec cannot be written."""
    prefix, name = Path(made.path), made.kernel or kernel_name(plan, Path(made.python))
    folder = kernel_folder(name)
    spec = {
        "argv": [made.python, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": made.launcher_name,
        "language": "python",
        "metadata": {"debugger": True},
        "env": {**quiet(), **plan.env, **constraint_variables(prefix), **_own_programs(prefix, Path(made.python))},
    }
    _write(folder, spec)
    with suppress(OSError):  # a kernel without a picture works as well
        for logo, picture in _logos().items():
            if not os.path.lexists(folder / logo):
                write_whole(folder / logo, picture)


def _own_programs(prefix: Path, python: Path) -> dict[str, str]:
    """Return the variables by which `!pip`, `!uv pip` and `!python` in a notebook mean this environment and no other.

    When it starts the kernel, Jupyter fills in `${PATH}` (https://github.com/jupyter/jupyter_client/pull/472), and so
    does VS Code (https://github.com/microsoft/vscode-jupyter/pull/15091), on Windows too: there Python's `os.environ`
    spells every name in capitals. "$$" stands for a "$" of a folder's own name.
    """
    folders = [python.parent]
    if python.parent == prefix:  # conda on Windows
        folders += [prefix / "Library" / "bin", prefix / "Scripts"]
    own = os.pathsep.join(map(str, folders)).replace("$", "$$")
    is_no_venv = prefix.exists() and not (prefix / "pyvenv.cfg").is_file()  # conda's, or a bare Python
    active = {} if is_no_venv else {"VIRTUAL_ENV": str(prefix).replace("$", "$$")}
    # Where PIP_USER is set for everybody, as on some clusters, `pip install` would fail in a virtual environment.
    return {"PATH": f"{own}{os.pathsep}${{PATH}}", "PIP_USER": "0", **active}


@cache
def _logos() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(LOGOS.glob("logo-*"))}


def _remove_logos(folder: Path, spare: Iterable[str] = ()) -> None:
    """Delete the logos that are ours, byte for byte; raises `OSError`."""
    for logo, picture in _logos().items():
        if logo not in spare and (folder / logo).is_file() and read_plain(folder / logo) == picture:
            discard(folder / logo)


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
    _write(kernel_folder(name), spec)


def _write(folder: Path, spec: Mapping[str, object]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / FILE, json.dumps(spec, indent=1, ensure_ascii=False))
    except OSError as error:
        raise WorkFailed(
            _("The kernel cannot be registered: {reason}.", reason=error),
            hint=_("Check that you may write to Jupyter's data folder (`jupyter --paths` names it)."),
        ) from error


def remove_kernel(name: str, python: Path) -> None:
    """Remove the kernelspec of a name from JupyterLab's launcher, if it leads to this interpreter.

    Only the kernelspec and our logos are deleted: a folder in which something else lies stays, and so does a link.
    """
    folder = kernel_folder(name)
    if not _leads_to(folder, python):
        return
    with suppress(OSError):
        discard(folder / FILE)
        _remove_logos(folder)
        folder.rmdir()


def _leads_to(folder: Path, python: Path) -> bool:
    return not folder.is_symlink() and _interpreter(folder) == str(python)


def environments_with_kernels() -> dict[Path, list[str]]:
    """Return the names of the registered kernels by the folder of the environment that each leads to."""
    found: dict[Path, list[str]] = {}
    for name, folder in sorted(_kernelspecs().items()):
        if program := _interpreter(folder):
            found.setdefault(Path(program).parent.parent, []).append(name)
    return found


def _kernelspecs() -> dict[str, Path]:
    """Find the kernelspecs where and as Jupyter does: names in lower case, the first on its path wins.

    IPython's old folder is left out: asking for that makes it, or warns that it cannot.
    """
    from jupyter_core.paths import jupyter_path  # noqa: PLC0415 - only installing and detection pay for it

    found: dict[str, Path] = {}
    for folder in jupyter_path("kernels"):
        for spec in sorted(Path(folder).glob(f"*/{FILE}")):
            found.setdefault(spec.parent.name.lower(), spec.parent)
    return found


def _belongs_to_another(folder: Path, python: Path) -> bool:
    """Return whether something stands where a kernelspec would go that does not lead to this interpreter."""
    return os.path.lexists(folder) and (folder.is_symlink() or _interpreter(folder) != str(python))


def _interpreter(folder: Path) -> str | None:
    """Return the program that a kernelspec starts; None where it cannot be read."""
    try:
        return str(_spec(folder)["argv"][0])
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _shown(folder: Path) -> str:
    """Return the name that the launcher shows for a kernelspec, "" where it cannot be read."""
    try:
        return str(_spec(folder)["display_name"])
    except (OSError, ValueError, LookupError, TypeError):
        return ""


def _spec(folder: Path) -> Any:  # noqa: ANN401 - anybody's JSON
    return json.loads(read_plain(folder / FILE, 1 << 20, follow=True))
