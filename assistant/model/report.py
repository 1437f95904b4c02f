"""An environment, and the report of its verification."""

from __future__ import annotations

from enum import Enum

from assistant.i18n import Message, Text, _
from assistant.model.checks import ESSENTIAL, SPARE, checked_package
from assistant.model.record import Record


class Speed(Record, frozen=True):
    """How fast some work ran: `rate` in `unit`, the median of its runs; `cpu_rate` is this machine's CPU's."""

    rate: float
    unit: str
    cpu_rate: float | None = None


def figure(value: float) -> str:
    """Format a number with three digits, or without decimals where it has more."""
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"  # noqa: PLR2004 - what three digits can write


class Status(Enum):
    """Outcome of one check."""

    PASSED = "passed"
    WRONG = "wrong"
    UNSUPPORTED = "unsupported"
    FAILED = "failed"
    TIMEOUT = "timeout"
    SKIPPED = "skipped"
    SLOW = "slow"


RIGHT = {Status.PASSED, Status.SLOW}  # slow is not wrong
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
    """Return the word for an outcome."""
    return _WORDS[status]


class Environment(Record, frozen=True):
    """An installed environment: its folder, its interpreter, and the name of its kernel in JupyterLab.

    `kernel` is the name that programs use, `display_name` what the launcher shows.
    """

    path: str
    python: str
    kernel: str | None = None
    packages: dict[str, str] = {}
    display_name: str = ""

    @property
    def launcher_name(self) -> str:
        """The kernel as people find it in JupyterLab's launcher; "" where there is none."""
        return self.display_name or self.kernel or ""


class Check(Record, frozen=True):
    """One check's result; `first_seconds` includes compilation, `seconds` does not, `error` is relative."""

    key: str
    status: Status
    seconds: float | None = None
    first_seconds: float | None = None
    error: float | None = None
    tolerance: float | None = None
    detail: Text = ""
    speed: Speed | None = None


class Report(Record, frozen=True):
    """All checks of one device in one environment; `facts` holds what torch says of itself and the device."""

    device: str
    checks: tuple[Check, ...] = ()
    facts: dict[str, str] = {}
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether at least one check ran and all were right, except that spare ones may be unsupported."""
        ran = [check for check in self.checks if check.status is not Status.SKIPPED]
        right = [check for check in ran if check.status in RIGHT]
        spared = [check for check in ran if check.status is Status.UNSUPPORTED and check.key in SPARE]
        return bool(right) and len(right) + len(spared) == len(ran)

    @property
    def usable(self) -> bool:
        """Whether the device works, though operators may be missing: nothing wrong, failed or hung."""
        known = {check.status for check in self.checks} - {Status.SKIPPED, Status.UNSUPPORTED}
        compared = any(check.error is not None for check in self.checks if check.status in RIGHT)
        return compared and known <= RIGHT and not ESSENTIAL.intersection(self.lacking)

    @property
    def lacking(self) -> tuple[str, ...]:
        """The keys of the checks that the device does not support."""
        return tuple(check.key for check in self.checks if check.status is Status.UNSUPPORTED)

    @property
    def wrong(self) -> tuple[Check, ...]:
        """The checks that were neither right nor skipped."""
        return tuple(check for check in self.checks if check.status not in {*RIGHT, Status.SKIPPED})

    @property
    def unusable(self) -> tuple[str, ...]:
        """The distributions that were asked for and do not work."""
        return tuple(filter(None, (checked_package(check.key) for check in self.wrong)))

    @property
    def speeds(self) -> dict[str, Speed]:
        """The measured speeds, by check."""
        return {check.key: check.speed for check in self.checks if check.speed is not None}


def verdict(report: Report) -> Message:
    """Return the result in one sentence: all passed, usable without some operators, what or how many failed."""
    ran = [check for check in report.checks if check.status is not Status.SKIPPED]
    if report.usable and report.lacking:
        text = _("Usable on the device {device}, but it lacks: {lacking}.")
    elif report.passed:
        text = _("All checks passed on the device {device}.")
    elif len(report.unusable) == len(report.wrong) > 0:
        text = _("The device {device} works, but these packages that you asked for do not: {packages}.")
    else:
        text = _("{passed} of {ran} checks passed on the device {device}.")
    passed, packages = sum(check.status in RIGHT for check in ran), ", ".join(dict.fromkeys(report.unusable))
    return text.format(
        device=report.device, ran=len(ran), passed=passed, lacking=", ".join(report.lacking), packages=packages
    )


def duration(seconds: float | None) -> str:
    """Format a duration with three digits, in s, ms or µs; "" for None."""
    if seconds is None:
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"
