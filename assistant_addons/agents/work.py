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
from assistant.api.system import CancelToken, running
from assistant.api.texts import USABLE_FIELDS, Policy, as_typed, private_names_here, redact, visible

# Paths and commands, which the agent and its user must be able to use as they stand: they lose secrets alone.
WORKING = frozenset({"command", "commands", "folders", "path", "python", "removed", "target", "writes"})
BEAT_SECONDS = 2.0  # chosen: between two signs of life; clients give up on a call that shows none for a minute or so
_known = cache(private_names_here)


def run(words: Sequence[str], cancel: CancelToken, stdin: str | None = None) -> Any:  # noqa: ANN401 - what it prints
    """Run a command of the assistant in a child process and return the JSON that it prints, whatever its exit code.

    Raises `AssistantError` with its output and exit code if it prints none, and `Cancelled`.
    """
    # -P: the folder that an agent works in may hold a stranger's modules, and is no place to import from.
    command = [sys.executable, "-P", "-m", "torch_setup_assistant", *words, "--json"]
    text = stdin and stdin.encode(errors="replace").decode()
    with running(command, cancel=cancel, stdin=text) as child:
        printed = "\n".join(child)
    for start in re.finditer(r"^[\[{]", printed, re.MULTILINE):  # what it says beside that comes through the same pipe
        with suppress(ValueError):
            return json.JSONDecoder().raw_decode(printed, start.start())[0]
    error = AssistantError(printed.strip())
    error.exit_code = child.returncode
    raise error


def shown(text: Text) -> str:
    """Return a text to show the user of this machine: without secrets, all characters visible, paths as they are."""
    return visible(redact(render(text), Policy.USABLE, _known()))


def answered(value: object) -> CallToolResult:
    """Return a command's answer as an agent may see it, without what is private.

    The result holds it twice: as fields, those of a value that is no object being `answer`, and as JSON in a text.
    """
    plain = _visible(redact(value, known=_known(), usable=USABLE_FIELDS | WORKING))
    fields = plain if isinstance(plain, dict) else {"answer": plain}
    return CallToolResult(content=[TextContent(type="text", text=json.dumps(fields))], structured_content=fields)


def _visible(value: object) -> object:
    """Return a JSON value with every character of its texts visible."""
    if isinstance(value, dict):
        return {visible(str(key)): _visible(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_visible(item) for item in value]
    return visible(value) if isinstance(value, str) else value


def refused(error: AssistantError, **more: object) -> CallToolResult:
    """Return an error as a tool's result: what went wrong, the next step, the exit code, and the fields `more`."""
    text = render(sentences((as_typed(error.message), as_typed(error.hint))))
    result = answered({"error": text, "exit_code": error.exit_code, **more})
    result.is_error = True
    return result


async def worked(
    context: Context[Any, Any], name: str, work: Callable[[CancelToken], CallToolResult]
) -> CallToolResult:
    """Do the work of a tool in a thread and return its result; report progress under `name` meanwhile.

    What `work` raises becomes a result, too. If the request is cancelled, so is the token that `work` gets; its end is
    awaited all the same.
    """
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
    """Report progress every `BEAT_SECONDS` until this task is cancelled, or reporting fails; then set the token."""
    number = 0
    try:
        while True:
            await anyio.sleep(BEAT_SECONDS)
            number += 1  # each is above the last, as the protocol wants it
            await context.report_progress(number, None, f"{name}: {number * BEAT_SECONDS:.0f} s")
    finally:
        token.set()
