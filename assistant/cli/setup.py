"""`assistant setup` and its parts `install` and `verify`: each goes on from the last setup."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from assistant import verify as verification
from assistant.cli.draw import draw_preview, draw_verified
from assistant.cli.journey import Journey, Work, parse_target, refuse_failed, target_option, with_own_python
from assistant.cli.options import (
    combine,
    dry_run_option,
    pop_request,
    project_options,
    request_options,
    source_options,
    trust_index_option,
    with_projects,
)
from assistant.cli.terminal import echo_json, json_option, yes_option
from assistant.host.live import LiveHost
from assistant.i18n import _
from assistant.install import Sources
from assistant.model.errors import BadInput
from assistant.model.record import replace
from assistant.model.report import Level
from assistant.session.actions import with_report
from assistant.session.answers import preview_answer, setup_answer
from assistant.session.state import State, Task, required
from assistant.session.store import load_last_setup, state_for_environment

agreement_options = combine(
    yes_option(help="Answer yes to every question."),
    click.option(
        "--with-cuda-libraries",
        "with_cuda",
        is_flag=True,
        help="If no CPU build is available, take PyPI's default build with its several GB of CUDA libraries.",
    ),
    click.option("--keep", is_flag=True, help="Keep the installation even if its verification fails."),
    trust_index_option,
)


@click.command()
@click.option("--target", default="", metavar="PATH", callback=parse_target, help="Folder of the new environment.")
@click.option("--to", "folder", default="", metavar="DIR", help="Folder of the exported files.")
@request_options
@project_options
@source_options
@agreement_options
@json_option
def setup(target: str, folder: str, *, yes: bool, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - click's
    """Set up PyTorch: detect, plan, install, verify, diagnose, export."""
    journey = _prepare(target, folder, options, quiet=as_json, asks=not yes)
    journey.install(Task.DIAGNOSE, Task.EXPORT, yes=yes)
    if as_json:
        echo_json(setup_answer(journey.state))
    refuse_failed(journey.state)


@click.command()
@target_option
@request_options
@project_options
@source_options
@dry_run_option
@agreement_options
@json_option
def install(target: str, *, dry_run: bool, yes: bool, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - click's
    """Install the plan into a new environment or an existing one, and verify it."""
    aim = "" if target == "new" else target
    journey = _prepare(aim, "", options, quiet=as_json, asks=not yes, dry_run=dry_run)
    preview = journey.state.preview
    if not dry_run:
        journey.install(yes=yes)
    elif not as_json and preview:
        draw_preview(preview)
    if as_json:
        echo_json(preview_answer(preview) if dry_run else journey.state.environment)


@click.command()
@click.option(
    "--target",
    default="",
    metavar="PATH",
    callback=parse_target,
    help="The environment to check; by default the last setup's.",
)
@click.option("--device", default="", metavar="DEVICE", help="cpu, cuda, cuda:1, …; by default the plan's.")
@click.option("--full", is_flag=True, help="Check every operation, small models and speed as well (about a minute).")
@json_option
def verify(target: str, device: str, *, full: bool, as_json: bool) -> None:
    """Check that an environment really computes on its device."""
    state = state_for_environment(Path(target).expanduser().absolute()) if target else load_last_setup()
    environment, plan = required(state.environment), state.plan
    if not (device or plan):
        raise BadInput(
            _("It is not known which device {path} is for.", path=environment.path),
            hint=_("Name it, as in --device cpu."),
        )
    work = Work(quiet=as_json)
    level: Level = "full" if full else "quick"
    with work.show_progress():
        report = verification.run(environment, plan, device=device, level=level, sink=work.hear, cancel=work.cancel)
    state = with_report(state, report)
    if plan:  # what is exported next is what was verified last
        work.store.save(state)
    if as_json:
        echo_json(report)
    else:
        draw_verified(state)
    refuse_failed(state)


def _prepare(
    target: str, folder: str, options: dict[str, Any], *, quiet: bool, asks: bool, dry_run: bool = False
) -> Journey:
    """Return a journey that has detected the machine, planned, and resolved the packages; each result is printed.

    A dry run asks no question, and `quiet` prints nothing. `options` are those that the shared option groups add to the
    command; all but those of package sources are removed.
    """
    host = LiveHost()
    how = {"asks": asks and not dry_run, "all_taken": dry_run, "quiet": quiet}
    request, _project = with_projects(pop_request(options), options, options["trust_index"], **how)
    request = replace(with_own_python(request, target, host), cuda_libraries=options.pop("with_cuda"))
    trust = options.pop("trust_index")
    state = State().with_choices(target=target, folder=folder, request=request, keep=options.pop("keep"))
    journey = Journey(state, Sources(host, **options, trust=trust), quiet=quiet, asks=asks)
    journey.run(Task.DETECT, Task.PLAN, Task.PREPARE)
    return journey
