"""From a project to what is asked of the planner."""

from __future__ import annotations

from collections.abc import Iterable

from packaging.specifiers import SpecifierSet

from assistant.model.plan import Request
from assistant.model.project import Guess, Project
from assistant.model.record import replace


def with_project(request: Request, project: Project, agreed: Iterable[Guess]) -> Request:
    """Return a request that asks for all that a project requires, too; what the user asks for comes first.

    Of the project's guesses those are required that the user agreed to.
    """
    guessed = (guess.distribution for guess in agreed)
    return replace(
        request,
        pins=tuple(dict.fromkeys((*request.pins, *project.requires, *guessed))),
        constraints=(*request.constraints, *project.constraints),
        overrides=(*request.overrides, *project.overrides),
        pythons=str(SpecifierSet(request.pythons) & SpecifierSet(project.pythons)),
        indexes=(*request.indexes, *project.indexes),
        links=(*request.links, *project.links),
    )
