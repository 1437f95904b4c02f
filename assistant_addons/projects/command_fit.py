"""`assistant fit`: whether a language model goes into the memory of this machine's card."""

from __future__ import annotations

import re
from typing import Any

import click

from assistant.api import BadInput, Message, NothingFits, _, sentences
from assistant.api.journey import check_each, find_host, read_text, refuse_several, replay_option
from assistant.api.records import Backend, Machine, from_json
from assistant.api.steps import detect, load_catalog, make_plans
from assistant.api.terminal import echo, echo_json, json_option
from assistant.api.texts import verbatim
from assistant_addons.projects.memory import (
    Estimate,
    Shape,
    Verdict,
    estimate,
    format_of,
    judge,
    largest_card,
    read_shape,
)

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
_LONGEST = 10**8  # chosen: tokens; no model has a context that comes near
_CONFIG_LIMIT = 10**7  # chosen: bytes; such a file has some KB


def _count(text: str) -> int:
    """Read a number of parameters: 8B, 600M, 8030261248."""
    found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,6})?)\s*([kmbt]?)", text.strip().lower())
    number = round(float(found[1]) * _UNITS[found[2]]) if found else 0
    if not 10**6 <= number <= 10**14:  # from the smallest model to a hundred times the largest
        raise BadInput(_("'{text}' is not a number of parameters.", text=text), hint=_("Write it like 8B or 600M."))
    return number


@click.command()
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
def fit(
    context_: click.Context,
    /,
    machine: str | None,
    replay: str | None,
    memory: float | None,
    *,
    as_json: bool,
    **model: Any,  # noqa: ANN401 - the options of the model
) -> None:
    """Estimate whether a language model fits into the card's memory."""
    refuse_several(machine=machine, replay=replay, memory=memory)
    parameters, context, config = (model[name] for name in ("parameters", "context", "config"))
    shape = read_shape(read_text(config, _CONFIG_LIMIT), config) if config else None
    count = _count(parameters) if parameters else shape.parameters if shape else 0
    if not count:
        raise BadInput(
            _("The number of parameters is not known."), hint=_("Give it, for example with --parameters 8B.")
        )
    kind = format_of(model["bits"] or (shape.format if shape and shape.format else "16"))
    need = estimate(count, kind, context, shape)
    has, place = (memory, _("the card")) if memory else _memory_of(machine, replay)
    verdict = judge(need, has)
    if as_json:
        answer = {"parameters": count, "format": kind.key, "need": need, "has": has, "verdict": verdict.value}
        echo_json({**answer, "text": _sentence(verdict, need, has, place, shape)})
    else:
        _draw(need, count, kind.key, context)
        echo(_sentence(verdict, need, has, place, shape))
    context_.exit(NothingFits.exit_code if verdict is Verdict.NOT else 0)


def _memory_of(machine: str | None, replay: str | None) -> tuple[float | None, Message]:
    """Return the memory that the machine's plan would compute in, in GiB, and what it belongs to."""
    here = from_json(read_text(machine), Machine, machine) if machine else detect(find_host(replay)).machine
    plan = make_plans(here, load_catalog()).choice
    if plan is None or plan.backend is Backend.CPU:
        return here.memory_gb, _("the machine")
    name, memory = largest_card(here, plan.backend)
    return memory, verbatim(name)


def _draw(need: Estimate, parameters: int, kind: str, context: int) -> None:
    from assistant.api.journey import draw_rows  # noqa: PLC0415 - --json need not load the drawing library

    low, high = need.cache_least, need.cache_most
    cache = f"{low:.1f} GB" if round(low, 1) == round(high, 1) else f"{low:.1f}–{high:.1f} GB"
    least, most = need.range
    weights = _("Weights ({billions:.1f} billion parameters, {kind})", billions=parameters / 1e9, kind=kind)
    draw_rows(
        (),
        (
            (weights, f"{need.weights:.1f} GB"),
            (_("Context of {tokens} tokens", tokens=context), cache),
            (_("Everything else"), f"{need.overhead:.1f} GB"),
            (_("Total (estimate)"), f"{least:.1f}–{most:.1f} GB"),
        ),
    )


def _sentence(verdict: Verdict, need: Estimate, has: float | None, place: Message, shape: Shape | None) -> Message:
    """Say whether it fits, and what would help where it does not."""
    if has is None:
        return _("How much memory {place} has is not known; give it with --memory.", place=place)
    text = {
        Verdict.FITS: _("It fits: {place} has {has:.1f} GB."),
        Verdict.TIGHT: _("It is tight: {place} has {has:.1f} GB, and other programs take some of it."),
        Verdict.NOT: _("It does not fit: {place} has {has:.1f} GB."),
        Verdict.UNKNOWN: _("It depends on how the model stores its context: {place} has {has:.1f} GB."),
    }[verdict].format(place=place, has=has)
    help_: Message | str = ""
    if verdict is Verdict.UNKNOWN and shape is None:
        help_ = _("Name the model's config.json with --config for an exact answer.")
    elif verdict is Verdict.NOT and need.weights < has:
        help_ = _("A shorter context, fewer bits or a second card would help.")
    elif verdict is Verdict.NOT:
        help_ = _("Fewer bits, a smaller model or a second card would help.")
    elif verdict is Verdict.TIGHT:
        help_ = _("A shorter context or fewer bits would leave more room.")
    return sentences((text, help_))
