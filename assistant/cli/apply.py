"""`assistant apply CONFIG`: rebuild an exported setup here, to the letter or, on other hardware, planned anew."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from typing import Any

import click
from packaging.requirements import Requirement
from rich.text import Text

from assistant.catalog import load_catalog
from assistant.cli.console import console
from assistant.cli.draw import draw_planning
from assistant.cli.inputs import host_of, read_file
from assistant.cli.journey import Journey, agree, refuse_failed
from assistant.cli.options import each, request_of, request_options
from assistant.cli.terminal import ask, echo_json
from assistant.detect import detect
from assistant.export import Config, Drift, read_config
from assistant.host.live import LiveHost
from assistant.i18n import Message, _, say
from assistant.install import Consent, Sources, check_index_url, check_requirement, known_index
from assistant.model.errors import BadInput
from assistant.model.machine import Machine
from assistant.model.plan import Plan, Planning, Request
from assistant.model.record import replace
from assistant.model.visible import printable
from assistant.plan import make_plans, nothing_fits
from assistant.session.actions import Resume
from assistant.session.apply import Course, changes, check_lock, course, unknown_requirements
from assistant.session.nouns import State, Task

CONFIG_LIMIT = 10**7


@click.command()
@click.argument("config")
@click.option("--target", default="", metavar="new|kernel|PATH", help="Where to install; a new environment by default.")
@click.option("--replay", metavar="FILE", help="A recorded machine: a file, or the name of a shipped one.")
@click.option("--find-links", multiple=True, metavar="DIR", help="A folder of wheels.")
@click.option("--offline", is_flag=True, help="Use nothing but caches and local folders.")
@click.option("--trust-index", multiple=True, metavar="URL", help="Accept this index that the configuration names.")
@click.option(
    "--trust-requirement",
    multiple=True,
    metavar="NAME",
    callback=each(lambda name: str(Requirement(check_requirement(name)))),
    help="Accept this package that the configuration names.",
)
@request_options
@click.option("--anew", is_flag=True, help="Plan anew even where the configuration fits as it is.")
@click.option("--dry-run", is_flag=True, help="Print what would be done, and do nothing.")
@click.option("--yes", is_flag=True, help="Answer every question with yes, but for unknown indexes and packages.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
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
    **wishes: Any,  # noqa: ANN401 - the options of `request_options`
) -> None:
    """Rebuild an environment from an exported configuration."""
    told = read_config(read_file(config, CONFIG_LIMIT), config)
    consent = Consent(builds=False, indexes=trust_index, asks=not dry_run)
    sources = Sources(LiveHost(), find_links=find_links, offline=offline, consent=consent)
    state = State(target="" if target == "new" else target)
    journey = Journey(state, sources, quiet=as_json, asks=not yes)
    if replay is None:
        detection = journey.run(Task.DETECT).detection
        found = detection.machine if detection else Machine()
    else:
        found = detect(host_of(replay)).machine
    way = course(told, found, load_catalog(), anew=anew or any(wishes.values()))
    way = replace(way, request=_with(way.request, request_of(**wishes)))
    if not as_json:
        _draw_way(way)
    if replay is not None:
        planned = way.plan or _planned(found, way)
        other = changes(told, planned, None)
        if not as_json:
            draw_planning(Planning(choice=planned, plans=(planned,)))
            draw_drifts(other)
        _end(journey.state, way, planned, other, as_json=as_json)
        return
    if way.plan:
        agree_sources(way.plan, sources, trust_index, trust_requirement, asks=not (yes or as_json))
    _plan(journey, told, way, sources)
    journey.run(Task.PREPARE)
    preview, plan = journey.state.preview, journey.state.plan
    if way.plan and preview:
        check_lock(told, preview.resolution)
    other = changes(told, plan, preview.resolution if preview else None) if plan and not way.plan else ()
    if not as_json:
        draw_drifts(other)
    if not dry_run:
        agree(journey.state, yes=yes)
        journey.run(Task.INSTALL, Task.VERIFY)
    _end(journey.state, way, plan, other, as_json=as_json)


def _with(request: Request, own: Request) -> Request:
    """Put the command line's wishes before the configuration's, whose torch version is not kept then."""
    if own == Request():
        return request
    return replace(own, backend=own.backend or request.backend, python=own.python or request.python)


def draw_drifts(found: Iterable[Drift]) -> None:
    """Print differences, one line each."""
    for drift in found:
        console.print(Text(f"  ≠ {drift.text}", style="yellow"))


def _draw_way(way: Course) -> None:
    draw_drifts(way.differs)
    if way.plan:
        console.print(Text(say("The configuration is applied to the letter: the same packages, file by file.")))
        console.print(Text(f"    {', '.join(map(printable, way.plan.requirements))}", style="dim"))
    else:
        console.print(Text(say("The configuration does not fit this machine as it is, so it is planned anew.")))


def _plan(journey: Journey, told: Config, way: Course, sources: Sources) -> None:
    """Put the plan into the session: the configuration's own, or a new one."""
    if way.plan is None:
        journey.session.dispatch(Resume(state=replace(journey.state, request=way.request)))
        journey.run(Task.PLAN)
        return
    sources.keep = sources.locked = dict(told.environment.packages)
    planning = Planning(choice=way.plan, plans=(way.plan,))
    journey.session.dispatch(Resume(state=replace(journey.state, planning=planning)))


def agree_sources(
    plan: Plan, sources: Sources, indexes: tuple[str, ...], packages: tuple[str, ...], *, asks: bool
) -> None:
    """Take an index or a package that nobody here knows only where it is named once more; `--yes` names nothing.

    Raises `BadInput`. This comes before the first request: even to ask an index tells it who is there.
    """
    catalog, url = load_catalog(), plan.index_url
    if url:
        check_index_url(url)
    if url and url not in indexes and not known_index(url, catalog, sources.own_indexes):
        said = _("The configuration takes torch from {url}, which is no known index.", url=url)
        question = _("The configuration takes torch from {url}, which is no known index. Trust it?", url=url)
        _answered(question, said, _("If you trust it, add --trust-index {url}.", url=url), asks=asks)
    if names := unknown_requirements(plan, catalog, packages):
        listed = ", ".join(names)
        said = _("The configuration asks for packages that no plan of the assistant needs: {names}.", names=listed)
        question = _(
            "The configuration asks for packages that no plan of the assistant needs: {names}. Are all of them what "
            "you expect, letter by letter?",
            names=listed,
        )
        words = " ".join(f"--trust-requirement {shlex.quote(name)}" for name in names)
        hint = _("Read the names letter by letter. If you trust them, add {options}.", options=words)
        _answered(question, said, hint, asks=asks)


def _answered(question: Message, said: Message, hint: Message, *, asks: bool) -> None:
    if not (asks and sys.stdin.isatty() and ask(question, default=False)):
        raise BadInput(said, hint=hint)


def _planned(machine: Machine, way: Course) -> Plan:
    planning = make_plans(machine, load_catalog(), way.request)
    if planning.choice is None:
        raise nothing_fits(planning)
    return planning.choice


def _end(state: State, way: Course, plan: Plan | None, other: Iterable[Drift], *, as_json: bool) -> None:
    if as_json:
        answer = {
            "exact": way.plan is not None,
            "machine": way.differs,
            "changes": tuple(other),
            "plan": plan,
            "environment": state.environment,
            "report": state.report,
        }
        echo_json(answer)
    refuse_failed(state)
