"""The files that can be exported, and the purposes that they serve: to add one, write a function and give it a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from assistant.export.config import config_text
from assistant.export.editors import kernelspec_text, runtime_text, verify_text, vscode_tasks_text, vscode_text
from assistant.export.launch import (
    devcontainer_text,
    dockerfile_text,
    dotenv_text,
    fish_text,
    launch_files,
    powershell_text,
    workflow_text,
)
from assistant.export.packages import (
    conda_text,
    constraints_text,
    lock_text,
    pixi_text,
    pyproject_text,
    requirements_text,
)
from assistant.export.report import report_text
from assistant.export.setup import Setup
from assistant.i18n import Message, _, render


@dataclass(frozen=True)
class Purpose:
    """A title, what it brings in a few words, and the formats; those that a setup cannot have are left out."""

    title: Message
    lead: Message
    formats: tuple[str, ...] = ()


PURPOSES = {
    "": Purpose(_("Everything"), _("all the files that suit this setup")),
    "colleague": Purpose(
        _("A colleague"),
        _("to make the same environment on a similar machine"),
        ("assistant.toml", "pylock.toml", "requirements.txt", "constraints.txt", "report.md"),
    ),
    "project": Purpose(
        _("My project"),
        _("requirements, lock, variables, editor"),
        (
            "requirements.txt",
            "constraints.txt",
            "pylock.toml",
            "pyproject.toml",
            "pixi.toml",
            "environment.yml",
            ".env",
            "env.ps1",
            "env.fish",
            ".vscode/settings.json",
            ".vscode/tasks.json",
            "device.py",
            "fallback.py",
            "verify.py",
        ),
    ),
    "container": Purpose(
        _("A container"),
        _("Docker, devcontainer, GitHub"),
        ("Dockerfile", ".devcontainer/devcontainer.json", ".github/workflows/torch.yml"),
    ),
    "report": Purpose(_("A bug report"), _("one text, without private information"), ("report.md",)),
}


@dataclass(frozen=True)
class Format:
    """One kind of export: `files` returns its texts by path below the export folder, `purpose` says what they are for.

    `MARKER` stands at the beginning of each text. `files` raises `Unsuited` for a setup that cannot have the format.
    `needs` are the formats that its own text reads: they are written along, for alone it would not work.
    """

    files: Callable[[Setup], dict[str, str]]
    purpose: Message
    needs: tuple[str, ...] = ()

    @property
    def description(self) -> str:
        """What the files are for, in a few words of the current language."""
        return render(self.purpose)


def _one(path: str, text: Callable[[Setup], str], purpose: Message, needs: tuple[str, ...] = ()) -> tuple[str, Format]:
    return path, Format(lambda setup: {path: text(setup)}, purpose, needs)


FORMATS = dict(
    [
        _one("assistant.toml", config_text, _("the whole setup, for `assistant apply` and `assistant check`")),
        _one("report.md", report_text, _("what was found, chosen and verified, for people and bug reports")),
        _one(".env", dotenv_text, _("variables for bash, Docker and VS Code")),
        _one("env.ps1", powershell_text, _("variables for PowerShell")),
        _one("env.fish", fish_text, _("variables for fish")),
        _one("requirements.txt", requirements_text, _("every package pinned, for pip and uv")),
        _one("constraints.txt", constraints_text, _("keeps later installations at these versions")),
        _one("pylock.toml", lock_text, _("every package with its address and hash, for uv and pip (PEP 751)")),
        _one("pyproject.toml", pyproject_text, _("a project for uv, torch tied to its own index")),
        _one("pixi.toml", pixi_text, _("a workspace for pixi")),
        _one("environment.yml", conda_text, _("an environment for conda and mamba")),
        _one(
            "Dockerfile",
            dockerfile_text,
            _("a container that reaches the same device"),
            ("requirements.txt", "device.py"),
        ),
        _one(
            ".devcontainer/devcontainer.json",
            devcontainer_text,
            _("the same container in VS Code"),
            ("Dockerfile", "requirements.txt", "device.py"),
        ),
        _one("kernelspec/kernel.json", kernelspec_text, _("a Jupyter kernel that travels with the environment")),
        _one(".vscode/settings.json", vscode_text, _("VS Code's interpreter and variables")),
        _one(
            ".vscode/tasks.json",
            vscode_tasks_text,
            _("VS Code's tasks that run `assistant check`"),
            ("assistant.toml",),
        ),
        _one(
            ".github/workflows/torch.yml",
            workflow_text,
            _("a GitHub job that installs and verifies"),
            ("requirements.txt", "device.py", "verify.py"),
        ),
        _one("verify.py", verify_text, _("computes on the device and compares with the CPU"), ("device.py",)),
        _one("device.py", lambda _setup: runtime_text("device.py"), _("picks the device in your own code")),
        _one("fallback.py", lambda _setup: runtime_text("fallback.py"), _("runs on the CPU what the device cannot")),
        ("launch", Format(launch_files, _("start settings for image applications such as ComfyUI"))),
    ]
)
