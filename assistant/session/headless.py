"""A setup without pages: what blocks a task, why one failed, and what is settled without asking."""

from __future__ import annotations

import traceback

from assistant.host.base import Host
from assistant.i18n import Text, _, sentences
from assistant.install import KERNEL, find_target
from assistant.model.errors import AssistantError, BadInput, NothingFits, WorkFailed
from assistant.model.plan import Request
from assistant.model.record import replace
from assistant.plan import brings_cuda
from assistant.session.actions import Choose
from assistant.session.session import Session
from assistant.session.state import Phase, State, Task
from assistant.session.store import Store


class OnlyFinished(Store):
    """Keeps the last setup until another environment stands: what is refused or only tried replaces nothing."""

    def save(self, state: State) -> Text:
        """Write a state that has a plan and the environment made for it."""
        return super().save(state) if state.environment and state.plan else ""


def refuse_blocked(session: Session, task: Task) -> None:
    """Raise `BadInput` where a task cannot begin now."""
    if reasons := session.blockers(task):
        raise BadInput(sentences(reasons), hint=_("Run `assistant setup` first."))


def failure_of(state: State, task: Task) -> AssistantError | None:
    """Return why a task failed, with its exit code; None where it did not."""
    status = state.environments.status if task.is_errand else state.status(task.step)
    if status.phase is not Phase.FAILED:
        return None
    failure = AssistantError(status.message, hint=status.hint)
    failure.exit_code = status.exit_code or 1
    return failure


def with_own_python(request: Request, target: str, host: Host) -> Request:
    """Ask for the Python of the environment that stands at a target, which keeps it; a request's own comes first."""
    if request.python or target in {"", KERNEL}:
        return request
    site, own = find_target(target, host, whole=True)[1], str(host.facts("platform").get("python", ""))
    return replace(request, python=site.minor) if site and not own.startswith(f"{site.minor}.") else request


def settle_build(session: Session, *, with_cuda: bool) -> None:
    """Take PyPI's default build with its gigabytes of CUDA, the last of the plans, only `with_cuda`.

    Raises `NothingFits` where no CPU build can be had, and nobody has asked for that one.
    """
    plans = session.state.planning.plans if session.state.planning else ()
    if not (plans and brings_cuda(plans[-1])):
        return
    if with_cuda:
        session.dispatch(Choose(index=len(plans) - 1))
    elif session.state.plan == plans[-2]:
        raise NothingFits(
            sentences((_("No CPU build of torch is available from here."), *plans[-2].warnings)),
            hint=_(
                "Restore the connection, name another source, or take PyPI's build and its several GB of CUDA.",
                option="--index-url, --find-links, --with-cuda-libraries",
            ),
        )


def fault(error: BaseException) -> WorkFailed:
    """Keep the traceback of a fault of ours in a file, and say where."""
    path = Store().keep_fault("".join(traceback.format_exception(error)))
    message = _("The assistant itself failed: {kind}: {reason}.", kind=type(error).__name__, reason=error)
    return WorkFailed(message, hint=_("Please report it with the file {path}.", path=path))
