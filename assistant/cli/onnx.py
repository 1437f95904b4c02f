"""`assistant onnx`: what of a model runs where, and what to do about the rest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from assistant.cli.inputs import write_file
from assistant.cli.terminal import Option, echo_json, json_option
from assistant.i18n import _, language
from assistant.model.errors import BadInput, WorkFailed
from assistant.onnx.answers import CHECK_SECONDS, CONVERT_SECONDS, TRY_SECONDS

if TYPE_CHECKING:
    from assistant.onnx.worker import Request


def _limit_option(seconds: float) -> Option:
    kind = click.FloatRange(min=0, min_open=True)
    return click.option("--limit", type=kind, default=seconds, metavar="SECONDS", help="How long one run may take.")


inputs_option = click.option("--inputs", metavar="FILE.npz", help="Real inputs: an array for each input, by its name.")
PROVIDERS = click.Choice(["dml", "cpu"])


def _request(work: Literal["check", "convert", "try", "fix-shapes"], model: str, **options: Any) -> Request:  # noqa: ANN401 - its fields
    """Make the request that the options ask for; one that was not given keeps its default."""
    from assistant.onnx.worker import Request  # noqa: PLC0415 - `--help` needs no child

    given = {name: value for name, value in options.items() if value is not None}
    return Request(work=work, model=model, here=str(Path.cwd()), **given)


@click.group()
def onnx() -> None:
    """Check ONNX models for DirectML, convert them to FP16, fix their open sizes, and try them."""


@onnx.command()
@click.argument("model")
@click.option("--provider", type=PROVIDERS, default="dml", help="Whose kernels to check for; DirectML's by default.")
@click.option("--svg", metavar="FILE", help="Save a picture of what runs where.")
@_limit_option(CHECK_SECONDS)
@json_option
def check(model: str, svg: str | None, limit: float, *, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - as above
    """Show which nodes of a model run on the device, which on the CPU, and why."""
    from assistant.onnx import isolated  # noqa: PLC0415 - `--help` needs no child

    request = _request("check", model, picture=bool(svg), language=language(), **options)
    answer, picture = isolated.check(request, isolated.limits(limit))
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
    "--opset", type=click.IntRange(7, 21), help="Lower the opset to this one, not to the one that suits best."
)
@click.option(
    "--npu", is_flag=True, help="Also turn 1-D convolutions and pools into 2-D ones, for NPUs that know no other."
)
@click.option(
    "--keep", multiple=True, metavar="NODE|OPERATOR", help="Keep a node, or every node of an operator, in FP32."
)
@click.option("--fp16-io", is_flag=True, help="Convert the model's inputs and outputs to FP16, too.")
@inputs_option
@_limit_option(CONVERT_SECONDS)
@click.option("--strict", is_flag=True, help="Write nothing that no run has proved.")
@click.option("--force", is_flag=True, help="Overwrite an earlier result.")
@json_option
def convert(model: str, limit: float, *, fp16_io: bool, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - as above
    """Convert a model to what DirectML runs well; writes the result and a log of every change beside it."""
    from assistant.onnx import isolated  # noqa: PLC0415 - `--help` needs no child

    done = isolated.convert(_request("convert", model, keep_io_types=not fp16_io, **options), isolated.limits(limit))
    if as_json:
        echo_json(done)
    else:
        from assistant.cli.draw import draw_conversion  # noqa: PLC0415 - --json needs no drawing

        draw_conversion(done)


@onnx.command(name="fix-shapes")
@click.argument("model")
@click.option("--to", "output", metavar="FILE", help="Where to write the result; by default beside the model.")
@click.option("--dim", "dims", multiple=True, metavar="NAME=SIZE", help="What an open size becomes, by its name.")
@click.option("--input", "shaped", multiple=True, metavar="NAME=2x3x224x224", help="The whole shape of an input.")
@inputs_option
@_limit_option(CONVERT_SECONDS)
@click.option("--force", is_flag=True, help="Overwrite an earlier result.")
@json_option
def fix_shapes(
    model: str,
    limit: float,
    *,
    dims: tuple[str, ...],
    shaped: tuple[str, ...],
    as_json: bool,
    **options: Any,  # noqa: ANN401 - as above
) -> None:
    """Write a model with its open sizes fixed: your own, those that its weights ask for, and likely ones."""
    from assistant.onnx import isolated  # noqa: PLC0415 - `--help` needs no child

    sizes = {name: shape[0] for name, shape in map(_named_shape, dims) if len(shape) == 1}
    if len(sizes) < len(dims):
        raise BadInput(
            _("Each size is named once, as one number."), hint=_("Write it so: {example}", example="batch=1")
        )
    shapes = dict(map(_named_shape, shaped))
    request = _request("fix-shapes", model, sizes=sizes, shapes=shapes, **options)
    done = isolated.fix_shapes(request, isolated.limits(limit))
    if as_json:
        echo_json(done)
    else:
        from assistant.cli.draw import draw_fixed_shapes  # noqa: PLC0415 - --json needs no drawing

        draw_fixed_shapes(done)


def _named_shape(text: str) -> tuple[str, tuple[int, ...]]:
    """Read "NAME=2x3", in which no size is below 1."""
    name, _equals, shape = text.rpartition("=")
    sizes = shape.split("x")
    if not name or not all(size.isascii() and size.isdecimal() and 0 < int(size) < 2**31 for size in sizes):
        message = _("{text} names no sizes.", text=repr(text))
        raise BadInput(message, hint=_("Write it so: {example}", example="batch=1, x=1x3x224x224"))
    return name, tuple(map(int, sizes))


@onnx.command(name="try")
@click.argument("model")
@click.option(
    "--against",
    "reference",
    metavar="FILE",
    help="The model to compare with; by default the one it was converted from.",
)
@click.option("--provider", type=PROVIDERS, default="dml", help="Where to run it.")
@inputs_option
@click.option("--python", metavar="PATH", help="The Python whose ONNX Runtime is used.")
@_limit_option(TRY_SECONDS)
@json_option
def try_(model: str, limit: float, *, python: str | None, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - as above
    """Run a model and compare its results with FP32 on the CPU."""
    from assistant.onnx import isolated  # noqa: PLC0415 - `--help` needs no child
    from assistant.session.interpreters import onnx_python  # noqa: PLC0415 - likewise

    request = _request("try", model, python=python or onnx_python(), **options)
    answer = isolated.try_model(request, isolated.limits(limit))
    if as_json:
        echo_json(answer)
    else:
        from assistant.cli.draw import draw_attempt  # noqa: PLC0415 - --json needs no drawing

        draw_attempt(answer)
    if not answer.passed:
        raise WorkFailed(answer.verdict, hint=_("`assistant onnx check` says what stands in the way."))
