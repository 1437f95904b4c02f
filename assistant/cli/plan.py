"""`assistant plan`: what to install, here or on described machines; `assistant catalog`: the tables behind it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import click

from assistant.catalog import Catalog, load_catalog
from assistant.catalog.tables import write_tables
from assistant.cli.options import (
    pop_request,
    project_options,
    refuse_several,
    request_options,
    source_options,
    trust_index_option,
    with_projects,
)
from assistant.cli.terminal import (
    ask,
    echo,
    echo_json,
    find_host,
    json_option,
    print_answers,
    read_lines,
    read_text,
    replay_option,
    yes_option,
)
from assistant.host.live import LiveHost
from assistant.host.process import CancelToken
from assistant.i18n import _, render, say, sentences
from assistant.install import ChangeRequest, EnvironmentFolder, Site, Sources, Tools, Unsolved
from assistant.model.errors import BadInput, Cancelled, NothingFits, WorkFailed
from assistant.model.machine import Machine
from assistant.model.plan import Plan, Planning, Request, name_of, plain_requirement
from assistant.model.record import from_json, replace, to_json
from assistant.model.report import Event, Progress
from assistant.plan import PlanInputs, explain, make_plans, nothing_fits, without_unused_facts
from assistant.session.answers import plans_answer
from assistant.session.planning import is_unchecked, not_added_error, plan_request
from assistant.session.upkeep import renew

# Of a request; the rest is for the command line alone.
_ASKABLE = frozenset({"backend", "python", "pins", "nightly", "bundle"})


class Brief(Machine, frozen=True):
    """A machine, and what is asked for on it."""

    pins: tuple[str, ...] = ()
    request: Request = Request()

    def joined_request(self, own: Request) -> Request:
        """Return the command line's `own` request joined with that of the file; `own` has precedence.

        Raises `BadInput` if the file asks for more than packages, such as where these come from.
        """
        wish = replace(self.request, pins=(*self.request.pins, *self.pins))
        beyond = [name for name in wish.__struct_fields__ if name not in _ASKABLE and getattr(wish, name)]
        beyond += [f"{need.name} @ …" for pin in wish.pins if (need := plain_requirement(pin)) and need.url]
        if beyond:
            text = _("A machine's file may ask for packages, not say where they come from: {names}.")
            options = "--trust-index, --find-links, --pin, -r"
            hint = _("Name on the command line what you trust of it.", option=options)
            raise BadInput(text.format(names=", ".join(beyond)), hint=hint)
        return own.joined(wish)


def read_brief(text: str, what: str) -> Brief:
    """Read a machine's file, or a line of a batch; raise `BadInput` that names `what` for any other text."""
    return from_json(text, Brief, what)


_KINDS = 1024  # chosen: kinds of machines whose plans are kept, some 20 kB each


def plan_tools(options: Mapping[str, Any]) -> Tools:
    """Return the tools for planning here, with the package sources that the options and the user's settings name.

    `options` are keyword arguments of `Sources`, those of `source_options` alone. Progress is printed to standard
    error, if that is a terminal.
    """
    host = LiveHost()

    def tell(event: Event) -> None:
        if isinstance(event, Progress) and sys.stderr.isatty():
            echo(render(event.text), err=True)

    return Tools(host, Sources(host, **options), tell, CancelToken())


def print_plans(file: str, catalog: Catalog, request: Request, tools: Tools) -> None:
    """Print for each line of a file, a machine in JSON, its plans as a line of JSON, or `{"error": …}`.

    Machines that differ in nothing that plans depend on are planned once.
    """

    @lru_cache(maxsize=_KINDS)
    def of_kind(text: str) -> Planning:
        brief = read_brief(text, say("This line"))
        return plan_request(PlanInputs(brief, catalog, brief.joined_request(request)), tools)

    print_answers(
        read_lines(file), lambda line: of_kind(to_json(without_unused_facts(read_brief(line, say("This line")))))
    )


def best_plan(machine: Machine, catalog: Catalog, request: Request) -> Plan:
    """Return the best plan for a request on a machine; raise `NothingFits` if there is none."""
    planning = make_plans(machine, catalog, request)
    if planning.choice is None:
        raise nothing_fits(planning)
    return planning.choice


def print_addition(path: str, requirements: tuple[str, ...], tools: Tools, *, as_json: bool) -> None:
    """Print whether torch stays if packages are added to an environment, and all that would change; change nothing.

    Raises `BadInput` if it is no environment or nothing is named, `WorkFailed` if nothing goes with its torch, and
    `Unsolved` if an index cannot be reached or a package has only sources.
    """
    if not requirements:
        raise BadInput(_("No packages were named."), hint=_("Example: {value}", value="--into .venv --pin whisperx"))
    site = Site.ask(EnvironmentFolder.at(path).path, tools.host)
    try:
        difference = ChangeRequest(requirements).resolve_change(site, tools)
    except Unsolved as error:
        if error.unreachable or error.only_source:
            raise
        raise not_added_error(requirements, error) from error
    torch = site.versions.get("torch", "")
    if as_json:
        names = [*map(name_of, requirements)]
        fits = {name: difference.after[name] for name in names if name in difference.after}
        stays = difference.after.get("torch", "") == torch
        echo_json({"path": site.prefix, "torch": torch, "stays": stays, "fits": fits, "moves": difference.moves})
        return
    if torch and all(move.name != "torch" for move in difference.moves):
        echo(_("✓ torch {version} stays as it is in {path}.", version=torch, path=site.prefix))
    for move in difference.moves:
        echo(f"  {render(move.words)}")
    if not difference.moves:
        echo(_("All of these are installed already."))


@click.command()
@click.option(
    "--into", default="", metavar="PATH", help="What adding --pin's packages to this environment would change."
)
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
    into: str,
    machine: str | None,
    machines: str | None,
    replay: str | None,
    *,
    why: bool,
    as_json: bool,
    **options: Any,  # noqa: ANN401 - those of `request_options` and `source_options`
) -> None:
    """Choose what to install, and say why."""
    refuse_several(into=into, machine=machine, machines=machines, replay=replay)
    request, catalog = pop_request(options), load_catalog()
    how = {"all_taken": True, "quiet": as_json or bool(machines)}
    request, project = with_projects(request, options, options.pop("trust_index"), **how)

    tools = plan_tools(options)
    if into:
        print_addition(into, request.pins, tools, as_json=as_json)
        return
    if machines:
        print_plans(machines, catalog, request, tools)
        return
    here: Machine
    if machine:
        here = brief = read_brief(read_text(machine), machine)
        request = brief.joined_request(request)
    else:
        from assistant.detect import detect  # noqa: PLC0415 - a machine that is given need not be looked at

        here = detect(find_host(replay)).machine
    planning = plan_request(PlanInputs(here, catalog, request), tools)
    if not (planning.choice or as_json):
        raise nothing_fits(planning)
    if as_json:
        echo_json(plans_answer(planning, here, project, why=why))
    else:
        from assistant.cli.draw import draw_planning  # noqa: PLC0415 - --json need not load the drawing library

        draw_planning(planning, brief=why)
        for line in explain(planning, here) if why else ():
            echo(line)
    if planning.choice is None:
        context.exit(NothingFits.exit_code)
    context.exit(WorkFailed.exit_code if is_unchecked(planning) else 0)


# That nothing is new is claimed only where all of the indexes answered.
UP_TO_DATE = _("Up to date: no index lists more of torch than the tables of {day} know; {version} is the newest.")
NOTHING_SEEN = _("Nothing new was seen; the newest torch that the tables of {day} know is {version}.")
_SIGNS = {"ok": "✓", "nothing": "–", "unchecked": "!"}


@click.group()
def catalog() -> None:
    """Keep the tables that plans are based on up to date."""


@catalog.command()
@click.option(
    "--index-url",
    default="",
    metavar="URL",
    callback=lambda _context, _option, url: Sources.check_index_url(url) if url else url,
    help="Ask this index instead of torch's and AMD's own.",
)
@yes_option(help="Write without asking.")
@json_option
def refresh(index_url: str, *, yes: bool, as_json: bool) -> None:
    """Update the tables from the package indexes."""
    known, host = load_catalog(), LiveHost()
    found, answers, _bytes = renew(Sources(host, index_url=index_url), known, str(host.facts("identity")["date"]))
    unchecked = [one.sentence for one in answers if one.status == "unchecked"]
    if not any(one.status == "ok" for one in answers):
        text = _("No release of torch was seen, so the tables stay as they are. {reasons}")
        hint = _("Check the network, or name an index with --index-url.")
        raise WorkFailed(text.format(reasons=sentences(unchecked)), hint=hint)
    if not as_json:
        for one in answers:
            echo(f"{_SIGNS[one.status]} {render(one.sentence)}")
        for change in found.changes:
            echo(f"+ {render(change)}")
        if not found.changes:
            echo((NOTHING_SEEN if unchecked else UP_TO_DATE).format(version=known.newest_torch, day=known.as_of))
    path = None
    if found.tables:
        if not yes and not ask(say("Write these changes?"), default=True, err=True):
            raise Cancelled(_("Nothing was written."), hint=_("The tables stay as they are."))
        path = str(write_tables(found.tables))
    if as_json:
        echo_json({"changes": found.changes, "not_checked": unchecked, "sources": answers, "written": path})
    elif path:
        echo(say("Written to {path}; plans are based on it from now on.", path=path))
