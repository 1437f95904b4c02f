"""What all tools of one server share: where packages come from, and the changes that wait for the user's consent."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context

from assistant.host.live import LiveHost
from assistant.i18n import Message, Text, _
from assistant.install import Sources, foreign_target, spot_at
from assistant.mcp.work import Job, Unconsented
from assistant.model.errors import BadInput
from assistant.model.record import replace
from assistant.session.answers import Answer
from assistant.session.headless import OnlyFinished
from assistant.session.resume import setup_of
from assistant.session.runner import InlineRunner
from assistant.session.session import Session
from assistant.session.state import Pasted, State

CONSENT_SECONDS = 900.0  # chosen: who agreed a quarter of an hour ago may have thought of something else since
MOST_CHANGES = 20  # chosen: an agent tries a few ways; older proposals are forgotten


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
