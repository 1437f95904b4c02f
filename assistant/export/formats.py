"""The formats of an export, and the purposes that they serve: to add one, write a function and give it a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from assistant.export.config import config_text
from assistant.export.launch import container_files, launch_files, variable_files
from assistant.export.packages import conda_text, pinned_files, pyproject_text
from assistant.export.report import report_text
from assistant.export.setup import Setup, filled, runtime_text
from assistant.i18n import Message, _


class Format(NamedTuple):
    """One kind of export: what it is for, the function that returns its texts by path, and further names of it.

    `MARKER` stands at the beginning of each text. The function raises `Unsuited` for a setup that cannot have it.
    """

    description: Message
    files: Callable[[Setup], dict[str, str]]
    names: tuple[str, ...] = ()


def code_files(setup: Setup) -> dict[str, str]:
    """Return the files for a user's own code, and `verify.py`, which computes on the device as a proof."""
    files = {name: runtime_text(name) for name in ("device.py", "fallback.py")}
    return {**files, "verify.py": filled("verify.py", torch=setup.plan.torch)}


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
