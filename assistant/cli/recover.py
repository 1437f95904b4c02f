"""`assistant recover`: take back what a killed installation left."""

from __future__ import annotations

from pathlib import Path

import click

from assistant.host.lock import Holder
from assistant.i18n import _
from assistant.install.journal import busy
from assistant.install.journal import recover as take_back
from assistant.model.errors import AssistantError
from assistant.model.record import to_json

__all__ = ["recover"]


@click.command()
@click.option("--target", default="", metavar="PATH", help="One environment; all that are known by default.")
@click.option("--json", "as_json", is_flag=True, help="Print the paths as JSON.")
def recover(target: str, *, as_json: bool) -> None:
    """Take back what a killed installation left; harmless when there is nothing."""
    done: list[str] = []
    held: list[AssistantError] = []

    def told(path: Path, holder: Holder | None) -> None:
        if holder:
            held.append(busy(path, holder))
            return
        done.append(str(path))
        if not as_json:
            click.echo(_("{path} is as it was before.").format(path=path))

    take_back(Path(target).expanduser().absolute() if target else None, told)
    if as_json:
        click.echo(to_json(done))
    elif not done and not held:
        click.echo(_("There is nothing to take back."))
    if held:
        raise held[0]
