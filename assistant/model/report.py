"""What an environment is, and what verification found in it."""

from __future__ import annotations

from enum import Enum

from assistant.i18n import Message, Text, _
from assistant.model.checks import ESSENTIAL, SPARE
from assistant.model.record import Record
from assistant.model.speed import Limit, Speed


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
_WORDS = {
    Status.PASSED: _("passed"),
    Status.WRONG: _("wrong"),
    Status.UNSUPPORTED: _("unsupported"),
    Status.FAILED: _("failed"),
    Status.TIMEOUT: _("took too long"),
    Status.SKIPPED: _("skipped"),
    Status.SLOW: _("slow"),
}


def status_word(status: Status) -> Message:
    """Say in a word how a check ended."""
    return _WORDS[status]


class Environment(Record, frozen=True):
    """An installed environment: its folder, its interpreter, the kernel that JupyterLab lists it under."""

    path: str
    python: str
    kernel: str | None = None
    packages: dict[str, str] = {}


class Check(Record, frozen=True):
    """One check's result; `seconds` is steady state, `first_seconds` includes compilation, `error` is relative."""

    key: str
    status: Status
    seconds: float | None = None
    first_seconds: float | None = None
    error: float | None = None
    tolerance: float | None = None
    detail: Text = ""
    speed: Speed | None = None


class Report(Record, frozen=True):
    """All checks of one device in one environment; `facts` holds what torch says of itself and the device.

    `limits` holds, under "bandwidth" and the names of types, the most that the device can reach.
    """

    device: str
    checks: tuple[Check, ...] = ()
    facts: dict[str, str] = {}
    seconds: float = 0.0
    limits: dict[str, Limit] = {}

    @property
    def passed(self) -> bool:
        """Tell whether at least one check ran and nothing is wrong, failed or missing but a type to spare."""
        ran = [check for check in self.checks if check.status is not Status.SKIPPED]
        right = [check for check in ran if check.status in RIGHT]
        spared = [check for check in ran if check.status is Status.UNSUPPORTED and check.key in SPARE]
        return bool(right) and len(right) + len(spared) == len(ran)

    @property
    def usable(self) -> bool:
        """Tell whether the device works though operators may be missing: nothing wrong, failed or hung."""
        known = {check.status for check in self.checks} - {Status.SKIPPED, Status.UNSUPPORTED}
        compared = any(check.error is not None for check in self.checks if check.status in RIGHT)
        return compared and known <= RIGHT and not ESSENTIAL.intersection(self.lacking)

    @property
    def lacking(self) -> tuple[str, ...]:
        """Name the checks that the device does not support."""
        return tuple(check.key for check in self.checks if check.status is Status.UNSUPPORTED)

    @property
    def speeds(self) -> dict[str, Speed]:
        """Give what was measured, by the keys of the checks."""
        return {check.key: check.speed for check in self.checks if check.speed is not None}


def verdict(report: Report) -> Message:
    """Say in one sentence what came out: all right, usable though something is missing, or not."""
    ran = [check for check in report.checks if check.status is not Status.SKIPPED]
    if report.usable and report.lacking:
        text = _("Usable on the device {device}, but it lacks: {lacking}.")
    elif report.passed:
        text = _("All checks passed on the device {device}.")
    else:
        text = _("{passed} of {ran} checks passed on the device {device}.")
    passed = sum(check.status in RIGHT for check in ran)
    return text.format(device=report.device, ran=len(ran), passed=passed, lacking=", ".join(report.lacking))


def duration(seconds: float | None) -> str:
    """Write a duration with three digits, in s, ms or µs; "" for None."""
    if seconds is None:
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"
