"""What an environment is, and what verification found in it."""

from __future__ import annotations

from enum import Enum

from assistant.i18n import _
from assistant.model.record import Record

__all__ = ["RIGHT", "Check", "Environment", "Report", "Speed", "Status", "duration", "status_word"]


class Status(Enum):
    """How one check ended; missing, wrong and slow are told apart."""

    PASSED = "passed"
    WRONG = "wrong"
    UNSUPPORTED = "unsupported"
    FAILED = "failed"
    TIMEOUT = "timeout"
    SKIPPED = "skipped"
    SLOW = "slow"


# Slow is not wrong.
RIGHT = {Status.PASSED, Status.SLOW}
NOISY = 0.2


def status_word(status: Status) -> str:
    """Say in a word how a check ended."""
    return {
        Status.PASSED: _("passed"),
        Status.WRONG: _("wrong"),
        Status.UNSUPPORTED: _("unsupported"),
        Status.FAILED: _("failed"),
        Status.TIMEOUT: _("took too long"),
        Status.SKIPPED: _("skipped"),
        Status.SLOW: _("slow"),
    }[status]


class Environment(Record, frozen=True):
    """An installed environment: its folder, its interpreter, the kernel that JupyterLab lists it under."""

    path: str
    python: str
    kernel: str | None = None
    packages: dict[str, str] = {}


class Speed(Record, frozen=True):
    """How fast some work ran: `rate` in `unit`, from the median `seconds` of `repeats`; `cpu_rate` is the CPU's.

    `best` is the quickest run, `spread` the width of the middle half relative to the median, `flops` and `bytes` the
    work of one run, `peak_bytes` the most memory taken.
    """

    rate: float
    unit: str
    seconds: float
    best: float
    spread: float
    repeats: int
    cpu_rate: float | None = None
    flops: float = 0.0
    bytes: float = 0.0
    peak_bytes: int | None = None

    @property
    def noisy(self) -> bool:
        """Tell whether the runs differ too much for their median to be trusted."""
        return self.spread > NOISY


class Check(Record, frozen=True):
    """One check's result; `seconds` is steady state, `first_seconds` includes compilation, `error` is relative."""

    key: str
    status: Status
    seconds: float | None = None
    first_seconds: float | None = None
    error: float | None = None
    tolerance: float | None = None
    detail: str = ""
    speed: Speed | None = None


class Report(Record, frozen=True):
    """All checks of one device in one environment; `facts` holds what torch says of itself and the device."""

    device: str
    checks: tuple[Check, ...] = ()
    facts: dict[str, str] = {}
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Tell whether at least one check ran and none failed; slow is not failed."""
        ran = [check for check in self.checks if check.status is not Status.SKIPPED]
        return bool(ran) and all(check.status in RIGHT for check in ran)

    @property
    def usable(self) -> bool:
        """Tell whether the device works though operators may be missing: nothing wrong, failed or hung."""
        known = {check.status for check in self.checks} - {Status.SKIPPED, Status.UNSUPPORTED}
        compared = any(check.error is not None for check in self.checks if check.status in RIGHT)
        return compared and known <= RIGHT


def duration(seconds: float | None) -> str:
    """Write a duration with three digits, in s, ms or µs; "" for None."""
    if seconds is None:
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"
