"""The one way to print and to ask: every text passes the filter for hidden characters here (see also `console`)."""

from __future__ import annotations

import click

from assistant.model.visible import visible

__all__ = ["ask", "echo"]


def echo(text: str = "", *, err: bool = False) -> None:
    """Print a line, to standard error with `err`."""
    click.echo(visible(text), err=err)


def ask(question: str, *, default: bool, err: bool = False) -> bool:
    """Put a question; tell whether the answer is yes."""
    return click.confirm(visible(question), default=default, err=err)
