"""What leaves this machine for an agent: plain values without secrets, private names and hidden characters."""

from __future__ import annotations

from functools import cache

from mcp.types import CallToolResult, TextContent

from assistant.host.identity import known_here
from assistant.i18n import Text, as_typed, render
from assistant.model.errors import AssistantError
from assistant.model.record import to_json, with_words
from assistant.model.visible import visible
from assistant.privacy import USABLE_FIELDS, Known, Policy, redact

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
