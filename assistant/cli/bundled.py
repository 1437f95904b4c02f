"""`assistant bundle which|install`: what a machine gets from a bundle, and how it gets it without a network."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from assistant.bundle import (
    REPORTS,
    WHEELS,
    Bundle,
    Kind,
    check_files,
    choose,
    read_bundle,
    read_lock,
    report_on,
    unpack_python,
    without_indexes,
    write_report,
)
from assistant.cli.draw import draw_preview
from assistant.cli.inputs import host_of, replay_option
from assistant.cli.journey import Journey, refuse_failed
from assistant.cli.options import dry_run_option, target_option, together
from assistant.cli.terminal import echo, echo_json, json_option, yes_option
from assistant.detect import detect
from assistant.host.folders import user_data
from assistant.host.live import LiveHost
from assistant.i18n import _, say
from assistant.install import Sources
from assistant.model.errors import AssistantError, BadInput
from assistant.model.machine import Machine
from assistant.model.plan import Backend
from assistant.model.record import replace
from assistant.session.state import State, Task, known

kind_options = together(
    click.option(
        "--backend",
        type=click.Choice([backend.value for backend in Backend]),
        help="Use this backend; by default the best one for the machine.",
    ),
    click.option("--kind", "key", default="", metavar="KEY", help="Take this kind, as bundle.json names it."),
)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@replay_option
@kind_options
@json_option
def which(folder: Path, replay: str | None, *, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - those of `kind_options`
    """Say what this machine, or a recorded one, gets from a bundle."""
    bundle = read_bundle(folder)
    kind = _chosen(bundle, detect(host_of(replay)).machine, options)
    if as_json:
        files = (*bundle.platforms.get(kind.platform, ()), *kind.files)
        echo_json({"key": kind.key, "title": kind.title, "platform": kind.platform, "files": files})
    else:
        echo(f"{kind.key}  {kind.title}")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@target_option
@kind_options
@click.option("--report", "to", default="", metavar="DIR", help="Write the machine's report there.")
@dry_run_option
@yes_option(help="Ask nothing; so it is without a terminal.")
@json_option
def install(folder: Path, target: str, to: str, *, dry_run: bool, yes: bool, as_json: bool, **options: Any) -> None:  # noqa: ANN401
    """Install what a bundle holds for this machine, verify it, and write a report; no network is needed."""
    folder = folder.expanduser().absolute()
    bundle = read_bundle(folder)
    if not bundle.made:
        raise BadInput(_("The bundle is not finished."), hint=_("Run `assistant bundle make` again."))
    sources = Sources(LiveHost(), find_links=(str(folder / WHEELS),), offline=True)
    asks = not (yes or as_json) and sys.stdin.isatty()
    journey = Journey(State(target="" if target == "new" else target), sources, quiet=as_json, asks=asks)
    place = Path(to).expanduser() if to else folder / REPORTS
    try:
        _prepare(journey, folder, bundle, sources, options)
        if not dry_run:
            journey.install(yes=not asks)
    except AssistantError:  # what has gone wrong is what the report is read for
        if not dry_run:
            _report(journey.state, place)
        raise
    written = None if dry_run else _report(journey.state, place)
    preview = journey.state.preview
    if as_json:
        shown = replace(preview, site=None) if preview else None
        state = journey.state
        made = {"environment": state.environment, "report": state.report, "written": str(written or "")}
        echo_json(shown if dry_run else {"changed": bool(preview and not preview.ready), **made})
    elif dry_run and preview:
        draw_preview(preview)
    refuse_failed(journey.state)


def _prepare(journey: Journey, folder: Path, bundle: Bundle, sources: Sources, options: dict[str, Any]) -> None:
    """Choose the machine's kind, and resolve its lock from the folder alone, each file of it checked."""
    machine = known(journey.run(Task.DETECT).detection).machine
    kind = _chosen(bundle, machine, options)
    if not str(LiveHost().facts("platform").get("python", "")).startswith(f"{kind.python}."):
        unpack_python(folder, kind)
    locked = read_lock(folder, kind)
    sources.keep = sources.locked = locked.versions
    journey.take(without_indexes(kind.plan))
    try:
        ready = known(journey.run(Task.PREPARE).preview).ready
    except AssistantError:
        check_files(folder, locked)  # it names the file that the resolver has stumbled over
        raise
    if not ready:  # what is there was checked when it was installed
        check_files(folder, locked)


def _chosen(bundle: Bundle, machine: Machine, options: dict[str, Any]) -> Kind:
    backend = Backend(options["backend"]) if options["backend"] else None
    return choose(bundle, machine, backend=backend, key=options["key"])


def _report(state: State, folder: Path) -> Path | None:
    """Write the machine's report into a folder, else beside the environment; return the file.

    A report that can be written nowhere is said, and is no failure: what was installed stays.
    """
    report = report_on(state, LiveHost())
    beside = Path(state.environment.path).parent if state.environment else user_data()
    for place in (folder, beside):
        try:
            written = write_report(report, place)
        except OSError:
            continue
        echo(say("The machine's report: {file}", file=written), err=True)
        return written
    echo(
        _("The machine's report can be written neither to {folder} nor to {beside}.", folder=folder, beside=beside),
        err=True,
    )
    return None
