"""What is said of a lab, in a terminal as in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assistant.api import say
from assistant.api.steps import system_name
from assistant_addons.labs import activation
from assistant_addons.labs.definition import EVERYWHERE

if TYPE_CHECKING:
    from assistant_addons.labs.definition import Definition
    from assistant_addons.labs.play import Play


def needs_of(definition: Definition) -> str:
    """Return where a lab can be played, where not everywhere, as a short text."""
    systems = [] if definition.systems == EVERYWHERE else map(system_name, definition.systems)
    return ", ".join([*systems, *([f"Python {definition.python}"] if definition.python else [])])


def opening_of(play: Play) -> str:
    """Return the task of a lab that was started, where it lies, and what to type, for a terminal."""
    definition, folder = play.definition, play.space.folder
    lines = [str(definition.title), "", str(definition.task), "", may_change(definition)]
    lines += ["", say("In a terminal:"), f"  {activation.command(folder)}", f"  {definition.symptom}"]
    lines += ["", say("What is the cause? Find it before you fix anything:")]
    lines += [f"  {key}: {words}" for key, words in play.causes.items()]
    lines += ["", say("In the lab's folder, these help:")]
    lines += [
        f'  assistant labs cause --is {say("CAUSE")} --because "…"',
        "  assistant labs hint",
        "  assistant labs check",
    ]
    return "\n".join(lines)


def may_change(definition: Definition) -> str:
    """Return what a check looks at."""
    if not definition.installs:
        return say("Only what you change in {files} counts.", files=", ".join(definition.files))
    if not definition.files:
        return say("Only what you install counts.")
    return say("What you install and change in {files} counts.", files=", ".join(definition.files))


def result_line(play: Play, fault: str) -> str:
    """Return what a check found, with the points, and what to keep in mind where the lab is solved."""
    result, definition = play.result, play.definition
    if fault:
        return say("Not fixed yet. {fault}", fault=fault)
    parts = [say("Fixed, {points} points.", points=result.points), str(definition.explanation)]
    if result.guessed:
        parts.append(say("The cause was: {cause}", cause=str(definition.causes[definition.cause])))
    parts.append(say("Remember: {words}", words=str(definition.remember)))
    return "\n\n".join([*parts, say("Your result: {file}", file=play.result_path)])
