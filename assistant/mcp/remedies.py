"""The tool that works out a remedy of a diagnosis as a change that waits for consent."""

from __future__ import annotations

from mcp.types import CallToolResult

from assistant.i18n import _
from assistant.mcp.arguments import Log, LogFile, Path_, RemedyName, log_text
from assistant.mcp.desk import Change, Desk, Here, desk_of
from assistant.mcp.installation import proposed
from assistant.mcp.work import Job, worked
from assistant.model.errors import BadInput
from assistant.model.finding import Remedy
from assistant.model.plan import Request
from assistant.model.shell import command_line
from assistant.session.actions import Mend
from assistant.session.answer import goes_into
from assistant.session.answers import Answer
from assistant.session.headless import run_tasks
from assistant.session.remediation import commands_for, environment_of, named, ways
from assistant.session.session import Session
from assistant.session.state import Task


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
