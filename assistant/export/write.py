"""The formats of an export, and how the chosen ones are written: all or none, never over somebody else's files.

To add a format, write a function and give it a row in `FORMATS`. The report for people, in Markdown, is also written
here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from operator import methodcaller
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from assistant.export.config import config_text
from assistant.export.launch import container_files, launch_files, variable_files
from assistant.export.packages import conda_text, pinned_files, pyproject_text
from assistant.export.setup import MARKER, Setup, Unsuited, clean, fill_template, runtime_text
from assistant.host.files import discard, put_in_place, write_atomically, write_draft
from assistant.i18n import Message, _, render
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.record import replace, to_json
from assistant.model.report import verdict
from assistant.model.shell import ALLOW_SCRIPTS
from assistant.model.visible import printable, visible
from assistant.privacy import NOBODY, PrivateNames, shorten_home
from assistant.views import CHECK_HEADINGS, check_rows, fold_packages, machine_rows, plan_rows, speed_lines


class Format(NamedTuple):
    """One kind of export: what it is for, the function that returns its texts by path, and further names of it.

    `MARKER` stands at the beginning of each text. The function raises `Unsuited` for a setup that cannot have it.
    """

    description: Message
    files: Callable[[Setup], dict[str, str]]
    names: tuple[str, ...] = ()


def code_files(setup: Setup) -> dict[str, str]:
    """Return `device.py` and `fallback.py`, for code that uses torch, and `verify.py`, a proof, as texts by name.

    Raises `Unsuited` for a plan without torch.
    """
    if not setup.plan.torch:
        why = _("These files are for code that uses torch, and the plan has none.")
        raise Unsuited(why, hint=_("Choose another format, such as requirements.txt."))
    files = {name: runtime_text(name) for name in ("device.py", "fallback.py")}
    return {**files, "verify.py": fill_template("verify.py", torch=setup.plan.torch)}


FORMATS = {
    "assistant.toml": Format(
        _("the whole setup, for `assistant apply` and `assistant check`"),
        lambda setup: {"assistant.toml": config_text(setup)},
    ),
    "report.md": Format(
        _("what was found, chosen and verified, for people and bug reports"),
        lambda setup: {"report.md": report_text(setup)},
    ),
    ".env": Format(_("variables for bash, Docker and VS Code, and for PowerShell"), variable_files, ("env.ps1",)),
    "requirements.txt": Format(
        _("every package pinned, for pip and uv: requirements, constraints and a lock with hashes (PEP 751)"),
        pinned_files,
        ("constraints.txt", "pylock.toml"),
    ),
    "pyproject.toml": Format(
        _("a project for uv, torch tied to its own index"),
        lambda setup: {"pyproject.toml": pyproject_text(setup)},
    ),
    "environment.yml": Format(
        _("an environment for conda and mamba"),
        lambda setup: {"environment.yml": conda_text(setup)},
    ),
    "Dockerfile": Format(
        _("a container that reaches the same device, also for VS Code"),
        container_files,
        (".devcontainer/devcontainer.json",),
    ),
    "device.py": Format(
        _("for your own code: picks the device, runs on the CPU what it cannot, and proves that it computes"),
        code_files,
        ("fallback.py", "verify.py"),
    ),
    "launch": Format(_("start settings for image applications such as ComfyUI"), launch_files),
}


class Purpose(NamedTuple):
    """A title, what it brings in a few words, and the formats; those that a setup cannot have are left out."""

    title: Message
    lead: Message
    formats: tuple[str, ...]


PURPOSES = {
    "": Purpose(_("Everything"), _("all the files that suit this setup"), tuple(FORMATS)),
    "colleague": Purpose(
        _("A colleague"),
        _("to make the same environment on a similar machine"),
        ("assistant.toml", "requirements.txt", "report.md"),
    ),
    "project": Purpose(
        _("My project"),
        _("requirements, lock, variables, code"),
        ("requirements.txt", "pyproject.toml", "environment.yml", ".env", "device.py"),
    ),
    "container": Purpose(_("A container"), _("Docker and devcontainer"), ("Dockerfile",)),
    "report": Purpose(_("A bug report"), _("one text, without private information"), ("report.md",)),
}

_HEAD_BYTES = 400  # the marker stands in the first line, or after an XML declaration


def export(
    setup: Setup,
    folder: Path,
    formats: Sequence[str] = (),
    *,
    purpose: str = "",
    known: PrivateNames = NOBODY,
    overwrite: Callable[[tuple[Path, ...]], bool] = lambda _foreign: False,
) -> tuple[Path, ...]:
    """Write the files of the chosen formats into `folder`, all or none, and return their paths.

    Without `formats` they are those of `purpose` that suit the setup. `known` are private names of this machine and its
    user, which are taken out. Raises `BadInput` for an unknown format or one that this setup cannot have, and
    `WorkFailed` if files of somebody else are in the way (unless `overwrite`, which gets their paths, agrees) or the
    folder cannot be written.
    """
    return write_all(folder, texts(clean(setup, known), formats, purpose), overwrite)


def texts(setup: Setup, formats: Sequence[str] = (), purpose: str = "") -> dict[str, str]:
    """Return the texts of the chosen formats by path, with the files that they need.

    `formats` may also name single files. Without any, the formats are those of `purpose` that suit the setup, and for
    "" all that do. No text holds a hidden character. Raises `Unsuited` for a chosen format or file that this setup
    cannot have, `BadInput` for an unknown one, and `KeyError` for an unknown purpose.
    """
    written: dict[str, str] = {}
    for name, file in map(_find_format, formats or PURPOSES[purpose].formats):
        try:
            files = FORMATS[name].files(setup)
        except Unsuited:
            if formats:
                raise
            continue
        if file and file not in files:
            raise Unsuited(
                _("This setup has no {file}.", file=file),
                hint=_("Install with `assistant install` or `assistant apply`, then export."),
            )
        written |= {path: visible(text) for path, text in files.items()}
    return written


def _find_format(name: str) -> tuple[str, str]:
    """Return the format that a path, a file's name or its stem (`dockerfile`, `report`, `env`) means, and the file.

    The file is "" for a name of the whole format. Raises `BadInput` for an unknown name.
    """
    spelling = name.lower().strip(".")
    for key, kind in FORMATS.items():
        for file in (key, *kind.names):
            path = PurePosixPath(file.lower().strip("."))
            if spelling in {str(path), path.name, path.stem}:
                return key, "" if file == key else file
    raise BadInput(
        _("There is no format called {format}.", format=printable(name)),
        hint=_("Choose from: {formats}.", formats=", ".join(FORMATS)),
    )


def write_all(
    folder: Path, files: Mapping[str, str], overwrite: Callable[[tuple[Path, ...]], bool]
) -> tuple[Path, ...]:
    """Write each text as UTF-8 under its name in `folder` and return the paths.

    Files of those names that somebody else wrote are replaced only if `overwrite`, which gets their paths, agrees.
    Raises `WorkFailed` if it does not, if a folder has such a name, if a link leads out of the folder, and if that
    cannot be written; nothing has changed then.
    """
    contents = {folder / name: text.encode() for name, text in files.items()}
    foreign = tuple(path for path, content in contents.items() if _is_foreign(folder, path, content))
    if foreign and not overwrite(foreign):
        raise WorkFailed(
            _("{path} exists and was not written by the assistant.", path=foreign[0]),
            hint=_("Choose another folder, move that file away, or replace it.", option="--to, --force"),
        )
    with _convert_os_errors(folder), ExitStack() as undo:
        missing = {part for path in contents for part in path.parents if not part.exists()}
        for part in sorted(missing, key=lambda part: len(part.parts)):
            part.mkdir(exist_ok=True)
            undo.callback(_remove_empty, part)
        drafts: dict[Path, Path] = {}
        for path, content in contents.items():
            drafts[path] = write_draft(path, methodcaller("write", content))
            undo.callback(discard, drafts[path])
        for path, part in drafts.items():
            old = path.read_bytes() if path.is_file() and not path.is_symlink() else None
            put_in_place(part, path)
            undo.callback(*((discard, path) if old is None else (write_atomically, path, old)))
        undo.pop_all()
    return tuple(contents)


def _remove_empty(folder: Path) -> None:
    """Remove a folder that was made for nothing; one in which something lies by now stays."""
    with suppress(OSError):
        folder.rmdir()


def _is_foreign(folder: Path, path: Path, content: bytes) -> bool:
    """Return whether `path` is a link, or a file that somebody else wrote and that differs from `content`.

    Raises `WorkFailed` if it is a folder, or lies outside `folder` through a link, or cannot be read.
    """
    if path.is_dir():
        raise WorkFailed(
            _("{path} is a folder, but a file of that name is to be written.", path=path),
            hint=_("Choose another folder.", option="--to"),
        )
    with _convert_os_errors(path.parent):
        if not path.parent.resolve().is_relative_to(folder.resolve()):
            raise WorkFailed(
                _(
                    "{path} is a link that leads out of the folder; nothing is written through it.",
                    path=path.parent,
                ),
                hint=_("Choose another folder, or remove the link.", option="--to"),
            )
        if path.is_symlink():
            return True
        found = path.read_bytes() if path.exists() else content
    return MARKER.encode() not in found[:_HEAD_BYTES] and found != content


@contextmanager
def _convert_os_errors(folder: Path) -> Iterator[None]:
    """Turn an `OSError` within the block into `WorkFailed`, which names the folder and the next step."""
    try:
        yield
    except OSError as error:
        raise WorkFailed(
            _("The files cannot be written to {folder}: {reason}.", folder=folder, reason=error.strerror or error),
            hint=_("Choose a folder of your own.", option="--to"),
        ) from error


_SPECIAL = re.compile(r"([\\`*_\[\]|#~])")


def report_text(setup: Setup) -> str:
    """Return the report as Markdown: what came from outside is escaped, a home folder becomes `~`."""
    environment, report = setup.environment, setup.report
    facts = replace(setup.machine, packages=environment.packages, nvidia_smi_output=None, evidence=())
    machine = to_json(facts, indent=1)
    folder = "Scripts" if "Scripts" in re.split(r"[\\/]", environment.python)[-2:] else "bin"
    return fill_template(
        "report.md",
        {
            "text": escape,
            "code": code,
            "cell": lambda value: escape(value) if isinstance(value, Message) else code(value),
            "cells": lambda row: f"| {' | '.join(map(escape, row))} |",
        },
        setup=setup,
        plan=setup.plan,
        report=report,
        environment=environment,
        machine=machine_rows(setup.machine, hide={"packages"}),
        choice=plan_rows(setup.plan, setup.machine.disk_free_gb),
        verdict=verdict(report),
        headings=CHECK_HEADINGS,
        checks=check_rows(fold_packages(report)),
        speeds=speed_lines(report),
        activate={
            "bash": f"source {_shell_path(environment.path, folder, 'activate')}",
            "powershell": f"{ALLOW_SCRIPTS}; & {_shell_path(environment.path, folder, 'Activate.ps1')}",
        },
        machine_json=machine,
        fence="`" * max(3, 1 + max(map(len, re.findall("`+", machine)), default=0)),
        target=_shell_path(environment.path),
    )


def escape(value: object) -> str:
    """Escape a value for Markdown and HTML, on one line, so that it also fits a table cell."""
    entities = _line(value).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\1", entities).replace("://", ":&#47;&#47;")  # no address from outside becomes a link


def code(value: object) -> str:
    """Return a value as a code span of Markdown on one line, whatever backticks or bars it holds; "" if it is empty."""
    line = _line(value).replace("|", "\\|")
    fence = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    space = " " if "`" in line else ""
    return f"{fence}{space}{line}{space}{fence}" if line else ""


def _line(value: object) -> str:
    return " ".join(shorten_home(render(value) if isinstance(value, Message) else str(value)).split())


def _shell_path(*parts: str) -> str:
    """Return a path joined of parts, quoted if it must be, for bash and PowerShell alike.

    Within quotes neither expands `~`, and both expand `$HOME`, which replaces the home folder.
    """
    path = "/".join(part.replace("\\", "/").rstrip("/") for part in parts)
    short = shorten_home(path)
    if short.startswith("~"):
        return f'"$HOME{short[1:]}"'
    return f'"{path}"' if re.search(r"[^\w./:-]", path) else path
