"""`assistant plan`: what to install on this machine, on a described one, or on thousands of them."""

from __future__ import annotations

from typing import Any

import click

from assistant.catalog import Catalog, load_catalog
from assistant.cli.brief import read_brief
from assistant.cli.inputs import host_of, only_one, read_text, replay_option
from assistant.cli.options import (
    project_options,
    request_of,
    request_options,
    source_options,
    trust_index_option,
)
from assistant.cli.planning import plan_each, plan_tools, show_planning
from assistant.cli.project import agree_project, project_of
from assistant.cli.terminal import echo_json, json_option
from assistant.detect import detect
from assistant.model.errors import NothingFits
from assistant.model.machine import Machine
from assistant.model.plan import Plan, Request
from assistant.plan import PlanInputs, make_plans, nothing_fits
from assistant.session.answers import of_planning
from assistant.session.joint import decided


def best_plan(machine: Machine, catalog: Catalog, request: Request) -> Plan:
    """Return the plan to choose; raise `NothingFits` where there is none."""
    planning = make_plans(machine, catalog, request)
    if planning.choice is None:
        raise nothing_fits(planning)
    return planning.choice


@click.command()
@click.option("--machine", metavar="FILE", help="Plan for a machine described in a JSON file ('-' for standard input).")
@click.option(
    "--machines", metavar="FILE.jsonl", help="Plan for many machines: one JSON object per line, one answer per line."
)
@replay_option
@request_options
@project_options
@source_options
@trust_index_option
@click.option("--why", is_flag=True, help="Explain the choice in full.")
@json_option
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
    **options: Any,  # noqa: ANN401 - those of `request_options` and `source_options`
) -> None:
    """Choose what to install, and say why."""
    only_one(machine=machine, machines=machines, replay=replay)
    request, catalog = request_of(options), load_catalog()
    if project := project_of(options, options.pop("trust_index")):
        request = agree_project(request, project, all_taken=True, quiet=as_json or bool(machines))

    tools, named = plan_tools(options), any(options.values())
    if machines:
        plan_each(machines, catalog, request, tools)
        return
    here: Machine
    if machine:
        here = brief = read_brief(read_text(machine), machine)
        request = brief.asked(request)
    else:
        here = detect(host_of(replay)).machine
    planning = decided(PlanInputs(here, catalog, request), tools, look=named or not (machine or replay))
    if not (planning.choice or as_json):
        raise nothing_fits(planning)
    if as_json:
        echo_json(of_planning(planning, here, project, why=why))
    else:
        show_planning(planning, here, why=why)
    context.exit(0 if planning.choice else NothingFits.exit_code)
