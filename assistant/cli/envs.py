"""`assistant envs`: the environments on this machine: listed, checked, mended, undone, removed."""

from __future__ import annotations

from typing import Any

import click

from assistant.cli.journey import Journey
from assistant.cli.options import source_options
from assistant.cli.terminal import ask, echo, echo_json, json_option, yes_option
from assistant.host.live import LiveHost
from assistant.i18n import _, as_typed, say
from assistant.install import Sources, forget, made_environments, spot_at
from assistant.install import prune as prune_downloads
from assistant.model.errors import Cancelled
from assistant.session.actions import Pick
from assistant.session.state import State, Task
from assistant.session.survey import Repair


@click.command()
@click.option("--all", "every", is_flag=True, help="List all that are found: kernels, conda, uv, applications too.")
@click.option("--check", default="", metavar="PATH", help="Look into this one, and let it compute.")
@click.option("--mend", default="", metavar="PATH", help="Show what would mend this one, and do it if you agree.")
@click.option("--undo", default="", metavar="PATH", help="Put back what this one held before it was mended.")
@click.option("--forget", "lets_go", default="", metavar="PATH", help="Delete what is kept for undoing, to free space.")
@click.option(
    "--remove", default="", metavar="NAME", help="Remove this one, with its kernels: its name, folder or kernel."
)
@click.option("--prune", is_flag=True, help="Delete the downloaded files that are kept for later installations.")
@yes_option(help="Answer yes to every question.")
@source_options
@json_option
def envs(remove: str, *, prune: bool, every: bool, yes: bool, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - click's
    """List the environments that the assistant made, or all; check, mend or remove one."""
    check, mend, undo, lets_go = (options.pop(name) for name in ("check", "mend", "undo", "lets_go"))
    if prune or remove:
        _tidy(remove, prune=prune, yes=yes, as_json=as_json)
    elif lets_go:
        _let_go(lets_go, as_json=as_json)
    elif every or check or mend or undo:
        journey = Journey(State(), Sources(LiveHost(), **options), quiet=as_json, asks=not yes)
        _visit(journey, {Task.CHECK: check, Task.COMPARE: mend, Task.UNDO: undo}, yes=yes, as_json=as_json)
    else:
        found = made_environments(LiveHost())
        if as_json:
            echo_json(found)
        elif found:
            _draw(found)
        else:
            echo(as_typed(say("There are no environments yet; `assistant setup` makes one.")))


def _tidy(remove: str, *, prune: bool, yes: bool, as_json: bool) -> None:
    freed = prune_downloads() if prune else None
    removed = _remove(remove, yes=yes) if remove else None
    if as_json:
        echo_json({"removed": removed, "freed_bytes": freed})
        return
    if freed is not None:
        echo(say("Freed {size} MB.", size=freed // 10**6))
    if removed:
        echo(say("Removed {path}.", path=removed))


def _let_go(path: str, *, as_json: bool) -> None:
    freed = forget(spot_at(path).path)
    echo_json({"freed_bytes": freed}) if as_json else echo(say("Freed {size} MB.", size=freed // 10**6))


def _visit(journey: Journey, wanted: dict[Task, str], *, yes: bool, as_json: bool) -> None:
    """List the environments, or do what is wanted with one of them."""
    task, path = next(((task, path) for task, path in wanted.items() if path), (Task.SURVEY, ""))
    if path:
        journey.session.dispatch(Pick(path=str(spot_at(path).path)))
    journey.run(task)
    repair = journey.state.repair
    if task is Task.COMPARE and repair:
        if not as_json:
            _draw_repair(repair)
        if not yes and not ask(say("Change these packages now?"), default=False, err=True):
            if as_json:
                echo_json(_as_plain(repair))
                return
            raise Cancelled(_("Nothing was changed."))
        journey.run(Task.REPAIR)
    _show(journey.state, repair, path, as_json=as_json)


def _show(state: State, repair: Repair | None, path: str, *, as_json: bool) -> None:
    """Print the list, or what is known of one by now."""
    survey, known = state.survey, state.survey.of(state.picked) if state.survey else None
    if as_json:
        echo_json({**(_as_plain(repair) if repair else {}), "environment": known} if path else survey)
    elif known:
        _draw_one(known)
    elif survey:
        _draw_all(survey.environments, cut_short=survey.cut_short)
    if path and known and not known.findings:
        return


def _as_plain(repair: Repair) -> dict[str, object]:
    """Return the difference for `--json`: what the environment holds beside it is no answer."""
    difference = repair.difference
    return {
        "path": repair.path,
        "moves": difference.moves,
        "download_bytes": difference.download,
        "mends": repair.mends,
        "remains": repair.remains,
    }
