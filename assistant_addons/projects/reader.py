"""What the core calls for a project: its needs go into a request, as far as they are sure or the user agrees."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from assistant.api import _
from assistant.api.planning import ProjectSummary
from assistant.api.records import Request
from assistant.api.texts import as_typed
from assistant_addons.projects.project import Project, guessed, project_lines, project_summary
from assistant_addons.projects.read import read_project, with_project


def with_project_of(request: Request, trusted: Iterable[str]) -> tuple[Request, ProjectSummary]:
    """Read the project that a request names; return the request for all that is sure, and what was read, in words.

    Raises `BadInput` for a project that cannot be read.
    """
    project = read_project(request.project, trusted=trusted)
    lines = tuple(line for _taken, line in project_lines(project, project.sure))
    return with_project(request, project, project.sure), ProjectSummary(text=project_summary(project), lines=lines)


def agreed(
    request: Request, project: Project, *, asks: bool = False, all_taken: bool = False, quiet: bool = False
) -> Request:
    """Show on the terminal what was read, and return the request with it; the user agrees to packages for imports.

    Where nobody can be asked, only imports that a single package provides are taken; with `all_taken` every guess, as
    a plan changes nothing.
    """
    from assistant.api.terminal import ask, echo  # noqa: PLC0415 - the wizard needs none of it

    if not quiet:
        echo(project_summary(project))
    taken = project.guesses
    if taken and not all_taken:
        if asks and not quiet and sys.stdin.isatty():
            text = _("Install these packages, which the code seems to import: {packages}?", packages=guessed(taken))
            taken = taken if ask(text, default=True) else ()
        else:
            taken = project.sure
    if not quiet:
        for included, line in project_lines(project, taken):
            echo(f"    {'·' if included else '!'} {as_typed(line)}")
    return with_project(request, project, taken)
