"""`assistant envs`: the environments that the assistant made."""

from __future__ import annotations

import click

from assistant.cli.terminal import ask, echo
from assistant.host.live import LiveHost
from assistant.i18n import _, as_typed
from assistant.install.made import Made, made_environments, remove_environment
from assistant.install.made import prune as prune_downloads
from assistant.model.errors import Cancelled
from assistant.model.record import to_json

__all__ = ["envs"]


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
        echo(to_json(found, indent=2))
    elif found:
        _draw(found)
    else:
        echo(as_typed(_("There is none yet; `assistant setup` makes one.")))


def _remove(name: str, *, yes: bool) -> str:
    question = _("Remove {name} and all that is in it?").format(name=name)
    if not yes and not ask(question, default=False, err=True):
        raise Cancelled(_("Nothing was removed."))
    return str(remove_environment(name))


def _tell(removed: str | None, freed: int | None, *, as_json: bool) -> None:
    if as_json:
        echo(to_json({"removed": removed, "freed_bytes": freed}, indent=2))
        return
    if freed is not None:
        echo(_("{size} MB were freed.").format(size=freed // 10**6))
    if removed:
        echo(_("{path} is removed.").format(path=removed))


def _draw(found: tuple[Made, ...]) -> None:
    from rich.table import Table  # noqa: PLC0415 - --json need not load the drawing library
    from rich.text import Text  # noqa: PLC0415

    from assistant.cli.console import console  # noqa: PLC0415

    table = Table(box=None, padding=(0, 2))
    for heading in (_("Name"), _("Backend"), "PyTorch", "Python", _("Size"), _("State")):
        table.add_column(heading, overflow="fold")
    for one in found:
        state = {"good": _("good"), "changed": _("changed since"), "broken": _("broken")}[one.health]
        state += f": {', '.join(one.differs)}" if one.differs else ""
        size = _("{size} MB").format(size=one.size // 10**6)
        told = (one.name, one.backend, one.torch, one.python, size, state)
        table.add_row(*(Text(text) for text in told))
    console.print(table)
    for one in found:
        kernels = _(", kernels: {names}").format(names=", ".join(one.kernels)) if one.kernels else ""
        console.print(Text(f"  {one.name}: {one.path}{kernels}"))
