"""`assistant mcp`: the server through which AI agents use the assistant, and the skill that tells them how."""

from __future__ import annotations

import sys
from typing import Any

import click

from assistant.api import say
from assistant.api.journey import source_options
from assistant.api.system import require_extra
from assistant.api.terminal import echo


@click.command()
@click.option("--skill", "shows_skill", is_flag=True, help="Print how an agent should work with the tools, and end.")
@source_options
@click.pass_context
def mcp(context: click.Context, /, *, shows_skill: bool, **options: Any) -> None:  # noqa: ANN401 - `source_options`
    """Serve AI agents on standard input and output (Model Context Protocol); their program starts this command."""
    require_extra("agents")
    from assistant_addons.agents.server import serve, skill  # noqa: PLC0415 - needs the extra

    if shows_skill:
        echo(skill().rstrip("\n"))
        return
    if sys.stdin.isatty():
        echo(say("An AI agent's program starts this command and speaks to it here. Press Ctrl-C to end."), err=True)
    serve(context.find_root(), options)
