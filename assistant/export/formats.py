"""What an exported setup holds, the files that can be made of it, and the purposes that they serve.

To add a file, write a function and give it a row.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import tomli_w

from assistant import __version__
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
from assistant.host.telemetry import quiet
from assistant.i18n import Message, _, render, say
from assistant.model.errors import BadInput
from assistant.model.finding import Finding
from assistant.model.machine import Machine
from assistant.model.plan import Plan
from assistant.model.record import Record, replace
from assistant.model.report import Environment, Report
from assistant.model.visible import spelled
from assistant.privacy import NOBODY, Known, redact

# The first line of every file that we write holds this; a file without it is somebody else's.
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MARKER = "Written by torch-setup-assistant"


class Setup(Record, frozen=True):
    """One setup: the machine and its findings, the plan, the environment made from it and its verification.

    `lock` is the packages' PEP 751 text and `hashes` the SHA-256 of each file by package, both empty where they are
    not known.
    """

    machine: Machine
    plan: Plan
    environment: Environment
    report: Report
    findings: tuple[Finding, ...] = ()
    lock: str = ""
    hashes: dict[str, str] = {}
    version: str = __version__


def without_path(environment: Environment) -> Environment:
    """Keep the folder's name and the interpreter's path within it; the rest of either is nobody else's.

    Nor is what this machine's launcher shows, which names the user's card.
    """
    parts = re.split(r"[\\/]", environment.python)[-2:]
    folder = re.split(r"[\\/]", environment.path.rstrip("\\/"))[-1].strip(". ").replace(":", "")
    inside = parts if parts[0] in {"bin", "Scripts"} else parts[-1:]
    return replace(environment, path=folder or "environment", python="/".join(inside), display_name="")


class Unsuited(BadInput):
    """A format that this setup cannot have: no container reaches Metal, for example."""


def clean(setup: Setup, known: Known = NOBODY) -> Setup:
    """Remove what must not leave this machine; requirements and addresses stay usable."""
    return redact(replace(setup, lock=_lasting(setup.lock)), known=known)


def _lasting(lock: str) -> str:
    """Remove what differs from one export of the same packages to the next.

    uv's first lines name folders of this machine; size and time of a file an index may state today and not tomorrow
    (PEP 751 needs neither: the hash says which file is meant).
    """
    # wheels = [{ url = "https://…/numpy-2.4.6-….whl", upload-time = 2026-06-01T10:00:00Z, size = 16000000, hashes = …
    rows = "".join(line for line in lock.splitlines(keepends=True) if not line.startswith("#"))
    return re.sub(r"\b(?:upload-time|size) = [\w:.+-]+, (?=\w)", "", rows)


def variables(setup: Setup) -> dict[str, str]:
    """Return the plan's variables, `INFERENCE_DEVICE` (the one that was verified) and what keeps libraries quiet.

    Line breaks become spaces: no format of these has a way to write one.
    """
    every = {**quiet(), **setup.plan.env, "INFERENCE_DEVICE": setup.report.device}
    return {name: " ".join(value.splitlines()) for name, value in sorted(every.items()) if _VARIABLE.fullmatch(name)}


FOLDER = Path(__file__).with_name("templates")


def filled(template: str, filters: Mapping[str, Callable[..., str]] | None = None, **content: object) -> str:
    """Fill `templates/<template>.j2`; a missing name is an error, the filter `json` quotes for JSON and YAML."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 - 60 ms, needed only here

    templates = Environment(  # noqa: S701 - none of the formats is HTML; filters and `json` quote
        loader=FileSystemLoader(FOLDER),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters.update({"json": json_text, **(filters or {})})
    return templates.get_template(f"{template}.j2").render(_=say, marker=MARKER, **content)


def json_text(value: object, indent: int | None = None) -> str:
    """Encode as JSON with every hidden character escaped; YAML and Python read such strings alike."""
    return spelled(json.dumps(value, ensure_ascii=False, indent=indent))


def toml_text(value: Mapping[str, object]) -> str:
    """Encode as TOML with every hidden character escaped."""
    return spelled(tomli_w.dumps(value), long=True)


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
    """

    files: Callable[[Setup], dict[str, str]]
    purpose: Message

    @property
    def description(self) -> str:
        """What the files are for, in a few words of the current language."""
        return render(self.purpose)


def _one(path: str, text: Callable[[Setup], str], purpose: Message) -> tuple[str, Format]:
    return path, Format(lambda setup: {path: text(setup)}, purpose)


FORMATS = dict(
    [
        _one(
            "assistant.toml",
            config_text,
            _("the whole setup, for `assistant apply` and `assistant check`"),
        ),
        _one(
            "report.md",
            report_text,
            _("what was found, chosen and verified, for people and bug reports"),
        ),
        _one(".env", dotenv_text, _("variables for bash, Docker and VS Code")),
        _one("env.ps1", powershell_text, _("variables for PowerShell")),
        _one("env.fish", fish_text, _("variables for fish")),
        _one("requirements.txt", requirements_text, _("every package pinned, for pip and uv")),
        _one("constraints.txt", constraints_text, _("keeps later installations at these versions")),
        _one("pylock.toml", lock_text, _("every package with its address and hash, for uv and pip (PEP 751)")),
        _one("pyproject.toml", pyproject_text, _("a project for uv, torch tied to its own index")),
        _one("pixi.toml", pixi_text, _("a workspace for pixi")),
        _one("environment.yml", conda_text, _("an environment for conda and mamba")),
        _one("Dockerfile", dockerfile_text, _("a container that reaches the same device")),
        _one(".devcontainer/devcontainer.json", devcontainer_text, _("the same container in VS Code")),
        _one(
            "kernelspec/kernel.json",
            kernelspec_text,
            _("a Jupyter kernel that travels with the environment"),
        ),
        _one(".vscode/settings.json", vscode_text, _("VS Code's interpreter and variables")),
        _one(".vscode/tasks.json", vscode_tasks_text, _("VS Code's tasks that run `assistant check`")),
        _one(".github/workflows/torch.yml", workflow_text, _("a GitHub job that installs and verifies")),
        _one("verify.py", verify_text, _("computes on the device and compares with the CPU")),
        _one("device.py", lambda _setup: runtime_text("device.py"), _("picks the device in your own code")),
        _one("fallback.py", lambda _setup: runtime_text("fallback.py"), _("runs on the CPU what the device cannot")),
        ("launch", Format(launch_files, _("start settings for image applications such as ComfyUI"))),
    ]
)
# What a format's own text reads: it is written along, for alone it would not work.
NEEDS = {
    "Dockerfile": ("requirements.txt", "device.py"),
    ".devcontainer/devcontainer.json": ("Dockerfile", "requirements.txt", "device.py"),
    ".vscode/tasks.json": ("assistant.toml",),
    ".github/workflows/torch.yml": ("requirements.txt", "device.py", "verify.py"),
}
