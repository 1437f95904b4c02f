"""`assistant fit`: whether a model goes into the memory of this machine's card."""

from __future__ import annotations

from typing import Any, NamedTuple

import click

from assistant.api import BadInput, Message, NothingFits, _, render, sentences
from assistant.api.journey import check_each, find_host, read_text, refuse_several, replay_option
from assistant.api.records import Backend, Machine, from_json
from assistant.api.steps import detect, load_catalog, make_plans
from assistant.api.terminal import echo, echo_json, json_option
from assistant.api.texts import verbatim
from assistant_addons.projects.memory import (
    Estimate,
    Format,
    Shape,
    Verdict,
    estimate,
    format_of,
    judge,
    judge_stated,
    largest_card,
    read_shape,
)
from assistant_addons.projects.models import Named, count_of, find_model, format_in

_LONGEST = 10**8  # chosen: tokens; no model has a context that comes near
_CONFIG_LIMIT = 10**7  # chosen: bytes; such a file has some KB


@click.command()
@click.argument("name", metavar="[MODEL]", default="")
@click.option("--parameters", default="", metavar="N", help="How many parameters the model has, such as 8B.")
@click.option(
    "--bits",
    default="",
    metavar="N|FORMAT",
    callback=check_each(lambda name: format_of(name).key),
    help="The bits of a weight (4, 8, 16), or the format: nf4, gptq, awq, q4_k_m, …; by default 16.",
)
@click.option(
    "--context",
    type=click.IntRange(1, _LONGEST),
    default=8192,
    show_default=True,
    help="The length of the context in tokens.",
)
@click.option("--config", metavar="FILE", help="The model's config.json, from which its exact shape is read.")
@click.option(
    "--memory", type=click.FloatRange(min=0.1), metavar="GB", help="The card's memory in GB, instead of a machine's."
)
@click.option(
    "--machine", metavar="FILE", help="Ask about a machine described in a JSON file ('-' for standard input)."
)
@replay_option
@json_option
@click.pass_context
def fit(  # noqa: PLR0913 - one for each option
    context_: click.Context,
    /,
    *,
    name: str,
    parameters: str,
    bits: str,
    context: int,
    config: str | None,
    memory: float | None,
    machine: str | None,
    replay: str | None,
    as_json: bool,
) -> None:
    """Estimate whether a model fits into the card's memory: by its name, such as llama3.1-8b or sdxl, or its size."""
    refuse_several(machine=machine, replay=replay, memory=memory)
    shape = read_shape(read_text(config, _CONFIG_LIMIT), config) if config else None
    model = find_model(name) if name and not (parameters or config) else _described(name, parameters, shape)
    has, place = (memory, _("the card")) if memory else _memory_of(machine, replay)
    if model.gb:
        answer = _stated(model, bits or model.format, has, place)
    else:
        kind = format_of(bits or model.format or "16")
        answer = _estimated(model.parameters, kind, context, shape, has, place)
    if as_json:
        echo_json({**answer.facts, "has": has, "verdict": answer.verdict.value, "text": answer.text})
    else:
        from assistant.api.journey import draw_rows  # noqa: PLC0415 - --json need not load the drawing library

        draw_rows((), answer.rows)
        echo(f"{_SIGNS[answer.verdict]} {render(answer.text)}")
    context_.exit(NothingFits.exit_code if answer.verdict is Verdict.NOT else 0)


_SIGNS = {Verdict.FITS: "✓", Verdict.TIGHT: "!", Verdict.NOT: "✗", Verdict.UNKNOWN: "?"}


class Answer(NamedTuple):
    """Whether it fits, in words, the figures that this rests on, and what `--json` tells beside."""

    verdict: Verdict
    text: Message
    rows: tuple[tuple[Message, str], ...]
    facts: dict[str, Any]


def _stated(model: Named, kind: str, has: float | None, place: Message) -> Answer:
    """Answer for a model of which somebody states what it takes; raise `BadInput` where that is asked of a format."""
    if kind:
        raise BadInput(
            _("How much {model} takes in the format {kind} is not known.", model=model.key, kind=kind),
            hint=_("Ask without a format: for the model as it is, {by} states {gb:g} GB.", by=model.by, gb=model.gb),
        )
    verdict = judge_stated(model.gb, model.least, has)
    text = _verdict(verdict, has, place)
    if has is not None and verdict in {Verdict.TIGHT, Verdict.UNKNOWN}:
        text = _(
            "That is more than {place} has ({has:.1f} GB): it may still run with fewer bits, or slowly with parts "
            "of it in main memory."
        ).format(place=place, has=has)
    row = (_("{model}, as {by} states", model=model.key, by=model.by), f"{model.gb:g} GB")
    facts = {"model": model.key, "need": {"gb": model.gb, "least": model.least}, "by": model.by}
    return Answer(verdict, text, (row,), facts)


def _described(name: str, parameters: str, shape: Shape | None) -> Named:
    """Return a language model by the size that is given, or its config.json; its name may state the format."""
    count = count_of(parameters) if parameters else shape.parameters if shape else 0
    if parameters and not count:
        message = _("'{text}' is not a number of parameters.", text=parameters)
        raise BadInput(message, hint=_("Write it like 8B or 600M."))
    if not count:
        raise BadInput(
            _("The number of parameters is not known."), hint=_("Give it, for example with --parameters 8B.")
        )
    kind = format_in(name)
    return Named(key=name, parameters=count, format=kind.key if kind else shape.format if shape else "")


def _estimated(
    count: int, kind: Format, context: int, shape: Shape | None, has: float | None, place: Message
) -> Answer:
    """Answer for a language model of so many parameters."""
    need = estimate(count, kind, context, shape)
    verdict = judge(need, has)
    text = sentences((_verdict(verdict, has, place), _help(verdict, need, has, exact=shape is not None)))
    facts = {"parameters": count, "format": kind.key, "need": need}
    return Answer(verdict, text, _rows(need, count, kind.key, context), facts)


def _rows(need: Estimate, parameters: int, kind: str, context: int) -> tuple[tuple[Message, str], ...]:
    """Return the parts of an estimate."""
    low, high = need.cache_least, need.cache_most
    least, most = need.range
    cache = f"{low:.1f} GB" if round(low, 1) == round(high, 1) else f"{low:.1f}–{high:.1f} GB"
    weights = _("Weights ({billions:.1f} billion parameters, {kind})", billions=parameters / 1e9, kind=kind)
    return (
        (weights, f"{need.weights:.1f} GB"),
        (_("Context of {tokens} tokens", tokens=context), cache),
        (_("Everything else"), f"{need.overhead:.1f} GB"),
        (_("Total (estimate)"), f"{least:.1f}–{most:.1f} GB"),
    )


def _help(verdict: Verdict, need: Estimate, has: float | None, *, exact: bool) -> Message | str:
    """Say what would help; `exact` where the model's shape is known."""
    if verdict is Verdict.UNKNOWN and has is not None and not exact:
        return _("Name the model's config.json with --config for an exact answer.")
    if verdict is Verdict.NOT and has is not None and need.weights < has:
        return _("A shorter context, fewer bits or a second card would help.")
    if verdict is Verdict.NOT:
        return _("Fewer bits, a smaller model or a second card would help.")
    return _("A shorter context or fewer bits would leave more room.") if verdict is Verdict.TIGHT else ""


def _verdict(verdict: Verdict, has: float | None, place: Message) -> Message:
    if has is None:
        return _("How much memory {place} has is not known; give it with --memory.", place=place)
    text = {
        Verdict.FITS: _("It fits: {place} has {has:.1f} GB."),
        Verdict.TIGHT: _("It is tight: {place} has {has:.1f} GB, and other programs take some of it."),
        Verdict.NOT: _("It does not fit: {place} has {has:.1f} GB."),
        Verdict.UNKNOWN: _("It depends on how the model stores its context: {place} has {has:.1f} GB."),
    }[verdict]
    return text.format(place=place, has=has)


def _memory_of(machine: str | None, replay: str | None) -> tuple[float | None, Message]:
    """Return the memory that the machine's plan would compute in, in GiB, and what it belongs to."""
    here = from_json(read_text(machine), Machine, machine) if machine else detect(find_host(replay)).machine
    plan = make_plans(here, load_catalog()).choice
    if plan is None or plan.backend is Backend.CPU:
        return here.memory_gb, _("the machine")
    name, memory = largest_card(here, plan.backend)
    return memory, verbatim(name)
