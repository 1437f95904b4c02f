"""`assistant check CONFIG`: compare what is with what was; exit code 1 where it differs, for CI."""

from __future__ import annotations

from pathlib import Path

import click

from assistant.cli.apply import CONFIG_LIMIT, draw_drifts
from assistant.cli.console import console
from assistant.cli.inputs import host_of, read_file
from assistant.cli.terminal import echo_json
from assistant.detect import detect
from assistant.export import Config, read_config
from assistant.host.process import CancelToken
from assistant.i18n import ngettext, render, say
from assistant.install import python_of
from assistant.model.event import Event
from assistant.model.report import Report
from assistant.session.apply import drifts, environment_of
from assistant.session.store import Store
from assistant.verify import verify


@click.command()
@click.argument("config")
@click.option("--target", default="", metavar="PATH", help="An environment; by default the one that was made for it.")
@click.option("--replay", metavar="FILE", help="A recorded machine: a file, or the name of a shipped one.")
@click.option("--no-verify", is_flag=True, help="Compute nothing; compare machine and packages only.")
@click.option("--json", "as_json", is_flag=True, help="Print the differences as JSON.")
@click.pass_context
def check(
    context: click.Context, /, config: str, target: str, replay: str | None, *, no_verify: bool, as_json: bool
) -> None:
    """Compare what is with what was exported; exit code 1 where it differs."""
    told = read_config(read_file(config, CONFIG_LIMIT), config)
    host = host_of(replay)
    here = detect(host).machine
    last = Store().environment()
    folder = None if replay else environment_of(told, target, last.path if last else "")
    report = None if no_verify or folder is None else _verified(told, folder)
    found = drifts(told, here, folder, report, host)
    if as_json:
        rows = [{"kind": one.kind, "name": one.name, "was": one.was, "now": one.now, "text": one.text} for one in found]
        echo_json({"clean": not found, "drift": rows})
    elif found:
        draw_drifts(found)
        console.print(
            render(ngettext("{count} thing differs.", "{count} things differ.", len(found))),
            markup=False,
        )
    else:
        console.print(say("Everything is as it was."), markup=False)
    context.exit(1 if found else 0)


def _verified(told: Config, folder: Path) -> Report:
    def unheard(_event: Event) -> None:
        """Draw nothing: the answer is the difference."""

    settings = told.plan.env
    return verify(
        python_of(folder), told.verification.device, unheard, CancelToken(), level="quick", environment=settings
    )
