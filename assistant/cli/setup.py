"""`assistant setup` and its parts `install` and `verify`: each goes on from the last setup."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import click
from packaging.requirements import Requirement

from assistant.cli.journey import Journey, agree, draw_preview, refuse_failed
from assistant.cli.options import each, request_of, request_options, source_options
from assistant.cli.terminal import echo_json
from assistant.host.live import LiveHost
from assistant.i18n import _, sentences
from assistant.install import Consent, Sources, check_requirement, find_target
from assistant.model.errors import BadInput, NothingFits
from assistant.model.record import replace
from assistant.plan.settle import brings_cuda
from assistant.session.actions import Choose
from assistant.session.nouns import State, Task
from assistant.session.resume import last_setup, setup_of

WORK = (Task.INSTALL, Task.VERIFY, Task.DIAGNOSE, Task.EXPORT)


def agreement_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how to install, and that agree beforehand."""
    cuda = click.option(
        "--with-cuda-libraries",
        "with_cuda",
        is_flag=True,
        help="Take PyPI's default build for the CPU where no CPU build can be had: several GB of CUDA come along.",
    )
    keep = click.option("--keep", is_flag=True, help="Keep the installation even when its verification fails.")
    program = click.Choice(["uv", "pip"])
    installer = click.option("--installer", type=program, default="uv", help="Which program installs.")
    built = each(lambda name: Requirement(check_requirement(name)).name)
    source = click.option(
        "--build-from-source",
        multiple=True,
        metavar="NAME",
        callback=built,
        help="Build this package where it comes only as source: that runs its author's code.",
    )
    trust = click.option(
        "--trust-index", multiple=True, metavar="URL", help="Take from this index what others hold under the same name."
    )
    command = cuda(keep(installer(source(trust(command)))))
    return click.option(
        "--yes",
        is_flag=True,
        help="Answer every question with yes, but for builds from source and names that several indexes hold.",
    )(command)


@click.command()
@click.option("--target", default="", metavar="PATH", help="Folder of the new environment.")
@click.option("--to", "folder", default="", metavar="DIR", help="Folder of the exported files.")
@request_options
@source_options
@agreement_options
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def setup(target: str, folder: str, *, yes: bool, with_cuda: bool, as_json: bool, **wishes: Any) -> None:  # noqa: ANN401 - click's
    """Do all six steps: detect, plan, install, verify, diagnose, export."""
    journey = _journey(target, folder, wishes, quiet=as_json, asks=not yes)
    _look(journey, with_cuda=with_cuda)
    agree(journey.state, yes=yes)
    journey.run(*WORK)
    if as_json:
        echo_json(journey.state)
    refuse_failed(journey.state)


@click.command()
@click.option("--target", default="", metavar="new|kernel|PATH", help="Where to install; a new environment by default.")
@request_options
@source_options
@click.option("--dry-run", is_flag=True, help="Print what would be done, and do nothing.")
@agreement_options
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def install(target: str, *, dry_run: bool, yes: bool, with_cuda: bool, as_json: bool, **wishes: Any) -> None:  # noqa: ANN401
    """Install the plan into a new environment, or into one that stands, and verify it."""
    aim = "" if target == "new" else target
    journey = _journey(aim, "", wishes, quiet=as_json, asks=not yes, look=dry_run)
    _look(journey, with_cuda=with_cuda)
    if not dry_run:
        agree(journey.state, yes=yes)
        journey.run(Task.INSTALL, Task.VERIFY)
    elif not as_json and journey.state.preview:
        draw_preview(journey.state.preview)
    if as_json:
        state = journey.state
        shown = replace(state.preview, site=None) if state.preview else None  # what stands there is no answer
        echo_json(shown if dry_run else state.environment)


@click.command()
@click.option("--target", default="", metavar="PATH", help="An environment; that of the last setup by default.")
@click.option("--device", default="", metavar="DEVICE", help="cpu, cuda, cuda:1, …; the plan's by default.")
@click.option("--full", is_flag=True, help="Check every operation, small models and speed as well (about a minute).")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def verify(target: str, device: str, *, full: bool, as_json: bool) -> None:
    """Check that an environment really computes on its device."""
    state = setup_of(Path(target).expanduser().absolute(), LiveHost()) if target else last_setup()
    if not (device or state.plan):
        path = state.environment.path if state.environment else target
        raise BadInput(_("Nothing says which device {path} is for.", path=path), hint=_("Name it, as in --device cpu."))
    level: Literal["quick", "full"] = "full" if full else "quick"
    journey = Journey(replace(state, device=device, level=level, report=None, proof=None), quiet=as_json)
    journey.run(Task.VERIFY)
    if as_json:
        echo_json(journey.state.report)
    refuse_failed(journey.state)


def _journey(
    target: str, folder: str, wishes: dict[str, Any], *, quiet: bool, asks: bool, look: bool = False
) -> Journey:
    """Begin a journey; one that only takes a `look` builds nothing and asks for no consent."""
    python = wishes["python"] or _python_of(target)
    request = request_of(wishes["backend"], wishes["pins"], python, nightly=wishes["nightly"])
    named = {name: wishes[name] for name in ("index_url", "find_links", "offline", "installer")}
    built, indexes = wishes["build_from_source"], wishes["trust_index"]
    consent = Consent(built=built, builds=not look, indexes=indexes, asks=not look)
    state = State(target=target, folder=folder, request=request, keep=wishes["keep"])
    return Journey(state, Sources(LiveHost(), **named, consent=consent), quiet=quiet, asks=asks)


def _python_of(target: str) -> str | None:
    """Give the Python of the environment that a target names, where it is another than ours."""
    host = LiveHost()
    site = find_target(target, host)[1] if target not in {"", "kernel"} else None
    own = str(host.facts("platform").get("python", ""))
    return site.minor if site and not own.startswith(f"{site.minor}.") else None


def _look(journey: Journey, *, with_cuda: bool) -> None:
    """Detect, plan and work out the packages; gigabytes that nobody needs are never taken by --yes alone."""
    planning = journey.run(Task.DETECT, Task.PLAN).planning
    plans = planning.plans if planning else ()
    if plans and brings_cuda(plans[-1]):
        if with_cuda:
            journey.session.dispatch(Choose(index=len(plans) - 1))
        elif journey.state.plan == plans[-2]:
            raise NothingFits(
                sentences((_("No CPU build of torch can be had from here."), *plans[-2].warnings)),
                hint=_(
                    "Restore the connection, name a source with --index-url or --find-links, or take PyPI's build "
                    "and its several GB of CUDA with --with-cuda-libraries."
                ),
            )
    journey.run(Task.PREPARE)
