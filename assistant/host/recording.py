"""Recordings of a machine: every question with its raw answer, written once and replayed anywhere."""

from __future__ import annotations

import threading

from assistant.host.base import Host
from assistant.host.live import known_of
from assistant.host.recording_filter import reduced
from assistant.i18n import _
from assistant.model.errors import BadInput
from assistant.model.machine import Answer, Exchange, Recording
from assistant.model.record import from_json, to_json
from assistant.privacy import redact


class RecordingHost(Host):
    """Passes each question on and keeps the answer; a question asked twice is passed on once."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._said: dict[tuple[str, ...], Answer] = {}
        self._lock = threading.Lock()
        self.replayed = host.replayed

    def aside(self, kind: str, *arguments: str) -> dict[str, object]:
        """Ask for facts that are not to be recorded."""
        return self._host.facts(kind, *arguments)

    def ask(self, kind: str, *arguments: str) -> Answer:
        """Answer from what was already asked, else ask and remember."""
        question = (kind, *arguments)
        if question not in self._said:
            answer = self._host.ask(kind, *arguments)
            with self._lock:
                self._said.setdefault(question, answer)
        return self._said[question]

    def said(self) -> tuple[Exchange, ...]:
        """Return all questions and answers, in a stable order."""
        return tuple(Exchange(ask=question, answer=self._said[question]) for question in sorted(self._said))


class ReplayHost(Host):
    """Answers from a recording; what was never asked is "unrecorded"."""

    replayed = True

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._said = {said.ask: said.answer for said in recording.said}

    def ask(self, kind: str, *arguments: str) -> Answer:
        """Look the question up."""
        return self._said.get((kind, *arguments), Answer(status="unrecorded"))


def read_recording(text: str, what: str) -> Recording:
    """Decode a recording; raise `BadInput` naming `what` for another schema, a cut-off file, no answers at all."""
    recording = from_json(text, Recording, what)
    if not recording.said:
        raise BadInput(
            _("{file} contains no recorded answers.", file=what),
            hint=_(
                "`assistant detect --record FILE` makes a recording; `assistant plan --machine` takes a description."
            ),
        )
    return recording


def write_recording(host: RecordingHost, label: str) -> str:
    """Return all that a host was asked as the text of a recording; names, serials, addresses and secrets removed.

    Of each answer only what the parsers read is kept (`host/recording_filter.py`); an unknown question is left out.
    """
    who = host.aside("identity")
    kept = tuple(one for said in host.said() if (one := reduced(said)) is not None)
    said = redact(kept, known=known_of(who))
    text = to_json(Recording(label=label, date=str(who.get("date", "")), said=said))
    return text.replace('{"ask"', '\n{"ask"') + "\n"  # one line per question; inside a string the quote is escaped
