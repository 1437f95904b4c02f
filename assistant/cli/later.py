"""Commands whose room is not furnished yet: they say so and fail, instead of claiming a success."""

from __future__ import annotations

import click

from assistant.cli.inputs import read_file
from assistant.i18n import _
from assistant.model.errors import BadInput, WorkFailed

__all__ = ["apply", "check", "diagnose", "onnx"]


@click.command()
@click.argument("log", required=False)
@click.option("--batch", metavar="FILE.jsonl", help="Many logs, one JSON object a line.")
@click.option("--machine", metavar="FILE", help="The machine that the log comes from.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
def diagnose(log: str | None, batch: str | None, machine: str | None, *, as_json: bool) -> None:  # noqa: ARG001
    """Find the cause of a failure in a log (not available yet)."""
    name = batch or log
    if name is None:
        raise BadInput(
            _("Name a log file, or '-' for standard input."), hint=_("Example: assistant diagnose error.log")
        )
    read_file(name)
    raise _not_yet(_("Logs cannot be diagnosed yet: there are no rules."))


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
