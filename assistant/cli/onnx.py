"""`assistant onnx`: what of a model runs where, and what to do about the rest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from assistant.cli.inputs import host_of, write_file
from assistant.cli.terminal import Option, echo_json, json_option
from assistant.i18n import _, language, say
from assistant.model.errors import AssistantError, BadInput, WorkFailed
from assistant.model.record import replace
from assistant.onnx.answers import CHECK_SECONDS, CONVERT_SECONDS, TRY_SECONDS
from assistant.onnx.targets import chosen, ordered, target

if TYPE_CHECKING:
    from assistant.model.machine import Machine
    from assistant.onnx.worker import Request


def _limit_option(seconds: float) -> Option:
    kind = click.FloatRange(min=0, min_open=True)
    return click.option("--limit", type=kind, default=seconds, metavar="SECONDS", help="How long one run may take.")


inputs_option = click.option("--inputs", metavar="FILE.npz", help="Real inputs: an array for each input, by its name.")


def _request(
    work: Literal["check", "survey", "convert", "try", "fix-shapes"],
    model: str,
    **options: Any,  # noqa: ANN401 - its fields
) -> Request:
    """Make the request that the options ask for; one that was not given keeps its default."""
    from assistant.onnx.worker import Request  # noqa: PLC0415 - `--help` needs no child

    given = {name: value for name, value in options.items() if value is not None}
    return Request(work=work, model=model, here=str(Path.cwd()), **given)


@click.group()
def onnx() -> None:
    """Check what ONNX models run on, convert them for it, fix their open sizes, and try them."""


@onnx.command()
@click.argument("model")
@click.option(
    "--target",
    "--provider",
    "targets",
    multiple=True,
    metavar="NAME|all",
    callback=lambda _context, _option, given: chosen(given),
    help="Tell node by node what one target takes (dml, cuda, webnn, …); several: with commas, or given again.",
)
@click.option("--svg", metavar="FILE", help="Save a picture of what runs where, on DirectML unless a target is named.")
@inputs_option
@_limit_option(CHECK_SECONDS)
@json_option
def check(
    model: str,
    targets: tuple[str, ...],
    svg: str | None,
    limit: float,
    *,
    as_json: bool,
    **options: Any,  # noqa: ANN401 - as above
) -> None:
    """Show what of a model each target takes: one line each, or the nodes of those that you name, and why."""
    from assistant.onnx import isolated  # noqa: PLC0415 - `--help` needs no child

    bounds = isolated.limits(limit)
    if len(targets) > 1:
        if svg:
            raise click.UsageError(say("--svg draws one target: name it with --target."))
        several = isolated.check_all(_request("check", model, targets=targets, language=language(), **options), bounds)
        _show({"targets": several}, "draw_several", several, as_json=as_json)
    elif targets or svg:
        one = {"provider": next(iter(targets), "dml"), "picture": bool(svg)}
        request = _request("check", model, **one, language=language(), **options)
        answer, picture = isolated.check(request, bounds)
        if svg:
            write_file(svg, picture)
        _show(answer, "draw_check", answer, as_json=as_json)
    else:
        request = _request("survey", model, targets=ordered(_machine()), language=language(), **options)
        survey, on_directml, _picture = isolated.survey(request, bounds)
        _show(replace(on_directml, targets=survey.targets), "draw_survey", survey, as_json=as_json)


def _machine() -> Machine | None:
    """Return what is known of this machine; None where even that fails."""
    from assistant.detect import detect  # noqa: PLC0415 - likewise

    try:
        return detect(host_of(None)).machine
    except (AssistantError, OSError):
        return None


def _show(plain: Any, drawn: str, answer: Any, *, as_json: bool) -> None:  # noqa: ANN401 - any record
    """Print an answer as JSON, or have it drawn by a function of this name."""
    if as_json:
        echo_json(plain)
    else:
        from assistant.cli import draw_targets  # noqa: PLC0415 - --json needs no drawing

        getattr(draw_targets, drawn)(answer)


@onnx.command()
@click.argument("model")
@click.option("--to", "output", metavar="FILE", help="Where to write the result; by default beside the model.")
@click.option(
    "--for",
    "provider",
    default="dml",
    metavar="TARGET",
    callback=lambda _context, _option, name: (target(name), name)[1],
    help="What it is for, which decides opset and types; DirectML by default.",
)
@click.option("--fp16/--no-fp16", default=None, help="Convert to FP16 or leave the types alone; the target decides.")
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
    """Convert a model to what a target runs well; writes the result and a log of every change beside it."""
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
@click.option(
    "--provider", default="dml", metavar="NAME", help="Where to run it: dml, cpu, cuda, openvino, … or a full name."
)
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
