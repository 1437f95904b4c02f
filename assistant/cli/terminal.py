"""The one way to print and to ask: every text passes the filter for hidden characters here (see also `console`)."""

from __future__ import annotations

import click

from assistant.i18n import Text, render
from assistant.model.record import to_json, with_words
from assistant.model.visible import visible


def echo(text: Text = "", *, err: bool = False) -> None:
    """Print a line, to standard error with `err`."""
    click.echo(visible(render(text)), err=err)


def echo_json(value: object, *, indent: int = 2) -> None:
    """Print a command's answer as JSON: sentences in the language in force, and beside them their keys and values."""
    echo(to_json(with_words(value), indent=indent))


def ask(question: Text, *, default: bool, err: bool = False) -> bool:
    """Put a question; tell whether the answer is yes."""
    return click.confirm(visible(render(question)), default=default, err=err)
