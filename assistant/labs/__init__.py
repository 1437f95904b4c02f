"""Break-and-fix labs: a really broken environment in a scratch folder, hints, a check that runs, and a score."""

from __future__ import annotations

from assistant.labs.grade import Grade, grade
from assistant.labs.lab import Lab, Text, texts
from assistant.labs.scene import environment_with_torch

__all__ = ["Grade", "Lab", "Text", "environment_with_torch", "grade", "texts"]
