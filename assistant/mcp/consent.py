"""Changes that wait for the user's consent: proposed, asked about, agreed to by a token, and carried out once."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from mcp.server.mcpserver import AcceptedElicitation, Context, Elicit, ElicitationResult, Resolve
from mcp.types import CallToolResult
from pydantic import BaseModel, Field, StrictBool

from assistant.host.live import LiveHost
from assistant.i18n import Message, Text, _, as_typed, sentences
from assistant.install import Sources, foreign_target, spot_at
from assistant.mcp.arguments import Line
from assistant.mcp.work import Job, Unconsented, answered, refused, shown, worked
from assistant.model.errors import AssistantError, BadInput
from assistant.model.record import replace
from assistant.model.shell import command_line
from assistant.session.answers import Answer
from assistant.session.headless import OnlyFinished
from assistant.session.session import InlineRunner, Session
from assistant.session.state import Pasted, State
from assistant.session.store import setup_of

CONSENT_SECONDS = 900.0  # chosen: who agreed a quarter of an hour ago may have thought of something else since
MOST_CHANGES = 20  # chosen: an agent tries a few ways; older proposals are forgotten


def command(*words: str) -> str:
    """Return a command of the assistant's as this user types it."""
    return as_typed(command_line(["assistant", *words]))


@dataclass(frozen=True)
class Change:
    """A change that was shown: what the user is asked, the command that does the same, and how it is done."""

    question: Message
    command: str
    do: Callable[[Job], object]


@dataclass
class Desk:
    """The options of the server, and its changes: proposed ones by their names, agreed ones by their tokens."""

    options: dict[str, Any] = field(default_factory=dict)
    _proposed: dict[str, Change] = field(default_factory=dict)
    _agreed: dict[str, tuple[Change, float]] = field(default_factory=dict)
    _trusted: set[Path] = field(default_factory=set)

    def sources(self) -> Sources:
        """Return this user's package sources, as their settings and the server's options say."""
        return Sources(LiveHost(), **self.options)

    def session(self, job: Job, state: State) -> Session:
        """Begin a setup on this machine that nobody guides; what a running task would ask is answered with no."""
        return job.follow(Session(LiveHost(), InlineRunner(), OnlyFinished(), state, sources=self.sources()))

    def session_for(self, job: Job, log: str, environment: str) -> tuple[Session, str]:
        """Begin with a log to diagnose, and the environment that it is of, if one is named; return its folder, too."""
        folder = str(spot_at(environment).path) if environment else ""
        state = setup_of(Path(folder), LiveHost()) if folder else State()
        return self.session(job, replace(state, pasted=Pasted(text=log))), folder

    def propose(self, change: Change) -> Answer:
        """Keep a change until the user has been asked; return its name, and the command that does the same."""
        name = secrets.token_hex(4)
        self._proposed[name] = change
        for old in list(self._proposed)[:-MOST_CHANGES]:
            del self._proposed[old]
        return {"change": name, "command": change.command}

    def admit(self, target: str, command: str) -> None:
        """Raise `Unconsented` where looking at a target starts a Python of somebody else's, until the user agrees.

        `command` is what the user can type in place of what was asked for.
        """
        found = foreign_target(target, LiveHost())
        if found is None or found in self._trusted:
            return

        def do(_job: Job) -> object:
            self._trusted.add(found)
            return {"path": str(found), "trusted": True}

        question = _(
            "Run the Python in {path}, to see what is installed there? The assistant did not make this environment: "
            "agree only if you trust its files.",
            path=found,
        )
        raise Unconsented(
            _("This runs the Python in {path}, and the assistant did not make that environment.", path=found),
            hint=_("Ask the user for consent, carry it out, and call this tool again."),
            proposal=self.propose(Change(question, command, do)),
        )

    def proposed(self, name: str) -> Change:
        """Return a change by its name; raise `BadInput` where none of that name waits."""
        if name not in self._proposed:
            raise BadInput(_("No change of that name is proposed."), hint=_("Propose it, and ask for consent then."))
        return self._proposed[name]

    def agree(self, name: str) -> str:
        """Return the token by which a change that the user agreed to can be carried out once."""
        token = secrets.token_urlsafe(24)
        self._agreed[token] = (self._proposed.pop(name), time.monotonic())
        return token

    def redeem(self, token: str) -> Change:
        """Return the change of a token, which counts no more then; raise `BadInput` for any other text."""
        change, at = self._agreed.pop(token, (None, 0.0))
        reason: Text = ""
        if change is None:
            reason = _("This is no consent of the user's, or it was used already.")
        elif time.monotonic() - at > CONSENT_SECONDS:
            reason = _("The user's consent is too old.")
        if change is None or reason:
            raise BadInput(reason, hint=_("Propose the change, and ask the user for consent."))
        return change


Here = Context[Desk, Any]


def desk_of(context: Here) -> Desk:
    """Return what the server of a request shares among its tools."""
    return context.request_context.lifespan_context


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
