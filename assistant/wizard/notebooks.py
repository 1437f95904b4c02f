"""Where the guided notebooks lie: beside the package in a checkout, inside it in an installed wheel."""

from __future__ import annotations

from pathlib import Path

__all__ = ["folder_of_notebooks"]


def folder_of_notebooks() -> Path:
    """Answer the folder that holds `setup.ipynb`."""
    package = Path(__file__).parents[1]
    inside = package / "notebooks"
    return inside if inside.is_dir() else package.parent / "notebooks"
