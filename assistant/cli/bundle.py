"""`assistant bundle`: one folder with everything for many machines, made, checked, served and installed from."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from assistant.bundle import WHEELS, Checked, Made, Wanted, make, read_bundle
from assistant.bundle import check as checked
from assistant.catalog import load_catalog
from assistant.cli.brief import Brief
from assistant.cli.inputs import read_text
from assistant.cli.options import request_of, request_options, source_options
from assistant.cli.planning import plan_tools
from assistant.cli.terminal import echo, echo_json, json_option
from assistant.detect import detect
from assistant.host.live import LiveHost
from assistant.host.process import CancelToken, become
from assistant.host.recording import ReplayHost
from assistant.i18n import _, ngettext, say
from assistant.machines import load, shipped
from assistant.model.errors import WorkFailed
from assistant.model.machine import Machine
from assistant.model.plan import Request
from assistant.model.record import from_json
from assistant.plan import PlanInputs

SHOWN = 20  # chosen: names of files that are printed; --json has all


class Listed(Brief, frozen=True):
    """A machine of a list, what is asked for on it, and what people call it."""

    name: str = ""


@click.group()
def bundle() -> None:
    """One folder with everything for many machines, used without a network."""


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
    request, tools = request_of(options), plan_tools(options)
    wanted = [*_listed(machines, request), *(_named(name, request) for name in names)]
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
    answer = checked(folder, read_bundle(folder), CancelToken())
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
    from assistant.host.extras import require  # noqa: PLC0415 - only this needs the extra

    require("bundle")
    read_bundle(folder)
    echo(say("The index is http://{host}:{port}/simple/; Ctrl-C ends it.", host=host, port=port), err=True)
    words = ["-m", "pypiserver", "run", "--port", port, "--interface", host, "--disable-fallback", folder / WHEELS]
    become([sys.executable, *map(str, words)])


def _listed(name: str | None, request: Request) -> list[Wanted]:
    """Read a list of machines; raise `BadInput` that names the line at fault."""
    lines = enumerate(read_text(name).split("\n") if name else [], start=1)
    found = [(number, line) for number, line in lines if line.strip()]
    return [_one(from_json(line, Listed, say("Line {number}", number=at)), request, f"PC {at}") for at, line in found]


def _named(name: str, request: Request) -> Wanted:
    """Read a shipped machine, or one that a file describes."""
    if name in shipped() or not Path(name).exists():
        machine: Machine = detect(ReplayHost(load(name))).machine
        return Wanted(name, PlanInputs(machine, load_catalog(), request))
    return _one(from_json(read_text(name), Listed, name), request, Path(name).stem)


def _one(listed: Listed, request: Request, otherwise: str) -> Wanted:
    return Wanted(listed.name or otherwise, PlanInputs(listed, load_catalog(), listed.asked(request)))


def _draw_made(folder: Path, made: Made, *, as_json: bool) -> None:
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
