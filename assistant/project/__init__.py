"""Read what a project needs from its own files: requirements, pyproject, environment.yml, or imports."""

from assistant.project.read import read_project, with_project

__all__ = ["read_project", "with_project"]
