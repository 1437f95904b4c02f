"""The one way to print and to ask: every text passes the filter for hidden characters here (see also `console`)."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from assistant.cli.fold import folded
from assistant.host.streams import forget_typed
from assistant.i18n import Text, _, render
from assistant.model.errors import WorkFailed
from assistant.model.record import to_json, with_words
from assistant.model.visible import visible

Option = Callable[[Callable[..., Any]], Callable[..., Any]]
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
json_option = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")


def yes_option(*, help: str) -> Option:  # noqa: A002 - as `click.option` has it
    """Make the option that agrees beforehand; `help` says to what."""
    return click.option("--yes", is_flag=True, help=help)


def echo(text: Text = "", *, err: bool = False) -> None:
    """Print a line, to standard error with `err`; on a terminal, what is too long goes on below, lined up."""
    shown = visible(render(text))
    stream = sys.stderr if err else sys.stdout
    if stream and stream.isatty():
        shown = "\n".join(folded(shown, shutil.get_terminal_size().columns))
    with printing():
        click.echo(shown, err=err)


def unwritten(reason: str) -> WorkFailed:
    """Return the failure of an answer that could not be printed whole."""
    return WorkFailed(
        _("The answer could not be written: {reason}.", reason=reason),
        hint=_("Make room where it goes, or send it elsewhere."),
    )


@contextmanager
def printing() -> Iterator[None]:
    """Turn the failure of what prints, such as a full disk, into its sentence."""
    try:
        yield
    except BrokenPipeError:
        raise  # nobody reads any more
    except OSError as error:
        raise unwritten(error.strerror or str(error)) from error


def echo_json(value: object, *, indent: int = 2) -> None:
    """Print a command's answer as JSON: sentences in the language in force, and beside them their keys and values.

    It is ASCII: whatever code page the pipe has, the reader gets the same values.
    """
    text = to_json(with_words(value), indent=indent)
    with printing():
        click.echo(_BEYOND_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text))


ANSWERS = {"y": True, "yes": True, "是": True, "n": False, "no": False, "否": False}


def ask(question: Text, *, default: bool, err: bool = False) -> bool:
    """Ask a question and return whether the answer is yes; what was typed before it was asked does not count."""
    forget_typed()
    asked = f"{visible(render(question))} [{'Y/n' if default else 'y/N'}]"
    while True:
        answer = click.prompt(asked, default="", show_default=False, err=err).strip().lower()
        if not answer or answer in ANSWERS:
            return ANSWERS.get(answer, default)
        yes = _("Answer y for yes or n for no; Enter alone means yes.")
        no = _("Answer y for yes or n for no; Enter alone means no.")
        echo(yes if default else no, err=err)
