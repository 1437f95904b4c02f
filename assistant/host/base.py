"""The door to the machine: questions and their raw answers, whether the live machine answers or a recording."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod

import msgspec

from assistant.model.machine import Answer, Exchange, Recording


class Host(ABC):
    """A machine to which questions can be put. Asking raises nothing: an answer's status says what failed."""

    replayed: bool = False

    @abstractmethod
    def ask(self, kind: str, *arguments: str) -> Answer:
        """Return the answer to one question; raise nothing: its status says what failed.

        `kind` is the name of a method below that takes the same arguments, or one of the following: `platform`,
        `server`, `memory`, `disk PATH`, `folder PATH`, `packages`, `kernels`, `nvml`, `dxgi`, `identity` are answered
        by a JSON object as the answer's text; `pci`, `groups`, `file_version PATH` by plain text.
        """

    def run(self, *argv: str) -> Answer:
        """Run a read-only command in English, for 8 seconds at most; return its output: stdout, then stderr."""
        return self.ask("run", *argv)

    def read(self, path: str) -> Answer:
        """Return the text of a small file (1 MiB at most, undecodable bytes replaced)."""
        return self.ask("read", path)

    def names(self, path: str) -> Answer:
        """Return the names in a directory, one per line, sorted."""
        return self.ask("names", path)

    def link(self, path: str) -> Answer:
        """Return the real path of a path, with all links resolved."""
        return self.ask("link", path)

    def access(self, path: str) -> Answer:
        """Return whether this user may read and write a path, as an answer's status: "ok", "denied" or "missing"."""
        return self.ask("access", path)

    def which(self, name: str) -> Answer:
        """Return the path of an executable on PATH."""
        return self.ask("which", name)

    def variable(self, name: str) -> Answer:
        """Return the value of an environment variable."""
        return self.ask("variable", name)

    def registry(self, key: str) -> Answer:
        """Return a Windows registry key with its direct subkeys, as JSON `{"values": {…}, "keys": {name: {…}}}`."""
        return self.ask("registry", key)

    def facts(self, kind: str, *arguments: str) -> dict[str, object]:
        """Return the JSON object that answers a question, as a dict; {} if the answer's status is not "ok"."""
        answer = self.ask(kind, *arguments)
        return msgspec.json.decode(answer.text, type=dict[str, object]) if answer else {}


class RecordingHost(Host):
    """Passes each question on to another host once, and keeps the answer for when it is asked again."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._answers: dict[tuple[str, ...], Answer] = {}
        self._lock = threading.Lock()
        self.replayed = host.replayed

    def ask_unrecorded(self, kind: str, *arguments: str) -> dict[str, object]:
        """Return facts from the other host without recording them."""
        return self._host.facts(kind, *arguments)

    def ask(self, kind: str, *arguments: str) -> Answer:
        """Return the answer recorded for a question; the first time, ask the other host and record its answer."""
        question = (kind, *arguments)
        if question not in self._answers:
            answer = self._host.ask(kind, *arguments)
            with self._lock:
                self._answers.setdefault(question, answer)
        return self._answers[question]

    def exchanges(self) -> tuple[Exchange, ...]:
        """Return all questions that were asked so far with their answers, sorted by question."""
        return tuple(Exchange(ask=question, answer=self._answers[question]) for question in sorted(self._answers))


class ReplayHost(Host):
    """Answers from a recording; a question that is not in it has the status "unrecorded"."""

    replayed = True

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._answers = {said.ask: said.answer for said in recording.said}

    def ask(self, kind: str, *arguments: str) -> Answer:
        """Return the recorded answer to a question; "unrecorded" if there is none."""
        return self._answers.get((kind, *arguments), Answer(status="unrecorded"))
