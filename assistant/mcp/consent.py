"""The tools that ask the user for consent, and that carry out what they agreed to."""

from __future__ import annotations

from typing import Annotated

from mcp.server.mcpserver import AcceptedElicitation, Elicit, ElicitationResult, Resolve
from mcp.types import CallToolResult
from pydantic import BaseModel, Field, StrictBool

from assistant.i18n import _, sentences
from assistant.mcp.answers import answered, refused, shown
from assistant.mcp.arguments import Line
from assistant.mcp.desk import Here, desk_of
from assistant.mcp.work import worked
from assistant.model.errors import AssistantError, BadInput

ChangeName = Annotated[Line, Field(description="The `change` that a proposal answered")]
Token = Annotated[Line, Field(description="The `consent` that `ask_user` answered")]


class Agreement(BaseModel):
    """What the user answers."""

    agree: StrictBool


def _question(context: Here, change: ChangeName) -> Elicit[Agreement] | Agreement:
    """Ask the user; nobody is asked about a change that is not there, or by a client that cannot ask."""
    try:
        asked = desk_of(context).proposed(change).question
    except BadInput:
        return Agreement(agree=False)
    if not _can_ask(context):
        return Agreement(agree=False)
    text = sentences((_("An AI agent wants to change something on this computer."), asked))
    return Elicit(shown(text), Agreement)


def _can_ask(context: Here) -> bool:
    """Return whether the client can put a question to its user; before there were other kinds, `{}` meant a form."""
    known = context.client_capabilities
    kinds = known.elicitation if known else None
    return kinds is not None and (kinds.form is not None or kinds.url is None)


async def ask_user(
    context: Here, change: ChangeName, answer: Annotated[ElicitationResult[Agreement], Resolve(_question)]
) -> CallToolResult:
    """Ask the user whether a proposed change may be carried out, by a form that the client shows.

    The answer holds `consent`, a token for `carry_out`, if they agree. Where the client cannot ask, it holds `command`:
    tell the user to type it, and do not run it yourself.
    """
    try:
        kept = desk_of(context).proposed(change)
    except BadInput as error:
        return refused(error)
    if not _can_ask(context):
        message = _("This program cannot ask its user for consent, so nothing is changed from here.")
        return refused(BadInput(message, hint=_("Type the command in a terminal.")), command=kept.command)
    if isinstance(answer, AcceptedElicitation) and answer.data.agree:
        return answered({"change": change, "agreed": True, "consent": desk_of(context).agree(change)})
    return answered({"change": change, "agreed": False})


async def carry_out(context: Here, consent: Token) -> CallToolResult:
    """Carry out the change that the user agreed to, once; it is taken back whole if it fails or is cancelled.

    The answer is what the command of this change prints with `--json`. A long installation reports progress.
    """
    try:
        change = desk_of(context).redeem(consent)
    except AssistantError as error:
        return refused(error)
    return await worked(context, change.do)
