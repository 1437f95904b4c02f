"""What `-r` names: a project is read, what was read is shown, and its guesses are taken where the user agrees."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from assistant.cli.inputs import read_file
from assistant.cli.terminal import ask, echo
from assistant.i18n import _, as_typed
from assistant.model.plan import Request
from assistant.model.project import Guess, Project
from assistant.views import guessed, project_summary


def project_of(options: dict[str, Any], trusted: Iterable[str]) -> Project | None:
    """Take what `project_options` have read out of a command's options, and read it; None where nothing is named."""
    names, extras = options.pop("projects"), options.pop("extras")
    if not names:
        return None
    from assistant.project import joined, read_project, read_text  # noqa: PLC0415 - most commands name no project

    links = options.get("find_links", ())
    terms = {"extras": extras, "trusted": (*trusted, *links)}
    return joined(
        read_text("", read_file(name), **terms) if name == "-" else read_project(name, **terms) for name in names
    )


def agree_project(
    request: Request, project: Project, *, asks: bool = False, all_taken: bool = False, quiet: bool = False
) -> Request:
    """Show what was read and return the request with it; packages guessed from imports are taken as the user agrees.

    Where nobody can be asked, those are taken that one package alone can be meant by; with `all_taken` all of them, as
    for a plan, which changes nothing.
    """
    from assistant.project import with_guesses, with_project  # noqa: PLC0415 - likewise

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
        _show(project, agreed)
    return with_project(request, with_guesses(project, agreed))


def _show(project: Project, agreed: tuple[Guess, ...]) -> None:
    left = tuple(guess for guess in project.guesses if guess not in agreed)
    if agreed:
        taken = _("Packages taken for what the code imports: {packages}.", packages=guessed(agreed))
        echo(f"    · {as_typed(taken)}")
    if left:
        told = _("Left out, though the code seems to import them: {packages}.", packages=guessed(left), option="--pin")
        echo(f"    ! {as_typed(told)}")
    for sentence in project.left_out:
        echo(f"    ! {as_typed(sentence)}")
