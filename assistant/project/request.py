"""From a project to what is asked of the planner."""

from __future__ import annotations

from collections.abc import Iterable

from packaging.specifiers import SpecifierSet

from assistant.model.plan import Request
from assistant.model.project import Guess, Project
from assistant.model.record import replace


def with_guesses(project: Project, agreed: Iterable[Guess]) -> Project:
    """Return a project that requires what the user agreed to of its guesses."""
    taken = tuple(guess.distribution for guess in agreed)
    return replace(project, requires=tuple(dict.fromkeys((*project.requires, *taken))))


def with_project(request: Request, project: Project) -> Request:
    """Return a request that asks for all that a project requires, too; what the user asks for comes first."""
    pythons = SpecifierSet(request.pythons) & SpecifierSet(project.pythons)
    return replace(
        request,
        pins=tuple(dict.fromkeys((*request.pins, *project.requires))),
        constraints=(*request.constraints, *project.constraints),
        overrides=(*request.overrides, *project.overrides),
        pythons=str(pythons),
        indexes=(*request.indexes, *project.indexes),
        links=(*request.links, *project.links),
    )
