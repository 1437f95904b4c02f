"""The commands that there are: those of the core, and those that add-ons bring."""

from __future__ import annotations

import importlib
import os

import click

from assistant import __version__, addons
from assistant.i18n import LANGUAGES, render, say, use_language
from assistant.model.errors import WorkFailed

# Each command lives in a module that is imported only when the command is used: `assistant detect` needs no installer.
COMMANDS = {
    "setup": "setup",
    "lab": "lab",
    "detect": "detect",
    "plan": "plan",
    "install": "setup",
    "verify": "setup",
    "export": "apply",
    "envs": "envs",
    "recover": "envs",
    "diagnose": "diagnose",
    "doctor": "diagnose",
    "apply": "apply",
    "check": "apply",
    "catalog": "catalog",
}


class Commands(click.Group):
    """Lists the commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names in the order of a setup, then those of add-ons."""
        return [*COMMANDS, *(name for name in addons.names(addons.COMMANDS) if name not in COMMANDS)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import one command's module and take the command from it; that of an add-on may say what it lacks."""
        if cmd_name in COMMANDS:
            module = importlib.import_module(f"assistant.cli.{COMMANDS[cmd_name]}")
            return translated(getattr(module, cmd_name))
        if cmd_name not in addons.names(addons.COMMANDS):
            return None
        try:
            return translated(addons.load(addons.COMMANDS, cmd_name, click.Command))
        except WorkFailed as error:
            return _lacking(cmd_name, error)


def _lacking(name: str, error: WorkFailed) -> click.Command:
    """Return a command that only fails, for an add-on that cannot be loaded: whatever its arguments are."""

    def fail() -> None:
        raise error

    anything = {"ignore_unknown_options": True, "allow_extra_args": True}
    said = render(error.message)
    return click.Command(name, callback=fail, help=said, short_help=said, context_settings=anything)


def translated(command: click.Command) -> click.Command:
    """Put the help of a command, of its options and of its subcommands into the language in force.

    It is the short help, too: else click cuts it at 45 characters in lists (`get_short_help_str` in click/core.py).
    """
    command.help = command.short_help = say(command.help) if command.help else None
    for option in command.params:
        if isinstance(option, click.Option) and option.help:
            option.help = say(option.help)
    for below in getattr(command, "commands", {}).values():
        translated(below)
    return command


def _use_language(context: click.Context, _option: click.Parameter, code: str | None) -> None:
    """Use the language that is asked for, here and in the programs that are started (JupyterLab)."""
    if code:
        os.environ["LANGUAGE"] = use_language(code)
        translated(context.command)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="assistant", help="Show the version and exit.")
@click.option(
    "--lang",
    type=click.Choice(list(LANGUAGES)),
    is_eager=True,
    expose_value=False,
    callback=_use_language,
    help="Language of all messages.",
)
def cli() -> None:
    """Set up PyTorch for the GPU that you have: detect, plan, install, verify, diagnose, export."""
