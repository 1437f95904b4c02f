"""Works out an installation as a change that waits for consent."""

from __future__ import annotations

from assistant.host.live import LiveHost
from assistant.i18n import Message, _, as_typed, sentences
from assistant.install import Prepared
from assistant.mcp.desk import Change, Desk
from assistant.mcp.work import Job
from assistant.model.plan import Request
from assistant.model.shell import command_line
from assistant.session.answers import Answer, of_preview
from assistant.session.headless import run_tasks, settle_build, with_own_python
from assistant.session.state import State, Task
from assistant.views import plan_title


def command(*words: str) -> str:
    """Return a command of the assistant's as this user types it."""
    return as_typed(command_line(["assistant", *words]))


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
