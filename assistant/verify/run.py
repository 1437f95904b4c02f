"""Runs the checks in the target's own Python, watches each one's time and turns what it tells into a report."""

from __future__ import annotations

import json
import re
import signal
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path

import msgspec

from assistant.host.lock import Lock
from assistant.host.process import CancelToken, stream
from assistant.i18n import Message, Text, _, lines, render
from assistant.model.checks import CHECKS, Level, check_title
from assistant.model.errors import BadInput, Cancelled
from assistant.model.event import FindingRaised, LogLine, Progress, Sink, Step
from assistant.model.finding import Finding, Severity
from assistant.model.plan import Backend
from assistant.model.record import Record, replace
from assistant.model.report import RIGHT, Check, Report, Status
from assistant.privacy import Lines, Policy
from assistant.verify.roofs import roofs
from assistant.verify.sentences import sentence

CHILD = Path(__file__).with_name("child.py")
FIRST = ("import", "device", "copy")  # a device that dies at these will not do better in another process
MEMORY_EXIT = 75  # what child.py ends with when a check took too much memory
STRAY_LINES = 20
LINE_LIMIT = 2000
_DEVICE = re.compile(r"(?:{})(?::\d+)?".format("|".join(backend.value for backend in Backend)))


def verify(  # noqa: PLR0913 - what runs it, on what, who hears it; the rest are limits with defaults
    python: str | Path,
    device: str,
    sink: Sink,
    cancel: CancelToken | None = None,
    *,
    level: Level | tuple[str, ...] = "quick",
    limit_per_check: float = 60.0,
    memory_limit: int = 4 << 30,
    environment: Mapping[str, str] | None = None,
    traceless: bool = False,
    lock: Lock | None = None,
) -> Report:
    """Run checks with the interpreter `python` on `device` ("cpu", "cuda:1", …) and report each of them.

    `level` is "quick" (seconds), "full" (a minute or two; measures speed too), or the keys of some checks.
    `environment` holds variables to set for the child, such as a plan's; `traceless` leaves no bytecode behind. The
    child holds `lock` until it ends. A check that takes more than `limit_per_check` seconds ends the run; the checks
    after it are reported as skipped. After one
    that makes the process grow by more than `memory_limit` bytes, or whose process dies, another process goes on.
    Raises `BadInput` for an unknown device, `WorkFailed` when the interpreter cannot be started, and `Cancelled`.
    """
    if not _DEVICE.fullmatch(device):
        raise BadInput(
            _("There is no device called {device!r}.", device=device),
            hint=_("Use cpu, cuda, rocm, xpu, mps or directml, with an index where there are several, as in cuda:1."),
        )
    run = _Run(device, CHECKS[level] if isinstance(level, str) else level, sink, _Clock(cancel, limit_per_check))
    started = time.monotonic()
    while keys := run.open_keys():
        request = json.dumps({"device": device, "checks": keys, "ready": run.ready(), "memory": memory_limit})
        run.clock.restart()
        try:
            command = [python, *(("-B",) if traceless else ()), "-I", "-X", "utf8", CHILD, request]
            run.end(stream(command, run.hear, cancel=run.clock, environment=environment, lock=lock))
        except Cancelled:
            if not run.clock.expired:
                raise
            run.stop(Status.TIMEOUT, _("It did not end within {seconds:g} seconds.", seconds=limit_per_check))
    run.tell_end()
    report = Report(device=device, checks=run.checks(), facts=run.facts, seconds=time.monotonic() - started)
    return replace(report, limits=roofs(report))


class _Clock(CancelToken):
    """A stop that is asked for by the user or by the limit of the check at hand; each start sets the limit anew."""

    def __init__(self, cancel: CancelToken | None, limit: float) -> None:
        super().__init__()
        self._cancel, self._limit = cancel, limit
        self.expired = False
        self.restart()

    def restart(self) -> None:
        self._deadline = time.monotonic() + self._limit

    def __bool__(self) -> bool:
        if self._cancel:
            return True
        self.expired = self.expired or time.monotonic() > self._deadline
        return self.expired


class _Line(Record, frozen=True):
    """One line of the child's own; what does not decode as one comes from a library."""

    facts: dict[str, str] = {}
    start: str | None = None
    check: Check | None = None
    reason: str = ""
    values: dict[str, str | int | float] = {}


class _Run:
    """What has been heard from the child so far."""

    def __init__(self, device: str, keys: tuple[str, ...], sink: Sink, clock: _Clock) -> None:
        self.clock = clock
        self.facts: dict[str, str] = {}
        self._device, self._keys, self._sink = device, keys, sink
        self._done: dict[str, Check] = {}
        self._left = len(keys)
        self._cleaned = Lines(Policy.USABLE)
        self._stray: deque[str] = deque(maxlen=STRAY_LINES)

    def hear(self, text: str) -> None:
        """Take one line of the child's output."""
        try:
            line = msgspec.json.decode(text, type=_Line)
        except msgspec.DecodeError:
            return self._hear_stray(text)
        self.facts.update(line.facts)
        if line.start is not None:
            self._start(line.start)
        if line.check is not None:
            said = (sentence(line.reason, line.values), line.check.detail)
            self._finish(replace(line.check, detail=lines(said)))
        return None

    def end(self, code: int) -> None:
        """Give the check at which the child died its status; those after it go to another child."""
        left, self._left = self._left, len(self.open_keys())
        if not self._left and code:
            self.facts["ending"] = render(_ending(code))
        elif self._left and (code != MEMORY_EXIT or self._left == left):
            self.stop(Status.FAILED, _ending(code), go_on=self._done.keys() >= set(FIRST))

    def stop(self, status: Status, detail: Text, *, go_on: bool = False) -> None:
        """Give the check at hand its status and, unless the rest can go on, call those after it skipped."""
        left = self.open_keys()
        for key in left[:1]:
            self._finish(Check(key=key, status=status, detail=lines((detail, *self._stray))))
        for key in () if go_on else left[1:]:
            self._finish(Check(key=key, status=Status.SKIPPED, detail=_("The verification ended before this check.")))
        self._left = len(self.open_keys())

    def tell_end(self) -> None:
        """Say that all is done."""
        self._progress(_("Verification done"))

    def open_keys(self) -> list[str]:
        """Name the checks without a result, in order."""
        return [key for key in self._keys if key not in self._done]

    def ready(self) -> list[str]:
        """Name the checks that passed, on which others rest."""
        return [key for key, check in self._done.items() if check.status in RIGHT]

    def checks(self) -> tuple[Check, ...]:
        """Give all results in the order of the checks."""
        return tuple(self._done[key] for key in self._keys)

    def _hear_stray(self, text: str) -> None:
        if text.strip():
            line = self._cleaned(text)[:LINE_LIMIT]
            self._stray.append(line)
            self._sink(LogLine(step=Step.VERIFY, text=line))

    def _start(self, key: str) -> None:
        self.clock.restart()
        self._stray.clear()
        self._progress(check_title(key))

    def _progress(self, text: Message) -> None:
        self._sink(Progress(step=Step.VERIFY, text=text, done=len(self._done), total=len(self._keys), unit="checks"))

    def _finish(self, check: Check) -> None:
        if check.key not in self._keys or check.key in self._done:
            return
        self._done[check.key] = check
        for finding in raised(Report(device=self._device, checks=(check,))):
            self._sink(FindingRaised(step=Step.VERIFY, finding=finding))


def raised(report: Report) -> tuple[Finding, ...]:
    """Give what a report's checks raise, as they did while they ran."""
    known = (check for check in report.checks if check.status not in (Status.PASSED, Status.SKIPPED))
    return tuple(_finding(check, report.device) for check in known)


_SEVERITIES = {Status.UNSUPPORTED: Severity.WARNING, Status.SLOW: Severity.INFO}


def _finding(check: Check, device: str) -> Finding:
    sentences = {
        Status.WRONG: _("“{check}” gave a wrong result on {device}."),
        Status.UNSUPPORTED: _("“{check}” is not supported on {device}."),
        Status.TIMEOUT: _("“{check}” hung on {device} and was stopped."),
        Status.SLOW: _("“{check}” is slow on {device}."),
    }
    sentence = sentences.get(check.status, _("“{check}” failed on {device}."))
    return Finding(
        key=f"verify.{check.key}",
        severity=_SEVERITIES.get(check.status, Severity.ERROR),
        text=sentence.format(check=check_title(check.key), device=device),
        evidence=(check.detail,) if check.detail else (),
    )


# What Windows answers in place of a signal.
_WINDOWS_ENDINGS = {
    0xC0000005: "STATUS_ACCESS_VIOLATION",
    0xC000001D: "STATUS_ILLEGAL_INSTRUCTION",
    0xC0000135: "STATUS_DLL_NOT_FOUND",
    0xC0000409: "STATUS_STACK_BUFFER_OVERRUN",
}


def _ending(code: int) -> Message:
    """Say how the child ended."""
    if code < 0:
        known = {number.value: number.name for number in signal.Signals}
        return _("The process was ended by signal {name}.", name=known.get(-code, str(-code)))
    if code in _WINDOWS_ENDINGS:
        return _("The process was ended by Windows: {name}.", name=_WINDOWS_ENDINGS[code])
    return _("The process ended with exit status {code} before it had answered.", code=code)
