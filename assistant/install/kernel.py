"""Kernelspecs: how an environment appears in JupyterLab's launcher, and what `!pip` means in its notebooks."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from assistant.host.files import delete_stale_drafts, discard, read_regular, write_atomically
from assistant.host.process import telemetry_off
from assistant.i18n import _
from assistant.install.guards import constraints_uri
from assistant.model.errors import WorkFailed
from assistant.model.plan import Backend, Plan
from assistant.model.record import Record
from assistant.model.report import Environment

FILE = "kernel.json"
LOGOS = Path(__file__).with_name("logos")  # under the names that JupyterLab and Notebook look for
# Jupyter's own rule (`_kernel_name_pat` in jupyter_client/kernelspec.py), and no name that leads out of a folder.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")


class KernelNote(Record, frozen=True):
    """A kernelspec that is about to be written: its name, the interpreter it will start, and its earlier text."""

    name: str
    python: str
    before: str | None = None


def is_kernel_name(name: str) -> bool:
    """Return whether a text is a valid name of a kernel, and so no path."""
    return _NAME.fullmatch(name) is not None


def record_kernel(name: str, python: Path) -> KernelNote:
    """Return a record of a kernelspec's present text, for `restore_kernel`; `python` is what it will start."""
    before = None
    with suppress(OSError, UnicodeDecodeError):
        before = read_regular(kernel_file(name)).decode()
    return KernelNote(name=name, python=str(python), before=before)


def restore_kernel(note: KernelNote) -> None:
    """Restore a kernelspec from its record, or delete it if there was none; ignore what cannot be written.

    A link, and a spec that starts another Python than the record's, is left alone.
    """
    folder, python = kernel_folder(note.name), Path(note.python)
    if folder.is_symlink():
        return
    delete_stale_drafts(folder)  # a kill may have come while it was written
    with suppress(OSError):
        if note.before is None:
            remove_kernel(note.name, python)
            _remove_logos(folder)
            folder.rmdir()
        elif _starts_interpreter(folder, python):
            write_atomically(folder / FILE, note.before)


def choose_kernel_name(plan: Plan, python: Path) -> str:
    """Return a kernel name made of torch's variant and version, such as "torch-cu126-2.9.1", or a project's without.

    A number is added while a kernelspec of that name exists and starts another interpreter than `python`.
    """
    kernelspecs = _find_kernelspecs()
    name = re.sub(r"[^a-z0-9._-]+", "-", (f"torch-{plan.variant}-{plan.torch}" if plan.torch else plan.name).lower())
    numbered = (f"{name}-{number}" for number in itertools.count(2))
    folders = ((name, kernelspecs.get(name, kernel_folder(name))) for name in itertools.chain([name], numbered))
    return next(name for name, folder in folders if not os.path.lexists(folder) or _starts_interpreter(folder, python))


def kernel_folder(name: str) -> Path:
    """Return the folder of a kernelspec by its name, in the user's Jupyter data; raise `WorkFailed` if invalid."""
    if not is_kernel_name(name):
        raise WorkFailed(
            _("'{name}' cannot be the name of a kernel.", name=ascii(name)[1:-1][:80]),
            hint=_("Use letters, digits, dots, dashes and underscores."),
        )
    from jupyter_core.paths import jupyter_data_dir  # noqa: PLC0415 - see `_find_kernelspecs`

    return Path(jupyter_data_dir(), "kernels", name)


def kernel_file(name: str) -> Path:
    """Return the path of the kernel.json of a kernelspec by its name; raise as `kernel_folder` does."""
    return kernel_folder(name) / FILE


def kernel_title(plan: Plan, card: str = "") -> str:
    """Return what JupyterLab's launcher calls a plan's kernel, such as "PyTorch 2.13 · Radeon RX 7800 XT".

    It names the release line and the card, or the backend if the card is unknown or unused; for a plan without torch,
    Python and the project. It is the same in any language.
    """
    if not plan.torch:
        return f"Python {plan.python} · {plan.name}"
    line = ".".join(plan.torch.split(".")[:2])
    device = card if card and plan.backend is not Backend.CPU else plan.backend.title
    return f"PyTorch {line} · {device}"


def choose_launcher_name(plan: Plan, python: Path, folder: str, gpu_name: str = "") -> str:
    """Return the name of a kernel in JupyterLab: release of torch, and GPU (the backend if `gpu_name` is "").

    While another Python's kernel has the name, the environment's `folder` is added, then a number.
    """
    title = kernel_title(plan, gpu_name)
    specs = map(_read_kernelspec, _find_kernelspecs().values())
    others = {spec.get("display_name") for spec in specs if _program_in_kernelspec(spec) != str(python)}
    numbered = (f"{title} ({folder} {number})" for number in itertools.count(2))
    return next(name for name in itertools.chain([title, f"{title} ({folder})"], numbered) if name not in others)


def register_kernel(plan: Plan, environment: Environment) -> None:
    """Write the kernelspec of an environment with the plan's variables, and logos if it is new; raise `WorkFailed`.

    Its name is the environment's `kernel`, else one by `choose_kernel_name`. An existing kernelspec is overwritten.
    """
    prefix, name = Path(environment.path), environment.kernel or choose_kernel_name(plan, Path(environment.python))
    folder = kernel_folder(name)
    spec = {
        "argv": [environment.python, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": environment.launcher_name,
        "language": "python",
        "metadata": {"debugger": True},
        "env": {
            **telemetry_off(),
            **plan.env,
            "UV_CONSTRAINT": constraints_uri(prefix),
            **_program_variables(prefix, Path(environment.python)),
        },
    }
    is_new = not os.path.lexists(folder / FILE)
    _write_kernelspec(folder, spec)
    with suppress(OSError):  # a kernel without a picture works as well
        for logo, picture in _read_logos().items() if is_new else ():
            if not os.path.lexists(folder / logo):
                write_atomically(folder / logo, picture)


def _program_variables(prefix: Path, python: Path) -> dict[str, str]:
    """Return the variables that make `!pip` and `!python` in a notebook use this environment; in a venv `!uv pip`, too.

    When it starts the kernel, Jupyter fills in `${PATH}` (https://github.com/jupyter/jupyter_client/pull/472), and so
    does VS Code (https://github.com/microsoft/vscode-jupyter/pull/15091), on Windows too: there Python's `os.environ`
    spells every name in capitals. "$$" stands for a "$" of a folder's own name.
    """
    folders = [python.parent]
    if python.parent == prefix:  # conda on Windows
        folders += [prefix / "Library" / "bin", prefix / "Scripts"]
    path = os.pathsep.join(map(str, folders)).replace("$", "$$")
    is_no_venv = prefix.exists() and not (prefix / "pyvenv.cfg").is_file()  # conda's, or a bare Python
    active = {} if is_no_venv else {"VIRTUAL_ENV": str(prefix).replace("$", "$$")}
    # Where PIP_USER is set for everybody, as on some clusters, `pip install` would fail in a virtual environment.
    return {"PATH": f"{path}{os.pathsep}${{PATH}}", "PIP_USER": "0", **active}


@cache
def _read_logos() -> dict[str, bytes]:
    """Return the bytes of our logos by their file names."""
    return {path.name: path.read_bytes() for path in sorted(LOGOS.glob("logo-*"))}


def _remove_logos(folder: Path) -> None:
    """Delete the assistant's logos in a folder, if they are unchanged; raises `OSError`."""
    for logo, picture in _read_logos().items():
        if (folder / logo).is_file() and read_regular(folder / logo) == picture:
            discard(folder / logo)


def set_variables(name: str, variables: Mapping[str, str]) -> None:
    """Add environment variables to a registered kernel, and take out those whose value is "".

    Raises `WorkFailed` if it cannot be read or written.
    """
    try:
        spec = json.loads(read_regular(kernel_file(name)))
        added = {name: value for name, value in variables.items() if value}
        spec["env"] = {name: value for name, value in spec.get("env", {}).items() if name not in variables} | added
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise WorkFailed(
            _("The kernel {name} cannot be read: {reason}.", name=name, reason=error),
            hint=_("Install again to register it."),
        ) from error
    _write_kernelspec(kernel_folder(name), spec)


def _write_kernelspec(folder: Path, spec: Mapping[str, object]) -> None:
    """Write a kernel.json into a folder, which is created if missing; raise `WorkFailed` if that fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / FILE, json.dumps(spec, indent=1, ensure_ascii=False))
    except OSError as error:
        raise WorkFailed(
            _("The kernel cannot be registered: {reason}.", reason=error),
            hint=_("Check that you may write to Jupyter's data folder (`jupyter --paths` names it)."),
        ) from error


def remove_kernel(name: str, python: Path) -> None:
    """Delete the kernelspec of a name, with its logos, if it starts this interpreter; ignore what cannot be deleted.

    A folder that is a link is left alone; one that holds other files stays, with these.
    """
    folder = kernel_folder(name)
    if not _starts_interpreter(folder, python):
        return
    with suppress(OSError):
        discard(folder / FILE)
        _remove_logos(folder)
        folder.rmdir()


def _starts_interpreter(folder: Path, python: Path) -> bool:
    """Return whether a folder is no link and holds a kernelspec that starts this interpreter."""
    return not folder.is_symlink() and _program_in_kernelspec(_read_kernelspec(folder)) == str(python)


def folder_of_python(python: Path) -> Path:
    """Return the folder of the environment that a Python belongs to, by where it lies; neither need exist."""
    place = python.parent  # conda on Windows keeps python.exe in the environment's own folder
    return place if (place / "conda-meta").is_dir() else place.parent


def kernel_names_by_environment() -> dict[Path, list[str]]:
    """Return the names of the registered kernels by the folder of the environment whose Python they start.

    Kernels that leave it to PATH which Python that is are left out.
    """
    names_by_environment: dict[Path, list[str]] = {}
    for name, folder in sorted(_find_kernelspecs().items()):
        program = _program_in_kernelspec(_read_kernelspec(folder))
        if Path(program).is_absolute():
            names_by_environment.setdefault(folder_of_python(Path(program)), []).append(name)
    return names_by_environment


def _find_kernelspecs() -> dict[str, Path]:
    """Return the folders of the kernelspecs by name in lower case; of several, the first on Jupyter's path.

    IPython's old folder is left out: asking for it creates it, or warns that this failed.
    """
    from jupyter_core.paths import jupyter_path  # noqa: PLC0415 - only installing and detection pay for it

    kernelspecs: dict[str, Path] = {}
    for folder in jupyter_path("kernels"):
        for spec in sorted(Path(folder).glob(f"*/{FILE}")):
            kernelspecs.setdefault(spec.parent.name.lower(), spec.parent)
    return kernelspecs


def _program_in_kernelspec(spec: Mapping[str, Any]) -> str:
    """Return the program that a kernelspec starts; "" if it names none."""
    words = spec.get("argv")
    return str(words[0]) if isinstance(words, list) and words else ""


def _read_kernelspec(folder: Path) -> dict[str, Any]:
    """Return the content of the kernel.json in a folder, of which nothing is checked; {} if it cannot be read."""
    try:
        spec = json.loads(read_regular(folder / FILE, 1 << 20, follow=True))
    except (OSError, ValueError):
        return {}
    return spec if isinstance(spec, dict) else {}
