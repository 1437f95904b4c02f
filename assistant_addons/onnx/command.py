"""`assistant onnx`: what of a model runs where, and what to do about the rest."""

from __future__ import annotations

from typing import Any

import click

from assistant.api import BadInput, WorkFailed, _
from assistant.api.terminal import Option, echo_json, json_option
from assistant_addons.onnx.answers import (
    CHECK_SECONDS,
    CONVERT_SECONDS,
    TITLES,
    TRY_SECONDS,
    Attempt,
    Checked,
    Conversion,
    Provider,
)

OTHERS = "https://onnxruntime.ai/docs/execution-providers/"


def _limit_option(seconds: float) -> Option:
    kind = click.FloatRange(min=0, min_open=True)
    return click.option("--limit", type=kind, default=seconds, metavar="SECONDS", help="How long one run may take.")


inputs_option = click.option(
    "--inputs", default="", metavar="FILE.npz", help="Real inputs: an array for each input, by its name."
)


def _provider_option(what: str) -> Option:
    names = ("--target", "--provider", "provider")
    return click.option(*names, default="dml", metavar="dml|cpu", callback=_provider, help=what)


def _provider(_context: click.Context, _option: click.Parameter, name: str) -> Provider:
    """Refuse a provider other than DirectML and the CPU, and say who knows about it."""
    for provider in TITLES:
        if provider == name:
            return provider
    raise BadInput(
        _("Only DirectML (dml) and the CPU (cpu) are judged here, not {name}.", name=name),
        hint=_("For any other, use its maker's own tool, which its page among these names: {link}", link=OTHERS),
    )


def _show(answer: Checked | Conversion | Attempt, *, as_json: bool) -> None:
    """Print an answer, or its JSON."""
    if as_json:
        echo_json(answer)
    else:
        from assistant_addons.onnx.drawing import draw  # noqa: PLC0415 - --json needs no drawing

        draw(answer)


@click.group()
def onnx() -> None:
    """Check what of ONNX models runs on DirectML or the CPU, convert them for DirectML, and try them."""


@onnx.command()
@click.argument("model")
@_provider_option("Where the model shall run: DirectML, or the CPU.")
@_limit_option(CHECK_SECONDS)
@json_option
def check(model: str, provider: Provider, limit: float, *, as_json: bool) -> None:
    """Show node by node what of a model DirectML takes, or the CPU, and why not the rest."""
    from assistant_addons.onnx import task  # noqa: PLC0415 - `--help` needs no child

    _show(task.check(model, provider, limit), as_json=as_json)


@onnx.command()
@click.argument("model")
@click.option("--to", "output", metavar="FILE", help="Where to write the result; by default beside the model.")
@click.option(
    "--keep", multiple=True, metavar="NODE|OPERATOR", help="Keep a node, or every node of an operator, in FP32."
)
@inputs_option
@_limit_option(CONVERT_SECONDS)
@click.option("--strict", is_flag=True, help="Write nothing that no run has proved.")
@click.option("--force", is_flag=True, help="Overwrite an earlier result.")
@json_option
def convert(model: str, limit: float, *, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - as above
    """Convert a model to what DirectML runs well; writes the result and a log of every change beside it."""
    from assistant_addons.onnx import task  # noqa: PLC0415 - `--help` needs no child

    _show(task.convert(model, limit=limit, **options), as_json=as_json)


@onnx.command(name="try")
@click.argument("model")
@click.option(
    "--against",
    "reference",
    metavar="FILE",
    help="The model to compare with; by default the one it was converted from.",
)
@_provider_option("Where to run it: on DirectML, or on the CPU.")
@inputs_option
@click.option("--python", default="", metavar="PATH", help="The Python whose ONNX Runtime is used.")
@_limit_option(TRY_SECONDS)
@json_option
def try_(model: str, limit: float, *, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - as above
    """Run a model and compare its results with FP32 on the CPU."""
    from assistant_addons.onnx import task  # noqa: PLC0415 - `--help` needs no child

    answer = task.try_model(model, limit, **options)
    _show(answer, as_json=as_json)
    if not answer.passed:
        raise WorkFailed(answer.verdict, hint=_("`assistant onnx check` says what stands in the way."))
