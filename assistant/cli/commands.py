"""The commands that there are: those of the core, those that add-ons bring, and what a newcomer begins with."""

from __future__ import annotations

import importlib
import inspect
import os
import re
from typing import NamedTuple

import click

from assistant import __version__, addons
from assistant.i18n import LANGUAGES, Message, _, render, say, use_language
from assistant.model.errors import WorkFailed

# Each command lives in a module that is imported only when the command is used: `assistant detect` needs no installer.
FIRST_HAND = {
    "setup": "setup",
    "lab": "lab",
    "doctor": "diagnose",
    "plan": "plan",
    "envs": "envs",
    "export": "apply",
    "apply": "apply",
}
FOR_SCRIPTS = {
    "detect": "detect",
    "install": "setup",
    "verify": "setup",
    "diagnose": "diagnose",
    "check": "apply",
    "recover": "envs",
    "catalog": "catalog",
}
COMMANDS = {**FIRST_HAND, **FOR_SCRIPTS}


class Beginning(NamedTuple):
    """Something that people come for, and the words of the command that does it."""

    title: Message
    words: tuple[str, ...]


BEGINNINGS = (
    Beginning(_("Set up PyTorch for this machine"), ("setup",)),
    Beginning(_("Run something: applications, libraries, courses"), ("recipes", "list")),
    Beginning(_("Find out what is wrong"), ("doctor",)),
    Beginning(_("Look after my environments"), ("envs", "--all")),
    Beginning(_("Learn: find and mend faults in the labs"), ("labs", "list")),
)


class Commands(click.Group):
    """Lists the commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names in the order of a setup, then those of add-ons."""
        return [*COMMANDS, *(name for name in addons.names(addons.COMMANDS) if name not in COMMANDS)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what people begin with, a line each, and the names of all else, so that the help fits a screen."""
        sections = {say("For scripts"): FOR_SCRIPTS, say("Add-ons"): self.list_commands(ctx)[len(COMMANDS) :]}
        first = ((name, self.get_command(ctx, name)) for name in FIRST_HAND)
        with formatter.section(say("Commands")):
            formatter.write_dl([(name, command.short_help or "") for name, command in first if command])
        for title, names in sections.items():
            if names:
                with formatter.section(title):
                    formatter.write(click.wrap_text(", ".join(names), formatter.width, "  ", "  ") + "\n")

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

    Its first sentence is the short help: click cuts one of its own at 45 characters (`get_short_help_str`).
    """
    if command.help:
        command.help = say(inspect.cleandoc(command.help))
        command.short_help = re.split(r"(?<=[.。])(?:\s|(?<=。))", command.help, maxsplit=1)[0]
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
