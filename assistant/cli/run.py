"""Runs a command: every failure ends in one sentence, a next step and an exit code."""

from __future__ import annotations

import gettext
import os
import signal
import sys

import click

from assistant.cli.commands import BEGINNINGS, cli, translated
from assistant.cli.terminal import choose, echo, unwritten
from assistant.host.process import REQUESTS_TO_END, by_uvx, heed_requests_to_end
from assistant.host.streams import flush_output, keep_log, settle_streams
from assistant.i18n import (
    FOLDER,
    STARTED_AS,
    _,
    as_typed,
    render,
    say,
    sentences,
    show_options,
)
from assistant.model.errors import AssistantError, Cancelled
from assistant.model.visible import visible

# Set by the script with which a shell completes our commands: https://click.palletsprojects.com/shell-completion/
COMPLETION = "_ASSISTANT_COMPLETE"


def main() -> None:
    """Run the command that the command line names, and exit with its code."""
    settle_streams()
    keep_log()
    heed_requests_to_end()
    code = _run(sys.argv[1:])
    if (reason := flush_output()) and not code:
        code = _print_failure(unwritten(reason))
    for number in REQUESTS_TO_END:  # while Python tidies up they would change the exit code
        signal.signal(number, signal.SIG_IGN)
    sys.exit(code)


def _run(words: list[str]) -> int:
    show_options()
    gettext.bindtextdomain("assistant", FOLDER)  # click's own sentences are in our catalogue
    gettext.textdomain("assistant")
    translated(cli)
    if asked := os.environ.get(COMPLETION):
        from click.shell_completion import shell_complete  # noqa: PLC0415 - only a shell asks for it

        return shell_complete(cli, {}, "assistant", COMPLETION, asked)
    if by_uvx():
        from assistant.host.extras import started_by  # noqa: PLC0415 - reads what is installed

        os.environ.setdefault(STARTED_AS, started_by())
    try:
        with cli.make_context(visible(os.environ.get(STARTED_AS) or "assistant"), words) as context:
            cli.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        if error.ctx.command is cli:
            return _begin(error.ctx)
        echo(error.format_message())
    except BrokenPipeError:
        pass  # whoever read our output has gone
    except click.ClickException as error:
        at = getattr(error, "ctx", None)
        hint = _("`{command} --help` lists what is possible.", command=at.command_path if at else "assistant")
        echo(sentences((error.format_message(), hint)), err=True)
        return 2
    except KeyboardInterrupt as error:
        code = _print_failure(_failure(error))
        sys.stdout.flush()
        os._exit(code)  # Python would take half a second to tidy up, and somebody waits for the prompt
    except Exception as error:  # noqa: BLE001 - even a fault of ours ends in one sentence
        return _print_failure(_failure(error))
    return 0


def _begin(context: click.Context) -> int:
    """Offer what people come for, and run what is chosen; where nobody can choose, only list it."""
    shown = context.make_formatter()
    shown.write(f"{say('What would you like to do?')}\n")
    with shown.indentation():
        shown.write_dl(
            [
                (f"{number}  {context.command_path} {' '.join(beginning.words)}", render(beginning.title))
                for number, beginning in enumerate(BEGINNINGS, 1)
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
    return _run(list(BEGINNINGS[number - 1].words)) if number else 0


def _failure(error: BaseException) -> AssistantError:
    """Return the sentence for whatever ended a command."""
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
            extra_of,
            missing_extra_error,
        )

        if belongs := extra_of(error.name):
            return missing_extra_error(*belongs)
    from assistant.session.store import fault  # noqa: PLC0415 - likewise

    return fault(error)


def _print_failure(error: AssistantError) -> int:
    echo(sentences((as_typed(error.message), as_typed(error.hint))), err=True)
    return error.exit_code
