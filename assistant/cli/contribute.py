"""`assistant contribute`: one file that tells the project that a build works on this machine."""

from __future__ import annotations

from pathlib import Path

import click

from assistant.cli.inputs import write_file
from assistant.cli.planning import plan_tools
from assistant.cli.terminal import ask, echo, echo_json, json_option, yes_option
from assistant.host.live import LiveHost
from assistant.i18n import _, say
from assistant.model.errors import BadInput, Cancelled
from assistant.model.record import to_plain
from assistant.session.store import Store


@click.command()
@click.option("--target", default="", metavar="PATH", help="The environment to verify; by default the last setup's.")
@click.option("--to", default="contribution.json", metavar="FILE", help="Write it there, if you agree.")
@click.option("--full", is_flag=True, help="Check every operation, small models and speed as well (about a minute).")
@yes_option(help="Write the file without asking; nothing is sent.")
@json_option
def contribute(target: str, to: str, *, full: bool, yes: bool, as_json: bool) -> None:
    """Tell others that PyTorch works on this machine: verify it, and write a file for an issue once you agree."""
    from assistant.session.contributing import contribution  # noqa: PLC0415 - --help need not load the planner
    from assistant.session.contribution import file_of  # noqa: PLC0415 - likewise

    last, file = Store().environment(), Path(to).expanduser()
    target = target or (last.path if last else "")
    if not target:
        hint = _("Name the one that you mean.", option="--target")
        raise BadInput(_("There is no environment to verify."), hint=hint)
    if file.is_file():
        raise BadInput(_("{file} is there already.", file=file), hint=_("Name another file.", option="--to"))
    told = contribution(target, LiveHost(), plan_tools({}), "full" if full else "quick")
    text = file_of(told)
    if as_json:
        if yes:
            write_file(str(file), text)
        echo_json({"file": str(file) if yes else None, "contribution": to_plain(told)})
        return
    echo(text.rstrip())
    if not (yes or ask(_("This is all of it. Write it to {file}? Nothing is sent.", file=file), default=False)):
        raise Cancelled(_("Nothing was written."), hint=_("Run the command again when you agree."))
    write_file(str(file), text)
    echo(say("Written: {file}", file=file))
    echo(say("To send it, open a new issue of the project with the form “It works here”, and add the file."))
