"""The project that a setup is for, as it was read."""

from __future__ import annotations

from assistant.i18n import Message, _, as_typed, say
from assistant.markup import Markup, joined
from assistant.model.finding import Severity
from assistant.model.project import Project
from assistant.model.shell import quoted
from assistant.views import project_lines, project_summary
from assistant.wizard import html


def draw_project(project: Project, name: str) -> Markup:
    """Show what was read of the project called `name`, what was left out, and the command that takes options for it."""
    lines = [line for _taken, line in project_lines(project, project.sure)]
    options = (str(line.params["option"]) for line in lines if isinstance(line, Message) and "option" in line.params)
    command = f"assistant setup -r {quoted(name)}"
    more = _("To include more, run `{command}` in the terminal with {options}.", command=command)
    named = tuple(dict.fromkeys(options))
    told = html.paragraph(as_typed(more.format(options=named))) if named else html.NOTHING
    folded = html.details(say("What was included, and what was left out"), joined([html.bullets(lines), told]))
    return html.note(Severity.INFO, project_summary(project), folded if lines else html.NOTHING)
