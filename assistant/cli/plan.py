"""`assistant plan`: what to install on this machine, on a described one, or on thousands of them."""

from __future__ import annotations

from typing import Any

import click

from assistant.catalog import Catalog, load_catalog
from assistant.cli.console import console
from assistant.cli.inputs import host_of, only_one, print_answers, read_file
from assistant.cli.options import request_of, request_options, source_options
from assistant.cli.terminal import echo_json
from assistant.detect import detect
from assistant.i18n import render, say
from assistant.install import Sources
from assistant.model.errors import NothingFits
from assistant.model.machine import Machine
from assistant.model.plan import Planning, Request
from assistant.model.record import from_json, replace
from assistant.plan import explain, make_plans, nothing_fits
from assistant.plan.settle import PlanInputs
from assistant.session.sources import settled


class Brief(Machine, frozen=True):
    """A line of a batch: a machine, and what is wished for on it."""

    pins: tuple[str, ...] = ()
    request: Request = Request()


@click.command()
@click.option("--machine", metavar="FILE", help="A machine described in a JSON file ('-' for standard input).")
@click.option("--machines", metavar="FILE.jsonl", help="Many machines, one JSON object a line; one answer a line.")
@click.option("--replay", metavar="FILE", help="A recorded machine: a file, or the name of a shipped one.")
@request_options
@source_options
@click.option("--why", is_flag=True, help="Print the reasoning.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
@click.pass_context
def plan(
    context: click.Context,
    /,
    machine: str | None,
    machines: str | None,
    replay: str | None,
    *,
    why: bool,
    as_json: bool,
    **options: Any,  # noqa: ANN401 - the options of `request_options` and `source_options`
) -> None:
    """Choose what to install, and say why."""
    only_one(machine=machine, machines=machines, replay=replay)
    wishes = {name: options.pop(name) for name in ("backend", "pins", "python", "nightly")}
    request, catalog = request_of(**wishes), load_catalog()
    if machines:
        print_answers(read_file(machines), lambda line: _answer(line, request, catalog))
        return
    brief = _brief(machine, replay, request)
    case = PlanInputs(brief, catalog, brief.request)
    planning = make_plans(*case)
    if not (machine or replay) or any(options.values()):
        planning = settled(planning, case, Sources(host_of(None), **options))
    if planning.choice or as_json:
        _print(planning, brief, why=why, as_json=as_json)
        context.exit(0 if planning.choice else NothingFits.exit_code)
    raise nothing_fits(planning)


def _brief(machine: str | None, replay: str | None, request: Request) -> Brief:
    if machine:
        brief = from_json(read_file(machine), Brief, machine)
        return replace(brief, request=_merged(brief, request))
    found = detect(host_of(replay)).machine
    return Brief(**{name: getattr(found, name) for name in found.__struct_fields__}, request=request)


def _merged(brief: Brief, request: Request) -> Request:
    """Put the command line's wishes before the brief's own."""
    own = brief.request
    return Request(
        backend=request.backend or own.backend,
        python=request.python or own.python,
        pins=(*request.pins, *own.pins, *brief.pins),
        nightly=request.nightly or own.nightly,
    )


def _answer(line: bytes, request: Request, catalog: Catalog) -> Planning:
    brief = from_json(line, Brief, say("This line"))
    return make_plans(brief, catalog, _merged(brief, request))


def _print(planning: Planning, machine: Machine, *, why: bool, as_json: bool) -> None:
    if as_json:
        echo_json(planning)
        return
    from assistant.cli.draw import draw_planning  # noqa: PLC0415 - --json need not load the drawing library

    draw_planning(planning, brief=why)
    if why:
        console.print("\n".join(map(render, explain(planning, machine))), markup=False)
