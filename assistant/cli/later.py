"""Commands whose room is not furnished yet: they say so and fail, instead of claiming a success."""

from __future__ import annotations

import click

from assistant.cli.inputs import read_file
from assistant.i18n import _
from assistant.model.errors import WorkFailed

__all__ = ["apply", "check", "onnx"]


@click.command()
@click.argument("config")
def apply(config: str) -> None:
    """Rebuild an environment from an exported configuration (not available yet)."""
    read_file(config)
    raise _not_yet(_("Rebuilding from a configuration is not possible yet."))


@click.command()
@click.argument("config")
def check(config: str) -> None:
    """Compare what is with what was exported (not available yet)."""
    read_file(config)
    raise _not_yet(_("Comparing with a configuration is not possible yet."))


@click.command()
@click.argument("verb", type=click.Choice(["check", "convert", "try"]))
@click.argument("model")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
def onnx(verb: str, model: str, *, as_json: bool) -> None:  # noqa: ARG001
    """Check, convert or try an ONNX model (not available yet)."""
    read_file(model)
    raise _not_yet(_("ONNX models cannot be examined yet."))


def _not_yet(message: str) -> WorkFailed:
    return WorkFailed(message, hint=_("A later version brings it; `assistant setup` works today."))
