"""`assistant onnx`: what of a model runs where, and what to do about the rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from assistant.cli.inputs import write_file
from assistant.cli.terminal import echo_json, json_option
from assistant.i18n import _, language
from assistant.model.errors import WorkFailed
from assistant.onnx.answers import CHECK_SECONDS, CONVERT_SECONDS, TRY_SECONDS


def _limit(seconds: float) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    kind = click.FloatRange(min=0, min_open=True)
    return click.option("--limit", type=kind, default=seconds, metavar="SECONDS", help="How long one run may take.")


@click.group()
def onnx() -> None:
    """Check ONNX models for DirectML, convert them to FP16, and try them."""


@onnx.command()
@click.argument("model")
@click.option(
    "--provider",
    type=click.Choice(["dml", "cpu"]),
    default="dml",
    help="Whose kernels to check for; DirectML's by default.",
)
@click.option("--svg", metavar="FILE", help="Save a picture of what runs where.")
@_limit(CHECK_SECONDS)
@json_option
def check(model: str, provider: str, svg: str | None, limit: float, *, as_json: bool) -> None:
    """Show which nodes of a model run on the device, which on the CPU, and why."""
    from assistant.onnx import apart  # noqa: PLC0415 - `--help` needs no child
    from assistant.onnx.worker import Request  # noqa: PLC0415 - likewise

    wanted = Request(
        work="check", model=model, here=str(Path.cwd()), provider=provider, picture=bool(svg), language=language()
    )
    answer, picture = apart.check(wanted, apart.limits(limit))
    if svg:
        write_file(svg, picture)
    if as_json:
        echo_json(answer)
    else:
        from assistant.cli.draw import draw_check  # noqa: PLC0415 - --json needs no drawing

        draw_check(answer)


@onnx.command()
@click.argument("model")
@click.option("--to", "output", metavar="FILE", help="Where to write the result; by default beside the model.")
@click.option("--fp16/--no-fp16", default=True, help="Convert to FP16 (the default) or leave the types alone.")
@click.option(
    "--opset",
    type=click.IntRange(7, 21),
    default=None,
    help="Lower the opset to this one, not to the one that suits best.",
)
@click.option(
    "--npu", is_flag=True, help="Also turn 1-D convolutions and pools into 2-D ones, for NPUs that know no other."
)
@click.option(
    "--keep", multiple=True, metavar="NODE|OPERATOR", help="Keep a node, or every node of an operator, in FP32."
)
@click.option("--fp16-io", is_flag=True, help="Convert the model's inputs and outputs to FP16, too.")
@click.option("--inputs", metavar="FILE.npz", help="Real inputs: an array for each input, by its name.")
@_limit(CONVERT_SECONDS)
@click.option("--force", is_flag=True, help="Overwrite an earlier result.")
@json_option
def convert(  # noqa: PLR0913 - each is an option
    model: str,
    output: str | None,
    opset: int | None,
    keep: tuple[str, ...],
    inputs: str | None,
    limit: float,
    *,
    fp16: bool,
    npu: bool,
    fp16_io: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Convert a model to what DirectML runs well; writes the result and a log of every change beside it."""
    from assistant.onnx import apart  # noqa: PLC0415 - `--help` needs no child
    from assistant.onnx.worker import Request  # noqa: PLC0415 - likewise

    wanted = Request(
        work="convert",
        model=model,
        here=str(Path.cwd()),
        output=output or "",
        force=force,
        fp16=fp16,
        opset=opset or 0,
        npu=npu,
        keep=keep,
        keep_io_types=not fp16_io,
        inputs=inputs or "",
    )
    done = apart.convert(wanted, apart.limits(limit))
    if as_json:
        echo_json(done)
    else:
        from assistant.cli.draw import draw_conversion  # noqa: PLC0415 - --json needs no drawing

        draw_conversion(done)


@onnx.command(name="try")
@click.argument("model")
@click.option("--against", metavar="FILE", help="The model to compare with; by default the one it was converted from.")
@click.option("--provider", type=click.Choice(["dml", "cpu"]), default="dml", help="Where to run it.")
@click.option("--inputs", metavar="FILE.npz", help="Real inputs: an array for each input, by its name.")
@click.option("--python", "interpreter", metavar="PATH", help="The Python whose ONNX Runtime is used.")
@_limit(TRY_SECONDS)
@json_option
def try_(
    model: str,
    against: str | None,
    provider: str,
    inputs: str | None,
    interpreter: str | None,
    limit: float,
    *,
    as_json: bool,
) -> None:
    """Run a model and compare its results with FP32 on the CPU."""
    from assistant.onnx import apart  # noqa: PLC0415 - `--help` needs no child
    from assistant.onnx.worker import Request  # noqa: PLC0415 - likewise
    from assistant.session.interpreters import onnx_python  # noqa: PLC0415 - likewise

    wanted = Request(
        work="try",
        model=model,
        here=str(Path.cwd()),
        reference=against or "",
        provider=provider,
        inputs=inputs or "",
        python=interpreter or onnx_python(),
    )
    answer = apart.try_model(wanted, apart.limits(limit))
    if as_json:
        echo_json(answer)
    else:
        from assistant.cli.draw import draw_attempt  # noqa: PLC0415 - --json needs no drawing

        draw_attempt(answer)
    if not answer.passed:
        raise WorkFailed(answer.verdict, hint=_("`assistant onnx check` says what stands in the way."))
