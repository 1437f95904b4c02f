"""Run a tool's work in a thread, tell how far it is, stop it with the client, and answer without what is private."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import anyio
import anyio.to_thread
from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, TextContent

from assistant.host.live import known_here
from assistant.host.process import CancelToken
from assistant.i18n import Text, as_typed, render
from assistant.model.errors import AssistantError, BadInput
from assistant.model.event import Event, Progress
from assistant.model.record import to_json, with_words
from assistant.model.visible import visible
from assistant.privacy import USABLE_FIELDS, Known, Policy, redact
from assistant.session.answers import Answer
from assistant.session.headless import fault
from assistant.session.session import Session

# Paths and commands, which the agent and its user must be able to use as they stand: they lose secrets alone.
WORKING = frozenset({"check", "command", "commands", "folders", "path", "python", "removed", "target", "writes"})


@cache
def _known() -> Known:
    return known_here()


def cleaned(value: object) -> object:
    """Return a record or a value as an agent may see it, with sentences in the language in force."""
    return _visible(redact(with_words(value), known=_known(), usable=USABLE_FIELDS | WORKING))


def _visible(value: object) -> object:
    if isinstance(value, dict):
        return {visible(str(key)): _visible(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_visible(item) for item in value]
    return visible(value) if isinstance(value, str) else value


def shown(text: Text) -> str:
    """Return what the user of this machine is asked: nothing in it is hidden, and no path is another."""
    return visible(redact(render(text), Policy.USABLE, _known()))


def answered(value: object) -> CallToolResult:
    """Return an answer with its keys, and the same as JSON for clients that read only text."""
    plain = cleaned(value)
    fields = plain if isinstance(plain, dict) else {"answer": plain}
    return CallToolResult(content=[TextContent(type="text", text=to_json(fields))], structured_content=fields)


def refused(error: AssistantError, **more: object) -> CallToolResult:
    """Return a failure: one sentence, the next step, the exit code of the command that would have failed likewise."""
    told = {"error": as_typed(error.message), "hint": as_typed(error.hint), "exit_code": error.exit_code}
    result = answered({**told, **more})
    result.is_error = True
    return result


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
