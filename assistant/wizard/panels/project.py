"""The project that a setup is for, as it was read."""

from __future__ import annotations

from assistant.i18n import _, say
from assistant.markup import Markup
from assistant.model.finding import Severity
from assistant.model.project import Project
from assistant.views import guessed, project_summary
from assistant.wizard import html


def draw_project(project: Project) -> Markup:
    """Show what was read of a project: what its imports were taken for, and what was left out."""
    taken = guessed(project.sure)
    open_ = guessed(guess for guess in project.guesses if guess.others)
    lines = [
        *([_("Packages taken for what the code imports: {packages}.", packages=taken)] if taken else []),
        *([_("Left out, though the code seems to import them: {packages}.", packages=open_)] if open_ else []),
        *project.left_out,
    ]
    more = html.details(say("What was taken, and what was left out"), html.bullets(lines)) if lines else html.NOTHING
    return html.note(Severity.INFO, project_summary(project), more)
