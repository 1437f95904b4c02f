"""`assistant bundle`: one folder with everything for many machines, made, checked, served and installed from."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from assistant.api import AssistantError, BadInput, WorkFailed, _, ngettext, replace, say
from assistant.api.journey import (
    Brief,
    Journey,
    draw_preview,
    dry_run_option,
    find_host,
    plan_tools,
    pop_request,
    read_brief,
    read_text,
    refuse_failed,
    request_options,
    source_options,
    target_option,
)
from assistant.api.records import Backend, Request, from_json
from assistant.api.steps import (
    LiveHost,
    PlanInputs,
    Sources,
    State,
    Task,
    detect,
    load_catalog,
    recorded_machines,
    required,
)
from assistant.api.system import CancelToken, replace_process, require_extra
from assistant.api.terminal import echo, echo_json, json_option, yes_option
from assistant_addons.classroom.folder import WHEELS, Checked, Kind, check, check_files, read_bundle, read_lock
from assistant_addons.classroom.kinds import Wanted, choose, unpack_python, without_indexes
from assistant_addons.classroom.make import Made, make

SHOWN = 20  # chosen: names of files that are printed; --json has all


@click.group()
def bundle() -> None:
    """One folder with everything for many machines, used without a network."""


class Listed(Brief, frozen=True):
    """A machine of a list, what is asked for on it, and what people call it."""

    name: str = ""


def case_of(name: str, request: Request) -> PlanInputs:
    """Return what to plan for a recorded machine of that name, else for the machine that the file `name` describes.

    What the file asks for is added to the request. Raises `BadInput` for another name, and a file that cannot be read.
    """
    if name in recorded_machines() or not Path(name).exists():
        return PlanInputs(detect(find_host(name)).machine, load_catalog(), request)
    brief = read_brief(read_text(name), name)
    return PlanInputs(brief, load_catalog(), brief.joined_request(request))


def listed(name: str, request: Request) -> list[tuple[str, PlanInputs]]:
    """Return the name of each machine in a file with one JSON object per line, and what to plan for it.

    "-" is standard input. A machine without a name is "PC 3" by its line; what the line asks for is added to the
    request. Raises `BadInput` that names the line at fault.
    """
    cases = []
    for number, line in enumerate(read_text(name).split("\n"), start=1):
        if line.strip():
            brief = from_json(line, Listed, say("Line {number}", number=number))
            inputs = PlanInputs(brief, load_catalog(), brief.joined_request(request))
            cases.append((brief.name or f"PC {number}", inputs))
    return cases


@bundle.command("make")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--machines",
    metavar="FILE.jsonl",
    help="For these machines: one JSON object per line, with a name if you like ('-' for standard input).",
)
@click.option(
    "--machine",
    "names",
    multiple=True,
    metavar="NAME|FILE",
    help="For such a machine: a recorded one, or a JSON file; may be given several times.",
)
@click.option("--here", is_flag=True, help="For this machine, too.")
@request_options
@source_options
@json_option
def make_bundle(
    folder: Path,
    machines: str | None,
    names: tuple[str, ...],
    *,
    here: bool,
    as_json: bool,
    **options: Any,  # noqa: ANN401 - those of `request_options` and `source_options`
) -> None:
    """Make or go on with a bundle; what is there already is not fetched again."""
    request, tools = pop_request(options), plan_tools(options)
    wanted = [Wanted(name, case) for name, case in (listed(machines, request) if machines else ())]
    wanted += [Wanted(Path(name).stem, case_of(name, request)) for name in names]
    if here:
        wanted.append(Wanted("here", PlanInputs(detect(LiveHost()).machine, load_catalog(), request)))
    if not wanted:
        raise click.UsageError(say("Say for which machines: --machines FILE.jsonl, --machine NAME, or --here."))
    made = make(folder.expanduser().absolute(), wanted, tools, lambda text: None if as_json else echo(text, err=True))
    _draw_made(folder, made, as_json=as_json)
    if made.failed:
        raise WorkFailed(
            _("The packages of some machines could not be resolved: {names}.", names=", ".join(made.failed[:SHOWN])),
            hint=_("The bundle works for the others. Start again; nothing is fetched twice."),
        )


@bundle.command("check")
@click.argument("folder", type=click.Path(path_type=Path))
@json_option
def check_bundle(folder: Path, *, as_json: bool) -> None:
    """Compare every byte of a bundle with what was put into it."""
    answer = check(folder, read_bundle(folder), CancelToken())
    if as_json:
        echo_json(answer)
    else:
        _draw_checked(answer)
    if not answer.sound:
        raise WorkFailed(
            _("The bundle is not as it was made.") if answer.finished else _("The bundle is not finished."),
            hint=_("Run `assistant bundle make` again; only what is missing or changed is fetched."),
        )


@bundle.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--host", default="127.0.0.1", metavar="ADDRESS", help="Serve on this address; only here by default.")
@click.option("--port", default=8080, type=click.IntRange(0, 65535), help="Serve on this port.")
def serve(folder: Path, host: str, port: int) -> None:
    """Serve the wheels of a bundle as a package index."""
    require_extra("classroom")
    read_bundle(folder)
    echo(say("The index is http://{host}:{port}/simple/; Ctrl-C ends it.", host=host, port=port), err=True)
    words = ["-m", "pypiserver", "run", "--port", port, "--interface", host, "--disable-fallback", folder / WHEELS]
    replace_process([sys.executable, *map(str, words)])


@bundle.command()
@click.argument("folder", type=click.Path(path_type=Path))
@target_option
@click.option(
    "--backend",
    type=click.Choice([backend.value for backend in Backend]),
    help="Use this backend; by default the best one for the machine.",
)
@click.option("--kind", "key", default="", metavar="KEY", help="Take this kind, as bundle.json names it.")
@dry_run_option
@yes_option(help="Ask nothing; so it is without a terminal.")
@json_option
def install(
    folder: Path, target: str, backend: str | None, key: str, *, dry_run: bool, yes: bool, as_json: bool
) -> None:
    """Install what a bundle holds for this machine, and verify it; no network is needed."""
    folder = folder.expanduser().absolute()
    bundle = read_bundle(folder)
    if not bundle.made:
        raise BadInput(_("The bundle is not finished."), hint=_("Run `assistant bundle make` again."))
    sources = Sources(LiveHost(), find_links=(str(folder / WHEELS),), offline=True)
    asks = not (yes or as_json) and sys.stdin.isatty()
    state = State().with_choices(target="" if target == "new" else target)
    journey = Journey(state, sources, quiet=as_json, asks=asks)
    machine = required(journey.run(Task.DETECT).detection).machine
    kind = choose(bundle, machine, backend=Backend(backend) if backend else None, key=key)
    _prepare(journey, folder, kind, sources)
    if not dry_run:
        journey.install(yes=not asks)
    preview = journey.state.preview
    if as_json:
        shown = replace(preview, site=None) if preview else None
        made = {"environment": journey.state.environment, "report": journey.state.report}
        echo_json(shown if dry_run else {"changed": bool(preview and not preview.ready), **made})
    elif dry_run and preview:
        draw_preview(preview)
    refuse_failed(journey.state)


def _prepare(journey: Journey, folder: Path, kind: Kind, sources: Sources) -> None:
    """Prepare the installation of a kind from a bundle's folder alone, and check the files that it will install.

    If another Python than this one is needed, that of the bundle is installed first. `sources` keep to the versions of
    the kind's lock from now on. Raises as the preparation does, and `WorkFailed` for a damaged file.
    """
    if not str(LiveHost().facts("platform").get("python", "")).startswith(f"{kind.python}."):
        unpack_python(folder, kind)
    locked = read_lock(folder, kind)
    sources.keep = sources.locked = locked.versions
    journey.take(without_indexes(kind.plan))
    try:
        ready = required(journey.run(Task.PREPARE).preview).ready
    except AssistantError:
        check_files(folder, locked)  # it names the file that the resolver has stumbled over
        raise
    if not ready:  # what is there was checked when it was installed
        check_files(folder, locked)


def _draw_made(folder: Path, made: Made, *, as_json: bool) -> None:
    """Print which kinds a bundle holds and how large it is; to standard error, which machines get nothing."""
    bundle = made.bundle
    if as_json:
        named = {kind.key: kind.machines for kind in bundle.kinds}
        sums = {"files": len(bundle.files), "bytes": bundle.size, "fetched": made.fetched}
        echo_json({"folder": str(folder), **sums, "kinds": named, "without": bundle.without})
        return
    for kind in bundle.kinds:
        echo(f"{kind.title}  {', '.join(kind.machines)}")
    for one in bundle.without:
        echo(say("{machine} gets nothing: {why}", machine=one.machine, why=one.why), err=True)
    count = ngettext("{count} kind of machine", "{count} kinds of machines", len(bundle.kinds))
    files, size, fetched = len(bundle.files), bundle.size // 10**6, made.fetched // 10**6
    echo(
        say(
            "{folder} is ready: {kinds}, {files} files, {size} MB, of which {fetched} MB were fetched now.",
            folder=folder,
            kinds=count,
            files=files,
            size=size,
            fetched=fetched,
        )
    )


def _draw_checked(answer: Checked) -> None:
    """Print which files of a bundle are missing, changed or foreign, and how many are right."""
    for text, paths in (
        (_("Missing: {path}"), answer.missing),
        (_("Changed: {path}"), answer.changed),
        (_("Not of this bundle: {path}"), answer.foreign),
    ):
        for path in paths[:SHOWN]:
            echo(text.format(path=path))
        if len(paths) > SHOWN:
            echo(say("… and {count} more", count=len(paths) - SHOWN))
    size = answer.bytes // 10**6
    echo(say("{count} files are as they were made; the bundle has {size} MB.", count=answer.files, size=size))
