"""Runs the checks in the target's own Python, limits the time of each, and turns its output into a report."""

from __future__ import annotations

import json
import re
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from assistant.catalog.limits import limits_of
from assistant.host.lock import Lock
from assistant.host.process import CancelToken, stream
from assistant.i18n import Message, Text, _, lines, render
from assistant.model.checks import CHECKS, Level, check_title
from assistant.model.errors import AssistantError, BadInput, Cancelled
from assistant.model.event import FindingRaised, LogLine, Part, Progress, Sink, Step
from assistant.model.plan import Backend
from assistant.model.record import Record, decoder, replace
from assistant.model.report import RIGHT, Check, Report, Status
from assistant.model.speed import BANDWIDTH, Limit
from assistant.privacy import Lines, Policy
from assistant.verify.messages import ending, finding_of, sentence

CHILD = Path(__file__).with_name("child.py")
FIRST = ("import", "device", "copy")  # a device that dies at these will not do better in another process
MEMORY_EXIT = 75  # what child.py ends with when a check took too much memory
# Chosen: a library's last words before a crash fit, and a flood of them does not fill the report.
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
    after it are reported as skipped. After one that makes the process grow by more than `memory_limit` bytes, or
    whose process dies, another process goes on.
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
    run.progress(_("Verification done"))
    report = Report(device=device, checks=run.checks(), facts=run.facts, seconds=time.monotonic() - started)
    return replace(report, limits=device_limits(report))


def device_limits(report: Report) -> dict[str, Limit]:
    """Return the limits of a device's memory and of each type whose speed was measured, for `Report.limits`.

    A limit is what the vendor publishes, or the best of this run where nothing is known.
    """
    seen: dict[str, float] = {}
    for speed in report.speeds.values():
        if speed.flops:
            seen[speed.dtype] = max(seen.get(speed.dtype, 0.0), speed.flops / speed.best)
    copying = report.speeds.get("speed.bandwidth")
    if copying is not None:
        seen[BANDWIDTH] = copying.bytes / copying.best
    measured = {name: Limit(value=most / 1e9) for name, most in seen.items()}
    size = report.facts.get("device memory", "").partition(" GiB")[0]
    published = limits_of(report.facts.get("device name", ""), float(size) if size else None)
    return measured | published if measured else {}


# What `import torch` (2.13) reaches in its second half, in its own order; a name that a release lacks is passed over.
_LATE_IN_TORCH = (
    *("distributions", "jit", "fx", "optim", "ao/quantization", "masked", "export", "_subclasses", "_export"),
    *("_higher_order_ops", "_prims_common", "_decomp", "_prims", "_refs", "_meta_registrations.py", "_native"),
)
_COMPILE = """
import compileall, importlib.util, pathlib, sys
site = pathlib.Path(importlib.util.find_spec("torch").origin).parents[1]
for path in (site / name for name in sys.argv[1:]):
    compileall.compile_dir(path, quiet=2) if path.is_dir() else compileall.compile_file(path, quiet=2)
"""


def compile_ahead(python: str | Path, cancel: CancelToken, lock: Lock | None = None) -> None:
    """Compile, beside the checks of a fresh environment without bytecode, what `import torch` reaches last.

    A failure is no matter, since the import compiles what it misses.
    """
    late = (*(f"torch/{name}" for name in _LATE_IN_TORCH), "onnxruntime/capi")
    with suppress(AssistantError):
        stream([python, "-I", "-c", _COMPILE, *late], lambda _line: None, cancel=cancel, lock=lock)


class _Clock(CancelToken):
    """Stops the child when the user asks for it, or when the check at hand has reached its time limit."""

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
    """One line that the child wrote; what does not decode as one comes from a library.

    {"start": "matmul"}
    {"check": {"key": "matmul", "status": "passed", "seconds": 0.0003, "error": 2.1e-07, "tolerance": 0.0001}}
    """

    facts: dict[str, str] = {}
    start: str | None = None
    check: Check | None = None
    reason: str = ""
    values: dict[str, str | int | float] = {}


class _Run:
    """What the child has reported so far."""

    def __init__(self, device: str, keys: tuple[str, ...], sink: Sink, clock: _Clock) -> None:
        self.clock = clock
        self.facts: dict[str, str] = {}
        self._device, self._keys, self._sink = device, keys, sink
        self._done: dict[str, Check] = {}
        self._left = len(keys)
        self._cleaned = Lines(Policy.USABLE)
        self._stray: deque[str] = deque(maxlen=STRAY_LINES)

    def hear(self, text: str) -> None:
        """Read one line of the child's output."""
        try:
            line = decoder(_Line).decode(text)
        except msgspec.DecodeError:
            return self._hear_stray(text)
        self.facts.update(line.facts)
        if line.start is not None:
            self.clock.restart()
            self._stray.clear()
            self.progress(check_title(line.start))
        if line.check is not None:
            self._finish(replace(line.check, detail=lines((sentence(line.reason, line.values), line.check.detail))))
        return None

    def end(self, code: int) -> None:
        """Set the status of the check during which the child died; those after it are left to another child."""
        left, self._left = self._left, len(self.open_keys())
        if not self._left and code:
            self.facts["ending"] = render(ending(code))
        elif self._left and (code != MEMORY_EXIT or self._left == left):
            self.stop(Status.FAILED, ending(code), go_on=self._done.keys() >= set(FIRST))

    def stop(self, status: Status, detail: Text, *, go_on: bool = False) -> None:
        """Set the status of the check at hand and, unless the rest can go on, skip those after it."""
        left = self.open_keys()
        for key in left[:1]:
            self._finish(Check(key=key, status=status, detail=lines((detail, *self._stray))))
        for key in () if go_on else left[1:]:
            self._finish(Check(key=key, status=Status.SKIPPED, detail=_("The verification ended before this check.")))
        self._left = len(self.open_keys())

    def open_keys(self) -> list[str]:
        """Return the checks without a result, in order."""
        return [key for key in self._keys if key not in self._done]

    def ready(self) -> list[str]:
        """Return the checks that passed, on which others may rest."""
        return [key for key, check in self._done.items() if check.status in RIGHT]

    def checks(self) -> tuple[Check, ...]:
        """Return all results in the order of the checks."""
        return tuple(self._done[key] for key in self._keys)

    def _hear_stray(self, text: str) -> None:
        if text.strip():
            line = self._cleaned(text)[:LINE_LIMIT]
            self._stray.append(line)
            self._sink(LogLine(step=Step.VERIFY, text=line))

    def progress(self, text: Message) -> None:
        """Report how many checks have ended, with what is done now."""
        done, total = len(self._done), len(self._keys)
        self._sink(Progress(step=Step.VERIFY, text=text, done=done, total=total, unit="checks", part=Part.CHECK))

    def _finish(self, check: Check) -> None:
        if check.key not in self._keys or check.key in self._done:
            return
        self._done[check.key] = check
        if finding := finding_of(check, self._device):
            self._sink(FindingRaised(step=Step.VERIFY, finding=finding))
