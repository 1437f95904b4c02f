"""What an export is for: the formats that belong together, so that nobody has to know twenty of them."""

from __future__ import annotations

from dataclasses import dataclass

from assistant.i18n import Message, _


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
