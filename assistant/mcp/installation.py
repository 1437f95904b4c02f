"""Works out an installation, or a remedy of a diagnosis, as a change that waits for consent."""

from __future__ import annotations

from pathlib import Path

from mcp.types import CallToolResult

from assistant.host.live import LiveHost
from assistant.i18n import Message, _, as_typed, sentences
from assistant.install import Prepared, spot_at
from assistant.mcp.arguments import Log, LogFile, Path_, RemedyName, log_of
from assistant.mcp.desk import Change, Desk, Here, desk_of
from assistant.mcp.work import Job, worked
from assistant.model.errors import BadInput
from assistant.model.finding import Remedy
from assistant.model.plan import Request
from assistant.model.record import replace, with_words
from assistant.model.shell import command_line
from assistant.parsers.decode import text_pieces
from assistant.session.actions import Mend
from assistant.session.answer import goes_into
from assistant.session.answers import Answer, of_preview
from assistant.session.headless import run_tasks, settle_build, with_own_python
from assistant.session.remediation import commands_for, environment_of, named, ways
from assistant.session.resume import setup_of
from assistant.session.session import Session
from assistant.session.state import Pasted, State, Task
from assistant.views import plan_title


def command(*words: str) -> str:
    """Return a command of the assistant's as this user types it."""
    return as_typed(command_line(["assistant", *words]))


def proposed(desk: Desk, job: Job, target: str, wish: Request) -> Answer:
    """Work out an installation, keep it until the user has been asked, and return what it would do."""
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
    return sentences((text, *(finding.text for finding in preview.findings if finding.wrong)))


async def propose_fix(
    context: Here, fix: RemedyName, log: Log = "", log_file: LogFile = "", environment: Path_ = ""
) -> CallToolResult:
    """Work out a remedy that `diagnose` named for this log; nothing is changed.

    It is for the environment that the log names, else for `environment`; a remedy with a plan is an installation there
    or into a new one. What needs a shell or more rights is refused: tell the user its commands.
    """

    def work(job: Job) -> object:
        given = log_of(log, log_file)
        text = given if isinstance(given, str) else "".join(text_pieces(given))
        desk, folder = desk_of(context), str(spot_at(environment).path) if environment else ""
        state = setup_of(Path(folder), LiveHost()) if folder else State()
        session = desk.session(job, replace(state, pasted=Pasted(text=text)))
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
    shown = {"fix": fix, "path": environment.path, "text": with_words(remedy.text), "commands": lines}
    return {**shown, **desk.propose(Change(question, "\n".join(lines), do))}
