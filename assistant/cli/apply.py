"""`assistant apply CONFIG`: rebuild an exported setup here, to the letter or, on other hardware, planned anew."""

from __future__ import annotations

from typing import Any

import click
from packaging.requirements import Requirement

from assistant.catalog import load_catalog
from assistant.cli.consent import agree_sources
from assistant.cli.draw import draw_course, draw_drifts, draw_plan
from assistant.cli.inputs import host_of, read_text, replay_option
from assistant.cli.journey import Journey, refuse_failed
from assistant.cli.options import (
    dry_run_option,
    each,
    find_links_option,
    offline_option,
    request_of,
    request_options,
    target_option,
)
from assistant.cli.plan import best_plan
from assistant.cli.terminal import echo_json, json_option, yes_option
from assistant.detect import detect
from assistant.export import read_config
from assistant.host.live import LiveHost
from assistant.install import Consent, Sources, check_requirement
from assistant.model.plan import Request
from assistant.session.apply import changes, check_lock, course
from assistant.session.state import State, Task, known

CONFIG_LIMIT = 10**7  # chosen: bytes


@click.command()
@click.argument("config")
@target_option
@replay_option
@find_links_option
@offline_option
@click.option("--trust-index", multiple=True, metavar="URL", help="Trust this index, which the configuration names.")
@click.option(
    "--trust-requirement",
    multiple=True,
    metavar="NAME",
    callback=each(lambda name: str(Requirement(check_requirement(name)))),
    help="Trust this package, which the configuration names.",
)
@request_options
@click.option("--anew", is_flag=True, help="Make a new plan even where the configuration fits as it is.")
@dry_run_option
@yes_option(help="Answer yes to every question, except about unknown indexes and packages.")
@json_option
def apply(  # noqa: PLR0913 - one for each option
    config: str,
    *,
    target: str,
    replay: str | None,
    find_links: tuple[str, ...],
    offline: bool,
    trust_index: tuple[str, ...],
    trust_requirement: tuple[str, ...],
    anew: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    **options: Any,  # noqa: ANN401 - those of `request_options`
) -> None:
    """Rebuild an environment from an exported configuration."""
    exported, own = read_config(read_text(config, CONFIG_LIMIT), config), request_of(options)
    consent = Consent(indexes=trust_index)
    sources = Sources(LiveHost(), find_links=find_links, offline=offline, consent=consent)
    journey = Journey(State(target="" if target == "new" else target), sources, quiet=as_json, asks=not yes)
    machine = detect(host_of(replay)).machine if replay else known(journey.run(Task.DETECT).detection).machine
    how = course(exported, machine, load_catalog(), anew=anew or own != Request())
    request = how.request
    if own != Request():  # the torch version of the configuration is not kept then
        request = own.joined(Request(backend=request.backend, python=request.python))
    if not as_json:
        draw_course(how)
    if replay:
        plan, resolution = how.plan or best_plan(machine, load_catalog(), request), None
    else:
        if how.plan:
            agree_sources(how.plan, sources, trust_requirement, asks=not (yes or as_json))
            sources.keep = sources.locked = dict(exported.environment.packages)
            journey.take(how.plan)
        else:
            journey.plan(request)
        resolution = known(journey.run(Task.PREPARE).preview).resolution
        plan = known(journey.state.plan)
        if how.plan:
            check_lock(exported, resolution)
    differs = changes(exported, plan, resolution) if replay or not how.plan else ()
    if not as_json:
        if replay:
            draw_plan(plan)
        draw_drifts(differs)
    if not (replay or dry_run):
        journey.install(yes=yes)
    state = journey.state
    if as_json:
        answer = {"exact": how.plan is not None, "machine": how.differs, "changes": differs, "plan": plan}
        echo_json({**answer, "environment": state.environment, "report": state.report})
    refuse_failed(state)
