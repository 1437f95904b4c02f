"""`assistant bundle`: one folder with everything for many machines, made, checked, served and installed from."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from assistant.bundle import WHEELS, Checked, Made, Wanted, make, read_bundle
from assistant.bundle import check as checked
from assistant.catalog import load_catalog
from assistant.cli.bundled import install, which
from assistant.cli.options import request_of, request_options, source_options
from assistant.cli.planning import plan_tools
from assistant.cli.terminal import echo, echo_json, json_option
from assistant.cli.wanted import case_of, listed
from assistant.detect import detect
from assistant.host.live import LiveHost
from assistant.host.process import CancelToken, become
from assistant.i18n import _, ngettext, say
from assistant.model.errors import WorkFailed
from assistant.plan import PlanInputs

SHOWN = 20  # chosen: names of files that are printed; --json has all


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


bundle.add_command(which)
bundle.add_command(install)


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
