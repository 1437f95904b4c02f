"""`assistant envs`: the environments that the assistant made."""

from __future__ import annotations

import click

from assistant.cli.terminal import ask, echo, echo_json, json_option, yes_option
from assistant.host.live import LiveHost
from assistant.i18n import _, as_typed, say
from assistant.install import Made, made_environments, remove_environment
from assistant.install import prune as prune_downloads
from assistant.model.errors import Cancelled


@click.command()
@click.option(
    "--remove", default="", metavar="NAME", help="Remove this one, with its kernels: its name, folder or kernel."
)
@click.option("--prune", is_flag=True, help="Delete the downloaded files that are kept for later installations.")
@yes_option(help="Answer yes to every question.")
@json_option
def envs(remove: str, *, prune: bool, yes: bool, as_json: bool) -> None:
    """List the environments that the assistant made, or remove one."""
    if prune or remove:
        freed = prune_downloads() if prune else None
        removed = _remove(remove, yes=yes) if remove else None
        if as_json:
            echo_json({"removed": removed, "freed_bytes": freed})
            return
        if freed is not None:
            echo(say("Freed {size} MB.", size=freed // 10**6))
        if removed:
            echo(say("Removed {path}.", path=removed))
        return
    found = made_environments(LiveHost())
    if as_json:
        echo_json(found)
    elif found:
        _draw(found)
    else:
        echo(as_typed(say("There are no environments yet; `assistant setup` makes one.")))


def _remove(name: str, *, yes: bool) -> str:
    question = say("Remove {name} and all that is in it?", name=name)
    if not yes and not ask(question, default=False, err=True):
        raise Cancelled(_("Nothing was removed."))
    return str(remove_environment(name))


def _draw(found: tuple[Made, ...]) -> None:
    from assistant.cli.draw import draw_rows  # noqa: PLC0415 - --json need not load the drawing library

    headings = (say("Name"), say("Backend"), "PyTorch", "Python", say("Size"), say("State"))
    words = {"good": say("good"), "changed": say("changed since"), "broken": say("broken")}
    rows = []
    for one in found:
        state = words[one.health] + (f": {', '.join(one.differs)}" if one.differs else "")
        rows.append((one.name, one.backend, one.torch, one.python, say("{size} MB", size=one.size // 10**6), state))
    draw_rows(headings, rows)
    for one in found:
        kernels = say(", kernels: {names}", names=", ".join(one.kernels)) if one.kernels else ""
        echo(f"  {one.name}: {one.path}{kernels}")
