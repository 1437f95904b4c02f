"""The tools about environments, which answer what `assistant envs` prints with `--json`."""

from __future__ import annotations

from mcp.types import CallToolResult

from assistant.install import spot_at
from assistant.mcp.arguments import Line, Path_
from assistant.mcp.desk import Here, desk_of
from assistant.mcp.installation import command
from assistant.mcp.work import Job, worked
from assistant.session.actions import LookIn, Pick
from assistant.session.answers import of_environment, of_environments
from assistant.session.headless import run_tasks
from assistant.session.state import State, Task
from assistant.session.survey import Survey


async def list_environments(context: Here, folder: Line = "") -> CallToolResult:
    """List the Python environments on this machine (also below `folder`), judged by their files: `light`, `state`.

    Nothing in them is started. `light` is good, warning, bad or unknown.
    """

    def work(job: Job) -> object:
        session = desk_of(context).session(job, State())
        session.dispatch(LookIn(folder=folder))
        return of_environments(run_tasks(session, Task.SURVEY).survey or Survey())

    return await worked(context, work)


async def check_environment(context: Here, path: Path_) -> CallToolResult:
    """Look into one environment: what it holds, what is wrong with it, and whether its torch computes.

    That runs its Python. One that the assistant did not make needs the user's consent first: the answer is an error
    that holds `change` for `ask_user`.
    """

    def work(job: Job) -> object:
        desk, folder = desk_of(context), str(spot_at(path).path)
        desk.admit(folder, command("envs", "--check", folder))
        session = desk.session(job, State())
        session.dispatch(Pick(path=folder))
        state = run_tasks(session, Task.CHECK)
        survey = state.survey or Survey()
        known = survey.of(state.picked)
        return of_environment(known, survey) if known else {}

    return await worked(context, work)
