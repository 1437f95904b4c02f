"""The files that can be exported: to add one, write a function from `Bundle` to texts and give it a row here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from assistant.export.bundle import Bundle
from assistant.export.config import config_text
from assistant.export.dotenv import dotenv_text
from assistant.export.markdown import report_text
from assistant.export.pylock import lock_text
from assistant.export.requirements import requirements_text
from assistant.i18n import _

__all__ = ["FORMATS", "Format"]


@dataclass(frozen=True)
class Format:
    """One kind of export: `files` gives its texts by path below the export folder, `told` says what they are for.

    The first line of each text holds `MARKER`. `files` raises `Unsuited` for a setup that cannot have the format.
    """

    files: Callable[[Bundle], dict[str, str]]
    told: Callable[[], str]

    @property
    def description(self) -> str:
        """Say in a few words, in the language in force, what the files are for."""
        return self.told()


def _one(name: str, text: Callable[[Bundle], str], told: Callable[[], str]) -> tuple[str, Format]:
    return name, Format(lambda bundle: {name: text(bundle)}, told)


FORMATS: dict[str, Format] = dict(
    (
        _one("assistant.toml", config_text, lambda: _("the whole setup, for `assistant apply` and `assistant check`")),
        _one(".env", dotenv_text, lambda: _("variables for bash, Docker and VS Code")),
        _one("requirements.txt", requirements_text, lambda: _("every package pinned, for pip")),
        _one("pylock.toml", lock_text, lambda: _("every package with its address and hash, for uv and pip (PEP 751)")),
        _one("report.md", report_text, lambda: _("what was found, chosen and verified, for people")),
    )
)
