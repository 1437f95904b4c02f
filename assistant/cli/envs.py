"""`assistant envs`: the environments that the assistant made."""

from __future__ import annotations

import click

from assistant.cli.terminal import ask, echo, echo_json
from assistant.host.live import LiveHost
from assistant.i18n import _, as_typed, say
from assistant.install import Made, made_environments, remove_environment
from assistant.install import prune as prune_downloads
from assistant.model.errors import Cancelled


@click.command()
@click.option(
    "--remove", default="", metavar="NAME", help="Remove one by its name, folder or kernel, with its kernels."
)
@click.option("--prune", is_flag=True, help="Delete downloaded files that are kept for another time.")
@click.option("--yes", is_flag=True, help="Answer every question with yes.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
def envs(remove: str, *, prune: bool, yes: bool, as_json: bool) -> None:
    """List the environments that the assistant made, or remove one."""
    if prune or remove:
        freed = prune_downloads() if prune else None
        _tell(_remove(remove, yes=yes) if remove else None, freed, as_json=as_json)
        return
    found = made_environments(LiveHost())
    if as_json:
        echo_json(found)
    elif found:
        _draw(found)
    else:
        echo(as_typed(say("There is none yet; `assistant setup` makes one.")))


def _remove(name: str, *, yes: bool) -> str:
    question = say("Remove {name} and all that is in it?", name=name)
    if not yes and not ask(question, default=False, err=True):
        raise Cancelled(_("Nothing was removed."))
    return str(remove_environment(name))


def _tell(removed: str | None, freed: int | None, *, as_json: bool) -> None:
    if as_json:
        echo_json({"removed": removed, "freed_bytes": freed})
        return
    if freed is not None:
        echo(say("{size} MB were freed.", size=freed // 10**6))
    if removed:
        echo(say("{path} is removed.", path=removed))


def _draw(found: tuple[Made, ...]) -> None:
    from rich.table import Table  # noqa: PLC0415 - --json need not load the drawing library
    from rich.text import Text  # noqa: PLC0415

    from assistant.cli.console import console  # noqa: PLC0415

    table = Table(box=None, padding=(0, 2))
    for heading in (say("Name"), say("Backend"), "PyTorch", "Python", say("Size"), say("State")):
        table.add_column(heading, overflow="fold")
    for one in found:
        state = {"good": say("good"), "changed": say("changed since"), "broken": say("broken")}[one.health]
        state += f": {', '.join(one.differs)}" if one.differs else ""
        size = say("{size} MB", size=one.size // 10**6)
        told = (one.name, one.backend, one.torch, one.python, size, state)
        table.add_row(*(Text(text) for text in told))
    console.print(table)
    for one in found:
        kernels = say(", kernels: {names}", names=", ".join(one.kernels)) if one.kernels else ""
        console.print(Text(f"  {one.name}: {one.path}{kernels}"))
