"""The files that can be exported: to add one, write a function from `Bundle` to texts and give it a row here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from assistant.export.bundle import Bundle
from assistant.export.config import config_text
from assistant.export.containers import devcontainer_text, dockerfile_text
from assistant.export.editors import kernelspec_text, runtime_text, verify_text, vscode_text
from assistant.export.launch import launch_files
from assistant.export.markdown import report_text
from assistant.export.pins import constraints_text, lock_text, requirements_text
from assistant.export.projects import conda_text, pixi_text, pyproject_text
from assistant.export.shells import dotenv_text, fish_text, powershell_text
from assistant.export.workflow import workflow_text
from assistant.i18n import say


@dataclass(frozen=True)
class Format:
    """One kind of export: `files` gives its texts by path below the export folder, `told` says what they are for.

    `MARKER` stands at the beginning of each text. `files` raises `Unsuited` for a setup that cannot have the format.
    """

    files: Callable[[Bundle], dict[str, str]]
    told: Callable[[], str]

    @property
    def description(self) -> str:
        """Say in a few words, in the language in force, what the files are for."""
        return self.told()


def _one(path: str, text: Callable[[Bundle], str], told: Callable[[], str]) -> Format:
    return Format(lambda bundle: {path: text(bundle)}, told)


def _copy(name: str, told: Callable[[], str]) -> Format:
    return _one(name, lambda _bundle: runtime_text(name), told)


def _rows() -> dict[str, Format]:
    every = {
        "assistant.toml": (config_text, lambda: say("the whole setup, for `assistant apply` and `assistant check`")),
        "report.md": (report_text, lambda: say("what was found, chosen and verified, for people and bug reports")),
        ".env": (dotenv_text, lambda: say("variables for bash, Docker and VS Code")),
        "env.ps1": (powershell_text, lambda: say("variables for PowerShell")),
        "env.fish": (fish_text, lambda: say("variables for fish")),
        "requirements.txt": (requirements_text, lambda: say("every package pinned, for pip and uv")),
        "constraints.txt": (constraints_text, lambda: say("keeps later installations to these versions")),
        "pylock.toml": (lock_text, lambda: say("every package with its address and hash, for uv and pip (PEP 751)")),
        "pyproject.toml": (pyproject_text, lambda: say("a project for uv, torch tied to its own index")),
        "pixi.toml": (pixi_text, lambda: say("a workspace for pixi")),
        "environment.yml": (conda_text, lambda: say("an environment for conda and mamba")),
        "Dockerfile": (dockerfile_text, lambda: say("a container that reaches the same device")),
        ".devcontainer/devcontainer.json": (devcontainer_text, lambda: say("the same container in VS Code")),
        "kernelspec/kernel.json": (kernelspec_text, lambda: say("a Jupyter kernel that travels with the environment")),
        ".vscode/settings.json": (vscode_text, lambda: say("VS Code's interpreter and variables")),
        ".github/workflows/torch.yml": (workflow_text, lambda: say("a GitHub job that installs and verifies")),
        "verify.py": (verify_text, lambda: say("computes on the device and compares with the CPU")),
    }
    return {path: _one(path, text, told) for path, (text, told) in every.items()} | {
        "device.py": _copy("device.py", lambda: say("picks the device in your own code")),
        "fallback.py": _copy("fallback.py", lambda: say("runs on the CPU what the device cannot")),
        "launch": Format(launch_files, lambda: say("start settings for image applications such as ComfyUI")),
    }


FORMATS: dict[str, Format] = _rows()
# What a format's own text reads: it is written along, for alone it would not work.
NEEDS = {
    "Dockerfile": ("requirements.txt", "device.py"),
    ".devcontainer/devcontainer.json": ("Dockerfile", "requirements.txt", "device.py"),
    ".github/workflows/torch.yml": ("requirements.txt", "device.py", "verify.py"),
}
