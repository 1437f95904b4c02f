"""The commands that there are, and how one is run: every failure ends in one sentence, a next step and an exit code."""

from __future__ import annotations

import gc
import gettext
import importlib
import inspect
import os
import re
import signal
import sys

import click

from assistant import __version__, addons
from assistant.cli.terminal import choose, echo, unwritten_error
from assistant.host.files import configure_streams, copy_output_to_log, flush_output
from assistant.host.process import REQUESTS_TO_END, interrupt_on_signals, is_run_by_uvx
from assistant.i18n import (
    FOLDER,
    LANGUAGES,
    STARTED_AS,
    _,
    as_typed,
    render,
    say,
    sentences,
    show_options,
    use_language,
)
from assistant.model.errors import AssistantError, Cancelled, WorkFailed
from assistant.model.visible import visible

# Set by the script with which a shell completes our commands: https://click.palletsprojects.com/shell-completion/
COMPLETION = "_ASSISTANT_COMPLETE"
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
    "guard": "envs",
    "recover": "envs",
    "catalog": "plan",
}
COMMANDS = {**FIRST_HAND, **FOR_SCRIPTS}
# What people come for, and the words of the command that does it.
BEGINNINGS = (
    (_("Set up PyTorch for this machine"), ("setup",)),
    (_("Run something: applications, libraries, courses"), ("recipes", "list")),
    (_("Find out what is wrong"), ("doctor",)),
    (_("Look after my environments"), ("envs", "--all")),
    (_("Learn: find and mend faults in the labs"), ("labs", "list")),
)


class Commands(click.Group):
    """Lists the commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names in the order of a setup, then those of add-ons."""
        return [*COMMANDS, *(name for name in addons.names(addons.COMMANDS) if name not in COMMANDS)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a line for each command that people begin with, and only the names of all others, to fit a screen."""
        sections = {say("For scripts"): FOR_SCRIPTS, say("Add-ons"): self.list_commands(ctx)[len(COMMANDS) :]}
        first = ((name, self.get_command(ctx, name)) for name in FIRST_HAND)
        with formatter.section(say("Commands")):
            formatter.write_dl([(name, command.short_help or "") for name, command in first if command])
        for title, names in sections.items():
            if names:
                with formatter.section(title):
                    formatter.write(click.wrap_text(", ".join(names), formatter.width, "  ", "  ") + "\n")

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return a command, imported and translated; None if there is none.

        The command of an add-on that cannot be loaded raises why when it is run.
        """
        if cmd_name in COMMANDS:
            module = importlib.import_module(f"assistant.cli.{COMMANDS[cmd_name]}")
            return translate(getattr(module, cmd_name))
        if cmd_name not in addons.names(addons.COMMANDS):
            return None
        try:
            return translate(addons.load(addons.COMMANDS, cmd_name, click.Command))
        except WorkFailed as error:
            failure = error

        def fail() -> None:
            """Say what the add-on lacks."""
            raise failure

        text, anything = render(failure.message), {"ignore_unknown_options": True, "allow_extra_args": True}
        return click.Command(cmd_name, callback=fail, help=text, short_help=text, context_settings=anything)


def translate(command: click.Command) -> click.Command:
    """Translate the help of a command, of its options and of its subcommands, in place, and return the command.

    The first sentence becomes the short help: click would cut it at 45 characters (`get_short_help_str`).
    """
    if command.help:
        command.help = say(inspect.cleandoc(command.help))
        command.short_help = re.split(r"(?<=[.。])(?:\s|(?<=。))", command.help, maxsplit=1)[0]
    for option in command.params:
        if isinstance(option, click.Option) and option.help:
            option.help = say(option.help)
    for below in getattr(command, "commands", {}).values():
        translate(below)
    return command


def _use_language(context: click.Context, _option: click.Parameter, code: str | None) -> None:
    """Use the language that is asked for, here and in the programs that are started (JupyterLab)."""
    if code:
        os.environ["LANGUAGE"] = use_language(code)
        translate(context.command)


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


def main() -> None:
    """Run the command on the command line and exit with its code, or with 1 if its output cannot be written."""
    configure_streams()
    copy_output_to_log()
    interrupt_on_signals()
    show_options()
    gettext.bindtextdomain("assistant", FOLDER)  # click's own sentences are in our catalogue
    gettext.textdomain("assistant")
    code = run(sys.argv[1:])
    if (reason := flush_output()) and not code:
        code = _print_failure(unwritten_error(reason))
    for number in REQUESTS_TO_END:  # while Python tidies up they would change the exit code
        signal.signal(number, signal.SIG_IGN)
    gc.freeze()  # or Python would search all that was loaded for garbage before it ends, for 10 ms
    sys.exit(code)


def run(words: list[str]) -> int:
    """Run the command that `words` begin with, print the error of one that fails, and return the exit code.

    Without words the user is offered what to begin with. For a shell's completion the possible words are printed. An
    interruption ends the process, and this does not return.
    """
    translate(cli)
    if asked := os.environ.get(COMPLETION):
        from click.shell_completion import shell_complete  # noqa: PLC0415 - only a shell asks for it

        return shell_complete(cli, {}, "assistant", COMPLETION, asked)
    if is_run_by_uvx():
        from assistant.host.extras import uvx_command  # noqa: PLC0415 - reads what is installed

        os.environ.setdefault(STARTED_AS, uvx_command())
    try:
        with cli.make_context(visible(os.environ.get(STARTED_AS) or "assistant"), words) as context:
            cli.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        if error.ctx.command is cli:
            return _offer_beginnings(error.ctx)
        echo(error.format_message())
    except BrokenPipeError:
        pass  # whoever read our output has gone
    except click.ClickException as error:
        at = getattr(error, "ctx", None)
        hint = _("`{command} --help` lists what is possible.", command=at.command_path if at else "assistant")
        echo(sentences((error.format_message(), hint)), err=True)
        return 2
    except KeyboardInterrupt as error:
        code = _print_failure(_error_for(error))
        sys.stdout.flush()
        os._exit(code)  # Python would take half a second to tidy up, and somebody waits for the prompt
    except Exception as error:  # noqa: BLE001 - even a fault of ours ends in one sentence
        return _print_failure(_error_for(error))
    return 0


def _offer_beginnings(context: click.Context) -> int:
    """Print the commands that people begin with, and run the one whose number the user types; return the exit code.

    No number is asked for unless input and output are a terminal; the code is 0 if none is given.
    """
    shown = context.make_formatter()
    shown.write(f"{say('What would you like to do?')}\n")
    with shown.indentation():
        shown.write_dl(
            [
                (f"{number}  {context.command_path} {' '.join(words)}", render(title))
                for number, (title, words) in enumerate(BEGINNINGS, 1)
            ]
        )
    echo(shown.getvalue())
    echo(_("`{command} --help` lists what is possible.", command=context.command_path))
    if not (sys.stdin and sys.stdin.isatty() and sys.stdout.isatty()):
        return 0
    try:
        number = choose(_("Number"), len(BEGINNINGS))
    except click.Abort:
        return 0
    return run(list(BEGINNINGS[number - 1][1])) if number else 0


def _error_for(error: BaseException) -> AssistantError:
    """Return the error to print for any exception that ended a command.

    It is `Cancelled` for an interruption, and names the extra that would bring a missing module. The details of an
    unexpected exception go to a file, which the error names.
    """
    if isinstance(error, AssistantError):
        return error
    if isinstance(error, click.Abort) and isinstance(error.__context__, EOFError):
        echo()  # ends the line of the question
        return Cancelled(_("There was no answer, so nothing was done."), hint=_("Use --yes to answer in advance."))
    if isinstance(error, KeyboardInterrupt) and error.args and isinstance(error.args[0], AssistantError):
        return error.args[0]  # what had been begun is known there
    if isinstance(error, click.Abort | KeyboardInterrupt):
        return Cancelled(_("You stopped the command."))
    if isinstance(error, ModuleNotFoundError) and error.name:
        from assistant.host.extras import (  # noqa: PLC0415 - not needed while all goes well
            find_extra,
            missing_extra_error,
        )

        if belongs := find_extra(error.name):
            return missing_extra_error(*belongs)
    from assistant.session.store import record_fault  # noqa: PLC0415 - likewise

    return record_fault(error)


def _print_failure(error: AssistantError) -> int:
    echo(sentences((as_typed(error.message), as_typed(error.hint))), err=True)
    return error.exit_code
