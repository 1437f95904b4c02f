"""Read what a project needs from its own files: requirements, pyproject, conda, locks, notebooks, or its imports."""

from assistant.project.read import joined, read_project, read_text
from assistant.project.request import with_guesses, with_project

__all__ = ["joined", "read_project", "read_text", "with_guesses", "with_project"]
