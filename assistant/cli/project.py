"""What `-r` names: a project is read, what was read is shown, and its guesses are taken where the user agrees."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from assistant.cli.inputs import read_file
from assistant.cli.terminal import ask, echo
from assistant.host.live import LiveHost
from assistant.i18n import _, as_typed
from assistant.install import Sources
from assistant.model.plan import Request
from assistant.model.project import Project
from assistant.views import guessed, project_lines, project_summary


def project_of(options: dict[str, Any], trusted: Iterable[str]) -> Project | None:
    """Take what `project_options` have read out of a command's options, and read it; None where nothing is named."""
    names, extras = options.pop("projects"), options.pop("extras")
    if not names:
        return None
    from assistant.project import read_project  # noqa: PLC0415 - most commands name no project

    own = Sources(LiveHost(), index_url=options.get("index_url", ""), find_links=options.get("find_links", ())).trusted
    named = (read_file(name) if name == "-" else name for name in names)
    return read_project(*named, extras=extras, trusted=(*trusted, *own))


def agree_project(
    request: Request, project: Project, *, asks: bool = False, all_taken: bool = False, quiet: bool = False
) -> Request:
    """Show what was read and return the request with it; packages guessed from imports are taken as the user agrees.

    Where nobody can be asked, only imports that a single package provides are taken; with `all_taken` every guess, as
    a plan changes nothing.
    """
    from assistant.project import with_project  # noqa: PLC0415 - likewise

    if not quiet:
        echo(project_summary(project))
    agreed = project.guesses
    if agreed and not all_taken:
        if asks and not quiet and sys.stdin.isatty():
            text = _("Install these packages, which the code seems to import: {packages}?", packages=guessed(agreed))
            agreed = agreed if ask(text, default=True) else ()
        else:
            agreed = project.sure
    if not quiet:
        for taken, line in project_lines(project, agreed):
            echo(f"    {'·' if taken else '!'} {as_typed(line)}")
    return with_project(request, project, agreed)
