"""Runs a tool's work in a thread, tells the client how far it is, and stops it when the client cancels or goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
from mcp.server.mcpserver import Context
from mcp.types import CallToolResult

from assistant.host.process import CancelToken
from assistant.i18n import Text, render
from assistant.mcp.answers import answered, cleaned, refused
from assistant.model.errors import AssistantError, BadInput
from assistant.model.event import Event, Progress
from assistant.session.answers import Answer
from assistant.session.headless import fault
from assistant.session.session import Session

TELL_SECONDS = 0.5  # chosen: between two messages about progress; a client shows each


class Unconsented(BadInput):
    """What was asked for starts a program that the user has not agreed to; `proposal` is what they are asked."""

    def __init__(self, message: Text, *, hint: Text, proposal: Answer) -> None:
        super().__init__(message, hint=hint)
        self.proposal = proposal


class Job:
    """The work at hand: what it told last, and how it is stopped."""

    def __init__(self) -> None:
        self.token = CancelToken()
        self._session: Session | None = None
        self._text = ""

    def tell(self, event: Event) -> None:
        """Keep what an event says; of a session's job, whichever thread it comes from."""
        if isinstance(event, Progress):
            self._text = " ".join(filter(None, map(render, (event.text, event.figures))))

    def follow(self, session: Session) -> Session:
        """Listen to a session, and stop it when this job is stopped."""
        self._session = session
        session.listen(self.tell)
        return session

    def stop(self) -> None:
        """Ask the work to stop; what it changed so far is taken back."""
        self.token.set()
        if self._session:
            self._session.cancel()

    @property
    def progress(self) -> str:
        """What is being done, and how much of it is done, as far as it is known."""
        return str(cleaned(self._text))


async def worked(context: Context[Any, Any], work: Callable[[Job], object]) -> CallToolResult:
    """Do the work of a tool and return its answer, or its failure; a fault of ours is kept in a file and told."""
    job = Job()

    def done() -> CallToolResult:
        try:
            return answered(work(job))
        except Unconsented as error:
            return refused(error, **error.proposal)
        except AssistantError as error:
            return refused(error)
        except Exception as error:  # noqa: BLE001 - an agent gets a sentence, too
            return refused(fault(error))

    async with anyio.create_task_group() as beside:
        beside.start_soon(_stop_with, job)
        beside.start_soon(_tell, context, job)
        result = await anyio.to_thread.run_sync(done)  # it waits for the thread even when it is cancelled
        beside.cancel_scope.cancel()
    return result


async def _stop_with(job: Job) -> None:
    """Stop the job as soon as this task is cancelled: with the request, with the connection, or when all is done."""
    try:
        await anyio.sleep_forever()
    finally:
        job.stop()


async def _tell(context: Context[Any, Any], job: Job) -> None:
    """Report progress whenever something is new; each number is above the last, as the protocol wants it."""
    number, said = 0, ""
    while True:
        await anyio.sleep(TELL_SECONDS)
        text = job.progress
        if text and text != said:
            number, said = number + 1, text
            await context.report_progress(number, None, text)
