"""The tools that work out a change and show it; it is carried out only with the user's consent (`consent.py`)."""

from __future__ import annotations

from mcp.types import CallToolResult

from assistant.host.live import LiveHost
from assistant.i18n import Message, _, sentences
from assistant.install import Prepared, Undoable, read_marker, remove_environment, spot_at, undoable
from assistant.mcp.arguments import (
    BackendName,
    Log,
    LogFile,
    Path_,
    Pins,
    Project,
    PythonVersion,
    Recipe,
    RemedyName,
    log_text,
    request_of,
)
from assistant.mcp.consent import Change, Desk, Here, command, desk_of
from assistant.mcp.work import Job, worked
from assistant.model.errors import BadInput
from assistant.model.finding import Remedy
from assistant.model.plan import Request
from assistant.model.record import with_words
from assistant.model.shell import command_line
from assistant.session.actions import Mend, Pick
from assistant.session.answers import Answer, of_environment, of_preview
from assistant.session.headless import run_tasks, settle_build, with_own_python
from assistant.session.remediation import commands_for, environment_of, goes_into, named, ways
from assistant.session.session import Session
from assistant.session.state import State, Task
from assistant.session.survey import Repair, Survey, move_words
from assistant.views import plan_title


def proposed(desk: Desk, job: Job, target: str, wish: Request) -> Answer:
    """Work out an installation, keep it until the user has been asked, and return what it would do."""
    if target:
        desk.admit(target, command(*_words(target, wish)))
    wish = with_own_python(wish, target, LiveHost())
    session = desk.session(job, State(target=target, request=wish))
    run_tasks(session, Task.DETECT, Task.PLAN)
    settle_build(session, with_cuda=False)
    preview = run_tasks(session, Task.PREPARE).preview
    if preview is None:
        return {}

    def do(later: Job) -> object:
        return run_tasks(later.follow(session), Task.INSTALL, Task.VERIFY).environment

    return {**of_preview(preview), **desk.propose(Change(_asked(preview), command(*_words(target, wish)), do))}


def _words(target: str, wish: Request) -> list[str]:
    """Return the command that installs the same."""
    chosen = {"--target": target, "--python": wish.python, "--for": wish.bundle, "-r": wish.project}
    chosen["--backend"] = wish.backend and wish.backend.value
    words = [word for option, value in chosen.items() if value for word in (option, value)]
    pins = [word for pin in wish.pins for word in ("--pin", pin)]
    return ["install", *words, *pins, *(["--nightly"] if wish.nightly else [])]


def _asked(preview: Prepared) -> Message:
    """Say what an installation would do, and what the user should know first."""
    held = preview.site.versions if preview.site else {}
    new = preview.resolution.changes(held)
    told = {"plan": plan_title(preview.plan), "path": preview.target, "size": preview.download / 1e6}
    if preview.site:
        names = ", ".join(f"{one.name} {one.version}" for one in new)
        text = _(
            "Change the environment {path} for {plan}? It gets {names}; {size:.0f} MB to download.", **told, names=names
        )
    else:
        text = _(
            "Install {plan} into the new environment {path}? That is {count} packages, {size:.0f} MB to download.",
            **told,
            count=len(new),
        )
    beside = _("Asked for beside PyTorch: {names}.", names=", ".join(preview.plan.asked)) if preview.plan.asked else ""
    return sentences((text, beside, *(finding.text for finding in preview.findings if finding.wrong)))


async def propose_install(  # noqa: PLR0913 - what may be asked for
    context: Here,
    environment: Path_ = "",
    backend: BackendName = None,
    pins: Pins = [],  # noqa: B006 - never changed
    python: PythonVersion = "",
    recipe: Recipe = "",
    project: Project = "",
    *,
    nightly: bool = False,
) -> CallToolResult:
    """Work out an installation of PyTorch into a new environment, or into `environment`; nothing is changed.

    The answer shows every package, size and file, and names the change (`change`): pass that to `ask_user`.
    """

    def work(job: Job) -> object:
        wish = request_of(backend=backend, pins=pins, python=python, nightly=nightly, recipe=recipe, project=project)
        return proposed(desk_of(context), job, environment, wish)

    return await worked(context, work)


async def propose_mend(context: Here, path: Path_) -> CallToolResult:
    """Work out which packages to change so that an environment is mended; nothing is changed.

    `moves` are the packages that change, `mends` the problems that this solves, `remains` those that it does not.
    """

    def work(job: Job) -> object:
        desk, folder = desk_of(context), str(spot_at(path).path)
        desk.admit(folder, command("envs", "--mend", folder))
        session = desk.session(job, State())
        session.dispatch(Pick(path=folder))
        repair = run_tasks(session, Task.COMPARE).repair
        moves = tuple(map(move_words, repair.difference.moves)) if repair else ()

        def do(later: Job) -> object:
            run_tasks(later.follow(session), Task.REPAIR)
            return _judged(session, repair)

        question = _("Change packages in {path}: {moves}?", path=folder, moves=moves)
        return {**_judged(session, repair), **desk.propose(Change(question, command("envs", "--mend", folder), do))}

    return await worked(context, work)


async def propose_undo(context: Here, path: Path_) -> CallToolResult:
    """Show what undoing the last change of an environment would put back; nothing is changed."""

    def work(_job: Job) -> object:
        folder = spot_at(path).path
        kept = undoable(folder)
        if kept is None:
            raise BadInput(_("No change of {path} can be undone.", path=folder))
        return {"undo": with_words(kept), **_undo(desk_of(context), str(folder), kept)}

    return await worked(context, work)


def _undo(desk: Desk, folder: str, kept: Undoable) -> Answer:
    def do(job: Job) -> object:
        session = desk.session(job, State())
        session.dispatch(Pick(path=folder))
        run_tasks(session, Task.UNDO)
        return _judged(session, None)

    moves = tuple(map(move_words, kept.moves))
    question = _("Undo the last change in {path}? It was: {moves}.", path=folder, moves=moves)
    return desk.propose(Change(question, command("envs", "--undo", folder), do))


async def propose_remove(context: Here, path: Path_) -> CallToolResult:
    """Show which environment would be removed with all that is in it; only those that the assistant made can be."""

    def work(_job: Job) -> object:
        folder = str(spot_at(path).path)
        if read_marker(spot_at(path).path) is None:
            raise BadInput(
                _("'{name}' is not an environment that the assistant made.", name=folder),
                hint=_("Name it by its folder; `assistant envs` lists them all."),
            )

        def do(_later: Job) -> object:
            return {"removed": str(remove_environment(folder)), "freed_bytes": None}

        question = _("Remove {name} and all that is in it?", name=folder)
        asked = desk_of(context).propose(Change(question, command("envs", "--remove", folder), do))
        return {"path": folder, **asked}

    return await worked(context, work)


def _judged(session: Session, repair: Repair | None) -> Answer:
    """Return what is known of the environment that the session is about, and the change that was worked out for it."""
    survey = session.state.survey or Survey()
    known = survey.of(session.state.picked)
    return of_environment(known, survey, repair) if known else {}


async def propose_fix(
    context: Here, fix: RemedyName, log: Log = "", log_file: LogFile = "", environment: Path_ = ""
) -> CallToolResult:
    """Work out a remedy that `diagnose` named for this log; nothing is changed.

    It is for the environment that the log names, else for `environment`; a remedy with a plan is an installation there
    or into a new one. What needs a shell or more rights is refused: tell the user its commands.
    """

    def work(job: Job) -> object:
        desk = desk_of(context)
        session, folder = desk.session_for(job, log_text(log, log_file), environment)
        state = run_tasks(session, Task.DETECT, Task.DIAGNOSE)
        remedy = named(state).get(fix)
        if remedy is None:
            raise BadInput(
                _("The diagnosis has no remedy of that name."),
                hint=_("It has: {names}.", names=", ".join(named(state)) or _("none")),
            )
        if remedy.plan:
            wish = Request(backend=remedy.plan.backend, python=remedy.plan.python)
            return proposed(desk, job, goes_into(fix, state) or folder, wish)
        return _remedy(desk, session, fix, remedy)

    return await worked(context, work)


def _remedy(desk: Desk, session: Session, fix: str, remedy: Remedy) -> Answer:
    """Keep the commands of a remedy until the user has been asked, and return them as they would run."""
    environment = environment_of(session.state, fix)
    commands = commands_for(remedy, environment) if environment else None
    if environment is None or commands is None or fix not in ways(session.state):
        hint = _("Name the environment, or tell the user the commands.") if remedy.commands else _("Try another one.")
        raise BadInput(_("This fix can't be applied here."), hint=hint)
    lines = [command_line(words) for words in commands]
    lines += [f"{name}={value}" for name, value in remedy.env.items()]

    def do(job: Job) -> object:
        session.dispatch(Mend(way=fix))
        done = run_tasks(job.follow(session), Task.MEND).mended[fix]
        return {"fix": fix, "outcome": done.outcome.value, "text": done.text, "findings": done.raised or ()}

    question = _("Run in {path}: {commands}?", path=environment.path, commands=tuple(lines))
    shown = {"fix": fix, "path": environment.path, "text": remedy.text, "commands": lines}
    return {**shown, **desk.propose(Change(question, "\n".join(lines), do))}
