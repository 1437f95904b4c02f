"""Runs learners' notebooks anew in copies, so that a grade rests on what their cells do and not on what they say."""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbclient import NotebookClient

__all__ = ["rerun"]

CELL_SECONDS = 300


def rerun(folder: Path, copy: Path) -> Path:
    """Run every notebook below a folder and write what came of it below `copy`; answer that."""
    for path in sorted(folder.rglob("*.ipynb")):
        if ".ipynb_checkpoints" not in path.parts:
            place = copy / path.relative_to(folder)
            place.parent.mkdir(parents=True, exist_ok=True)
            _run(path, place)
    return copy


def _run(path: Path, place: Path) -> None:
    try:
        notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
        place_of_run = {"metadata": {"path": str(path.parent)}}
        NotebookClient(notebook, timeout=CELL_SECONDS, allow_errors=True, resources=place_of_run).execute()
        nbformat.write(notebook, place)  # type: ignore[no-untyped-call]
    except Exception as error:  # noqa: BLE001 - what cannot be run has no grade, whatever its outputs claim
        place.write_text(str(error), encoding="utf-8")
