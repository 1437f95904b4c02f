"""`assistant check CONFIG`: compare what is with what was; exit code 1 where it differs, for CI."""

from __future__ import annotations

from pathlib import Path

import click

from assistant.cli.apply import CONFIG_LIMIT
from assistant.cli.draw import draw_drifts
from assistant.cli.inputs import host_of, read_text, replay_option
from assistant.cli.terminal import echo, echo_json, json_option
from assistant.detect import detect
from assistant.export import Config, read_config
from assistant.host.process import CancelToken
from assistant.i18n import ngettext, say
from assistant.install import python_of
from assistant.model.event import Event
from assistant.model.report import Report
from assistant.session.apply import drifts, environment_of
from assistant.session.store import Store
from assistant.verify import verify


@click.command()
@click.argument("config")
@click.option(
    "--target", default="", metavar="PATH", help="The environment to compare; by default the one that was made for it."
)
@replay_option
@click.option("--no-verify", is_flag=True, help="Compare machine and packages only; compute nothing.")
@json_option
@click.pass_context
def check(
    context: click.Context, /, config: str, target: str, replay: str | None, *, no_verify: bool, as_json: bool
) -> None:
    """Compare this machine and an environment with an exported configuration; exit with 1 if they differ."""
    exported = read_config(read_text(config, CONFIG_LIMIT), config)
    host = host_of(replay)
    machine, last = detect(host).machine, Store().environment()
    folder = None if replay else environment_of(exported, target, last.path if last else "")
    report = None if no_verify or folder is None else _verified(exported, folder)
    found = drifts(exported, machine, folder, report, host)
    if as_json:
        rows = [{"kind": one.kind, "name": one.name, "was": one.was, "now": one.now, "text": one.text} for one in found]
        echo_json({"clean": not found, "drift": rows})
    elif found:
        echo(config)
        draw_drifts(found)
        echo(ngettext("{count} thing differs.", "{count} things differ.", len(found)))
    else:
        echo(say("Everything is as it was."))
    context.exit(1 if found else 0)


def _verified(exported: Config, folder: Path) -> Report:
    def unheard(_event: Event) -> None:
        """Draw nothing: the answer is the difference."""

    plan, device = exported.plan, exported.verification.device
    return verify(
        python_of(folder),
        device,
        unheard,
        CancelToken(),
        packages=plan.to_import(exported.environment.packages),
        recipe=plan.recipe,
        environment=plan.env,
    )
