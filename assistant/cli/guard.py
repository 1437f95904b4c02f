"""`assistant guard`: a build of torch that pip and uv keep, in anybody's environment."""

from __future__ import annotations

import click

from assistant.cli.draw import draw_findings, draw_line
from assistant.cli.terminal import ask, echo, echo_json, json_option, yes_option
from assistant.host.live import LiveHost
from assistant.i18n import _
from assistant.install import EnvironmentFolder, Site
from assistant.model.errors import Cancelled


@click.command()
@click.argument("path")
@click.option("--off", is_flag=True, help="Take back all that guard or an installation wrote to this end.")
@yes_option(help="Write it without a question.")
@json_option
def guard(path: str, *, off: bool, yes: bool, as_json: bool) -> None:
    """Keep the torch of an environment: a later `pip install` or `uv pip install` is refused if it would replace it.

    PATH is the environment's folder, or that of its project. A project of uv then says so in its pyproject.toml.
    """
    environment = EnvironmentFolder.at(path)
    if off:
        environment.unguard()
        _report(environment, as_json=as_json)
        return
    site = Site.ask(environment.path, LiveHost())
    if not yes:
        text = _(
            "This writes constraints and pip's configuration to {path}, and adds two lines to each script that "
            "activates it. Nothing is installed."
        )
        draw_line(text.format(path=environment.path))
        for file, lines in environment.lines_outside(site).items():
            draw_line(_("It also adds these lines to {file}:", file=file))
            echo(lines)
        if not ask(_("Write them?"), default=True, err=True):
            raise Cancelled(_("Nothing was changed."), hint=_("Run the command again when you are ready."))
    found = environment.guard(site)
    _report(environment, as_json=as_json)
    if not as_json:
        draw_findings(found)


def _report(environment: EnvironmentFolder, *, as_json: bool) -> None:
    """Print what an environment keeps now."""
    path, pins = environment.path, environment.guards
    if as_json:
        echo_json({"path": str(path), "pins": pins})
    elif pins:
        draw_line(_("✓ pip and uv keep {pins} in {path}.", pins=", ".join(pins), path=path))
        draw_line(_("In a terminal, activate it anew: uv heeds what its script sets."), "dim")
    else:
        draw_line(_("Nothing holds torch in {path} any more.", path=path))
