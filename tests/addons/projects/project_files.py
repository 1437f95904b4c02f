"""Files of a project written for a test, and what was told about them."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from assistant.i18n import render
from assistant_addons.projects.project import Project
from assistant_addons.projects.read import read_project


def read_text(name: str, text: str, **terms: list[str]) -> Project:
    """Read a file of this name that lies alone in a folder."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(text, encoding="utf-8")
        return read_project(str(path), **terms)


def told(project: Project) -> str:
    """Return all that was told, as one text."""
    return "\n".join(map(render, project.left_out))
