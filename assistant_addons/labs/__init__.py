"""Break-and-fix labs: a really broken environment in a scratch folder, hints, a check that runs, and a score."""

from __future__ import annotations

from assistant_addons.labs.definition import LabText, lab_at, labs
from assistant_addons.labs.grade import Grade, grade
from assistant_addons.labs.lab import Lab, needs_of
from assistant_addons.labs.notebook import write_notebooks
from assistant_addons.labs.scene import environment_with_torch

__all__ = [
    "Grade",
    "Lab",
    "LabText",
    "environment_with_torch",
    "grade",
    "lab_at",
    "labs",
    "needs_of",
    "write_notebooks",
]
