"""Run commands of the assistant as children, stop them with the client, and answer without what is private."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import anyio
import anyio.to_thread
from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, TextContent

from assistant.api import AssistantError, Text, render, sentences
from assistant.api.steps import record_fault
from assistant.api.system import CancelToken, stream
from assistant.api.texts import USABLE_FIELDS, Policy, as_typed, private_names_here, redact, visible

# Paths and commands, which the agent and its user must be able to use as they stand: they lose secrets alone.
WORKING = frozenset({"command", "commands", "folders", "path", "python", "removed", "target", "writes"})
BEAT_SECONDS = 2.0  # chosen: between two signs of life; clients give up on a call that shows none for a minute or so
_known = cache(private_names_here)


def run(words: Sequence[str], cancel: CancelToken, stdin: str | None = None) -> Any:  # noqa: ANN401 - what it prints
    """Run a command of the assistant's and return its JSON; raise what it says in place of that, or `Cancelled`."""
    lines: list[str] = []
    # -P: the folder that an agent works in may hold a stranger's modules, and is no place to import from.
    command = [sys.executable, "-P", "-m", "torch_setup_assistant", *words, "--json"]
    text = stdin and stdin.encode(errors="replace").decode()
    code = stream(command, lines.append, cancel=cancel, stdin=text)
    printed = "\n".join(lines)
    for start in re.finditer(r"^[\[{]", printed, re.MULTILINE):  # what it says beside that comes through the same pipe
        with suppress(ValueError):
            return json.JSONDecoder().raw_decode(printed, start.start())[0]
    error = AssistantError(printed.strip())
    error.exit_code = code
    raise error


def shown(text: Text) -> str:
    """Return what the user of this machine is asked: nothing in it is hidden, and no path is another."""
    return visible(redact(render(text), Policy.USABLE, _known()))


def answered(value: object) -> CallToolResult:
    """Return an answer as an agent may see it, and the same as JSON for clients that read only text."""
    plain = _visible(redact(value, known=_known(), usable=USABLE_FIELDS | WORKING))
    fields = plain if isinstance(plain, dict) else {"answer": plain}
    return CallToolResult(content=[TextContent(type="text", text=json.dumps(fields))], structured_content=fields)


def _visible(value: object) -> object:
    if isinstance(value, dict):
        return {visible(str(key)): _visible(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_visible(item) for item in value]
    return visible(value) if isinstance(value, str) else value


def refused(error: AssistantError, **more: object) -> CallToolResult:
    """Return a failure: what went wrong with the next step, and the exit code of the command."""
    text = render(sentences((as_typed(error.message), as_typed(error.hint))))
    result = answered({"error": text, "exit_code": error.exit_code, **more})
    result.is_error = True
    return result


async def worked(
    context: Context[Any, Any], name: str, work: Callable[[CancelToken], CallToolResult]
) -> CallToolResult:
    """Do the work of a tool in a thread, with signs of life, until it is done or the request is cancelled."""
    token = CancelToken()

    def done() -> CallToolResult:
        try:
            return work(token)
        except AssistantError as error:
            return refused(error)
        except Exception as error:  # noqa: BLE001 - an agent gets a sentence, too
            return refused(record_fault(error))

    async with anyio.create_task_group() as beside:
        beside.start_soon(_attend, context, name, token)
        result = await anyio.to_thread.run_sync(done)  # it waits for the thread even when it is cancelled
        beside.cancel_scope.cancel()
    return result


async def _attend(context: Context[Any, Any], name: str, token: CancelToken) -> None:
    """Report every few seconds that the work goes on, and stop it when this task is cancelled: with the request."""
    number = 0
    try:
        while True:
            await anyio.sleep(BEAT_SECONDS)
            number += 1  # each is above the last, as the protocol wants it
            await context.report_progress(number, None, f"{name}: {number * BEAT_SECONDS:.0f} s")
    finally:
        token.set()
