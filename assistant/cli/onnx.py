"""`assistant onnx`: what of a model runs where, and what to do about the rest."""

from __future__ import annotations

from pathlib import Path

import click

from assistant.i18n import _
from assistant.model.errors import WorkFailed
from assistant.model.record import to_json

__all__ = ["onnx"]


@click.group()
def onnx() -> None:
    """Check ONNX models for DirectML, convert them to FP16, and try them."""


@onnx.command()
@click.argument("model")
@click.option(
    "--provider", type=click.Choice(["dml", "cpu"]), default="dml", help="Whose kernels to ask; DirectML's by default."
)
@click.option("--svg", metavar="FILE", help="Write a picture of what runs where.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
def check(model: str, provider: str, svg: str | None, *, as_json: bool) -> None:
    """Tell which nodes of a model run on the device, which on the CPU, and why."""
    from assistant.onnx.examine import checked, examine  # noqa: PLC0415 - draws in onnx and NumPy
    from assistant.onnx.picture import draw  # noqa: PLC0415 - likewise

    look = examine(model, provider)
    answer = checked(look)
    if svg:
        _write(svg, draw(look))
    if as_json:
        click.echo(to_json(answer, indent=2))
    else:
        from assistant.cli.draw_onnx import draw_check  # noqa: PLC0415 - --json needs no drawing

        draw_check(answer)


def _write(name: str, text: str) -> None:
    try:
        Path(name).write_text(text, encoding="utf-8")
    except OSError as error:
        message = _("{file} cannot be written: {reason}.").format(file=name, reason=error.strerror)
        raise WorkFailed(message, hint=_("Choose another place.")) from error
