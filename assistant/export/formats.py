"""The files that can be exported: to add one, write a function from `Bundle` to text and give it a row here."""

from __future__ import annotations

from collections.abc import Callable

from assistant.export.bundle import Bundle
from assistant.export.config import config_text
from assistant.export.dotenv import dotenv_text
from assistant.export.markdown import report_text
from assistant.export.requirements import requirements_text

__all__ = ["FORMATS"]

# File name, relative to the export folder, to what writes it; the first line of each text holds `MARKER`.
FORMATS: dict[str, Callable[[Bundle], str]] = {
    "assistant.toml": config_text,
    ".env": dotenv_text,
    "requirements.txt": requirements_text,
    "report.md": report_text,
}
