"""`assistant export`, `apply` and `check`: write a setup to files, rebuild it elsewhere, say what differs."""

from __future__ import annotations

import sys
from typing import Any

import click
from packaging.requirements import Requirement
from rich.text import Text

from assistant import verify
from assistant.catalog import load_catalog
from assistant.catalog.catalog import installed_recipes, is_known_index
from assistant.cli.draw import draw_approach, draw_drifts, draw_exported, draw_plan, draw_rows
from assistant.cli.options import (
    check_each,
    dry_run_option,
    find_links_option,
    offline_option,
    pop_request,
    request_options,
)
from assistant.cli.plan import best_plan
from assistant.cli.setup import Journey, Work, refuse_blocked, refuse_failed, target_option
from assistant.cli.terminal import ask, echo, echo_json, find_host, json_option, read_text, replay_option, yes_option
from assistant.detect import detect
from assistant.export import FORMATS, read_config
from assistant.host.live import LiveHost
from assistant.i18n import _, as_typed, ngettext, render, say, sentences
from assistant.install import EnvironmentFolder, Sources
from assistant.model.errors import BadInput
from assistant.model.plan import Plan, Request, check_requirement
from assistant.model.record import replace
from assistant.model.shell import quote
from assistant.session.actions import with_result
from assistant.session.apply import (
    check_lock,
    choose_approach,
    drifts,
    find_exported_environment,
    plan_changes,
    unknown_requirements,
)
from assistant.session.state import Detected, State, Task, required
from assistant.session.steps import write_export
from assistant.session.store import Store, load_last_setup

CONFIG_LIMIT = 10**7  # chosen: bytes


def confirm_sources(plan: Plan, sources: Sources, packages: tuple[str, ...], *, asks: bool) -> None:
    """Ask the user to trust each unknown index or page of a plan, then all its unknown packages in one question.

    `packages` are names that the user trusts already. Raises `BadInput` for the first that is not confirmed (for any,
    without `asks` or a terminal), and for an index that is no address. It must run before the first request, which an
    index would see.
    """
    catalog = load_catalog()
    indexes = tuple(dict.fromkeys(filter(None, (plan.index_url, *plan.indexes))))
    for url in indexes:
        Sources.check_index_url(url)
    own, pages = sources.trusted, {url for recipe in installed_recipes() for url in recipe.links.values()}
    unknown = [url for url in (*indexes, *plan.links) if url not in pages and not is_known_index(url, catalog, own)]
    hint = _("If you trust it, add {options}.", options=" ".join(f"--trust-index {quote(url)}" for url in unknown))
    text = _("The configuration takes packages from {url}, which is no known index.")
    doubts = [(text.format(url=url), _("Trust it?"), hint) for url in unknown]
    if names := unknown_requirements(plan, catalog, packages):
        text = _("The configuration asks for packages that no plan of the assistant needs: {names}.")
        options = " ".join(f"--trust-requirement {quote(name)}" for name in names)
        hint = _("Read the names letter by letter. If you trust them, add {options}.", options=options)
        question = _("Are all of them what you expect, letter by letter?")
        doubts.append((text.format(names=", ".join(names)), question, hint))
    for refusal, question, hint in doubts:
        if not (asks and sys.stdin.isatty() and ask(sentences((refusal, question)), default=False)):
            raise BadInput(refusal, hint=hint)


@click.command()
@click.argument("config", type=click.Path())
@target_option
@replay_option
@find_links_option
@offline_option
@click.option("--trust-index", multiple=True, metavar="URL", help="Trust this index, which the configuration names.")
@click.option(
    "--trust-requirement",
    multiple=True,
    metavar="NAME",
    callback=check_each(lambda name: str(Requirement(check_requirement(name)))),
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
    exported, own = read_config(read_text(config, CONFIG_LIMIT), config), pop_request(options)
    sources = Sources(LiveHost(), find_links=find_links, offline=offline, trust=trust_index)
    state = State().with_choices(target="" if target == "new" else target)
    journey = Journey(state, sources, quiet=as_json, asks=not yes)
    machine = detect(find_host(replay)).machine if replay else required(journey.run(Task.DETECT).detection).machine
    how = choose_approach(exported, machine, load_catalog(), anew=anew or own != Request())
    request = how.request
    if own != Request():  # the torch version of the configuration is not kept then
        request = own.joined(Request(backend=request.backend, python=request.python))
    if not as_json:
        draw_approach(how)
    if replay:
        plan, resolution = how.plan or best_plan(machine, load_catalog(), request), None
    else:
        if how.plan:
            confirm_sources(how.plan, sources, trust_requirement, asks=not (yes or as_json))
            sources.keep = sources.locked = dict(exported.environment.packages)
            journey.take(how.plan)
        else:
            journey.plan(request)
        resolution = required(journey.run(Task.PREPARE).preview).resolution
        plan = required(journey.state.plan)
        if how.plan:
            check_lock(exported, resolution)
    differs = plan_changes(exported, plan, resolution) if replay or not how.plan else ()
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


@click.command()
@click.argument("config", type=click.Path())
@click.option(
    "--target", default="", metavar="PATH", help="The environment to compare; by default the one that was made for it."
)
@replay_option
@click.option("--no-verify", is_flag=True, help="Compare machine and packages only; compute nothing.")
@json_option
@click.pass_context
def check(
    context: click.Context, /, config: str, target: str, replay: str | None, *, no_verify: bool, as_json: bool
) -> None:
    """Compare this machine and an environment with an exported configuration; exit with 1 if they differ."""
    exported = read_config(read_text(config, CONFIG_LIMIT), config)
    host = find_host(replay)
    machine, last = detect(host).machine, Store().environment()
    folder = None if replay else find_exported_environment(exported, target, last.path if last else "")
    report = None
    if folder and not no_verify:
        environment = replace(exported.environment, python=str(EnvironmentFolder(folder).python))
        report = verify.run(environment, exported.plan, device=exported.verification.device)
    found = drifts(exported, machine, folder, report, host)
    if as_json:
        rows = [{"kind": one.kind, "name": one.name, "was": one.was, "now": one.now, "text": one.text} for one in found]
        echo_json({"clean": not found, "drift": rows})
    elif found:
        echo(say("{config}, compared with {path}:", config=config, path=folder) if folder else config)
        draw_drifts(found)
        echo(ngettext("{count} thing differs.", "{count} things differ.", len(found)))
    else:
        echo(say("Everything is as it was."))
    context.exit(1 if found else 0)


@click.command()
@click.argument("formats", nargs=-1, metavar="[FORMAT]...")
@click.option("--to", "folder", default="", metavar="DIR", help="Folder of the exported files.")
@click.option("--force", is_flag=True, help="Replace files of the same names, whoever wrote them.")
@click.option("--list", "listing", is_flag=True, help="List the formats, and write nothing.")
@json_option
def export(formats: tuple[str, ...], folder: str, *, force: bool, listing: bool, as_json: bool) -> None:
    """Write the configuration of the last setup to files."""
    if listing:
        described = {name: render(kind.description) for name, kind in FORMATS.items()}
        if as_json:
            echo_json(described)
        else:
            draw_rows((), [(Text(name, style="bold"), as_typed(text)) for name, text in described.items()])
        return
    state = load_last_setup().with_choices(folder=folder, formats=formats, overwrite=force)
    work = Work(quiet=as_json, asks=True)
    if state.detected is None:  # of an environment that was only verified
        state = replace(state, detected=Detected(detection=detect(work.tools.host)))
    refuse_blocked(state, Task.EXPORT)
    with work.show_progress(takes_back=True):
        state = with_result(state, Task.EXPORT, write_export(state, work.tools))
    work.store.save(state)
    if as_json:
        echo_json(state.exported.files, indent=0)
    else:
        draw_exported(state)
