"""What the children of a verification have reported so far, and how one of them is heard, limited and given up."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence

import msgspec

from assistant.host.process import CancelToken
from assistant.i18n import Message, Text, _, lines, render
from assistant.model.checks import check_title, checked_package
from assistant.model.event import Event, FindingRaised, LogLine, Part, Progress, Sink, Step
from assistant.model.record import Record, decoder, replace
from assistant.model.report import RIGHT, Check, Status
from assistant.privacy import Lines, Policy
from assistant.verify.messages import ending, finding_of, sentence

FIRST = {"import", "device", "copy"}  # a device that dies at these will not do better in another process
MEMORY_EXIT = 75  # what child.py ends with when a check took too much memory
# Chosen: a library's last words before a crash fit, and a flood of them does not fill the report.
STRAY_LINES = 20
MOST_TIMEOUTS = 3  # chosen: checks that do not end, from which the device hangs and not one operator
LINE_LIMIT = 2000


class Clock(CancelToken):
    """Stops a child when the user asks for it, when its check has reached the time limit, or when it has answered.

    The last is for what a library leaves running behind the answer: it would keep the child's output open.
    """

    def __init__(self, cancel: CancelToken | None, limit: float) -> None:
        super().__init__()
        self._cancel, self.limit = cancel, limit
        self.restart()

    def restart(self) -> None:
        """Begin the time of another check."""
        self.expired = False
        self._deadline = time.monotonic() + self.limit

    def __bool__(self) -> bool:
        if self._cancel or super().__bool__():
            return True
        self.expired = self.expired or time.monotonic() > self._deadline
        return self.expired


class Results:
    """The results of all checks, which several children may report at once."""

    def __init__(self, device: str, keys: Sequence[str], sink: Sink) -> None:
        self.facts: dict[str, str] = {}
        self._device, self._keys, self._sink = device, tuple(keys), sink
        self._done: dict[str, Check] = {}
        self._telling = threading.Lock()

    def open_keys(self, among: Iterable[str]) -> list[str]:
        """Return the checks without a result among some, in order."""
        return [key for key in among if key not in self._done]

    def ready(self) -> list[str]:
        """Return the checks that passed, on which others may rest."""
        return [key for key, check in self._done.items() if check.status in RIGHT]

    def have_result(self, keys: set[str]) -> bool:
        """Return whether all of some checks have a result."""
        return self._done.keys() >= keys

    def checks(self) -> tuple[Check, ...]:
        """Return all results in the order of the checks."""
        return tuple(self._done[key] for key in self._keys)

    def skip(self, keys: Iterable[str], why: Text) -> None:
        """Skip the checks among some that have no result."""
        for key in self.open_keys(keys):
            self.finish(Check(key=key, status=Status.SKIPPED, detail=why))

    def finish(self, check: Check) -> None:
        """Take a result, the first one of each check, and raise the finding that follows from it."""
        if check.key not in self._keys or check.key in self._done:
            return
        self._done[check.key] = check
        if finding := finding_of(check, self._device):
            self.tell(FindingRaised(step=Step.VERIFY, finding=finding))

    def progress(self, text: Message) -> None:
        """Report how many checks have ended, with what is done now."""
        done, total = len(self._done), len(self._keys)
        self.tell(Progress(step=Step.VERIFY, text=text, done=done, total=total, unit="checks", part=Part.CHECK))

    def tell(self, event: Event) -> None:
        """Hand an event on, one at a time."""
        with self._telling:
            self._sink(event)


class _Line(Record, frozen=True):
    """One line that the child wrote; what does not decode as one comes from a library.

    {"start": "matmul"}
    {"check": {"key": "matmul", "status": "passed", "seconds": 0.0003, "error": 2.1e-07, "tolerance": 0.0001}}
    """

    facts: dict[str, str] = {}
    start: str | None = None
    check: Check | None = None
    reason: str = ""
    values: dict[str, str | int | float] = {}


class Child:
    """The process that runs some checks, and the one that goes on after it: what it says, and how it ends."""

    def __init__(self, results: Results, keys: Sequence[str], clock: Clock) -> None:
        self.keys, self.clock = tuple(keys), clock
        self._results = results
        self._left = len(keys)
        self._timeouts = 0
        self._cleaned = Lines(Policy.USABLE)
        self._stray: deque[str] = deque(maxlen=STRAY_LINES)

    def open_keys(self) -> list[str]:
        """Return its checks without a result, in order."""
        return self._results.open_keys(self.keys)

    def hear(self, text: str) -> None:
        """Read one line of the child's output."""
        try:
            line = decoder(_Line).decode(text)
        except msgspec.DecodeError:
            return self._hear_stray(text)
        self._results.facts.update(line.facts)
        if line.start is not None:
            self.clock.restart()
            self._stray.clear()
            self._results.progress(check_title(line.start))
        if line.check is not None and line.check.key in self.keys:
            detail = lines((sentence(line.reason, line.values), line.check.detail))
            self._results.finish(replace(line.check, detail=detail))
            if checked_package(line.check.key):
                self.clock.set()
        return None

    def end(self, code: int) -> None:
        """Set the status of the check during which the child died; those after it are left to another child."""
        left, self._left = self._left, len(self.open_keys())
        if not self._left and code:
            self._results.facts["ending"] = render(ending(code))
        elif self._left and (code != MEMORY_EXIT or self._left == left):
            self._stop(Status.FAILED, ending(code), go_on=self._results.have_result(FIRST))

    def stopped(self) -> bool:
        """Set the status of the check that reached its time limit; False if the user stopped.

        Those after it are left to another child, unless the device hangs. A child that was stopped after its answer has
        nothing left to do.
        """
        if not self.clock.expired:
            return not self.open_keys()
        self._timeouts += 1
        go_on = self._results.have_result(FIRST) and self._timeouts < MOST_TIMEOUTS
        text = _("It did not end within {seconds:g} seconds.", seconds=self.clock.limit)
        self._stop(Status.TIMEOUT, text, go_on=go_on)
        return True

    def _stop(self, status: Status, detail: Text, *, go_on: bool = False) -> None:
        """Set the status of the check at hand and, unless the rest can go on, skip those after it."""
        for key in self.open_keys()[:1]:
            self._results.finish(Check(key=key, status=status, detail=lines((detail, *self._stray))))
        if not go_on:
            self._results.skip(self.keys, _("The verification ended before this check."))
        self._left = len(self.open_keys())

    def _hear_stray(self, text: str) -> None:
        if text.strip():
            line = self._cleaned(text)[:LINE_LIMIT]
            self._stray.append(line)
            self._results.tell(LogLine(step=Step.VERIFY, text=line))
