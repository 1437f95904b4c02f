"""Commands whose room is not furnished yet: they say so and fail, instead of claiming a success."""

from __future__ import annotations

import click

from assistant.cli.inputs import read_file
from assistant.i18n import _
from assistant.model.errors import WorkFailed

__all__ = ["onnx"]


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
