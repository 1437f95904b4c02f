"""The tools that work out a change and show it; it is carried out only with the user's consent (`consent.py`)."""

from __future__ import annotations

from mcp.types import CallToolResult

from assistant.i18n import _
from assistant.install import Undoable, read_marker, remove_environment, spot_at, undoable
from assistant.mcp.arguments import BackendName, Path_, Pins, Project, PythonVersion, Recipe, request_of
from assistant.mcp.desk import Change, Desk, Here, desk_of
from assistant.mcp.installation import command, proposed
from assistant.mcp.work import Job, worked
from assistant.model.errors import BadInput
from assistant.model.record import with_words
from assistant.session.actions import Pick
from assistant.session.answers import Answer, of_environment
from assistant.session.headless import run_tasks
from assistant.session.session import Session
from assistant.session.state import State, Task
from assistant.session.survey import Repair, Survey, move_words


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
