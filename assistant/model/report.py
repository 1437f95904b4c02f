"""What a running step tells by events, which only shells draw; an environment, its checks and their report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from typing import Any, Literal

from assistant.i18n import Message, Text, _, ngettext, verbatim
from assistant.model.finding import Finding
from assistant.model.record import Record

MINUTE = 60.0  # seconds


class Step(Enum):
    """The six steps, in order; the same word in folder, command, wizard and documentation."""

    DETECT = "detect"
    PLAN = "plan"
    INSTALL = "install"
    VERIFY = "verify"
    DIAGNOSE = "diagnose"
    EXPORT = "export"


class Part(Enum):
    """The parts of an installation, in order."""

    RESOLVE = "resolve"
    DOWNLOAD = "download"
    UNPACK = "unpack"
    CHECK = "check"
    REGISTER = "register"


class Progress(Record, frozen=True, tag=True):
    """How far a step is: `done` of `total` in `unit` ("bytes", "packages", "checks"); `total` None while unknown.

    `rate` is in units per second, None where none is known; `part` is the part of an installation that it belongs to.
    """

    step: Step
    text: Text
    done: float = 0
    total: float | None = None
    unit: str = ""
    rate: float | None = None
    part: Part | None = None

    @property
    def share(self) -> float | None:
        """The share that is done, from 0 to 1; None while it is unknown."""
        return min(1.0, self.done / self.total) if self.total else None

    @property
    def figures(self) -> Text:
        """The amount done and in all; of bytes in MB, with rate and time left if known; "" for nothing or no unit."""
        if not (self.unit and (self.total or self.done)):
            return ""
        if self.unit != "bytes":
            return f"{self.done:.0f}" + (f" / {self.total:.0f}" if self.total else "")
        words: list[Text] = [f"{self.done / 1e6:.1f}" + (f" / {self.total / 1e6:.1f}" if self.total else "") + " MB"]
        if self.rate:
            words.append(f"{self.rate / 1e6:.1f} MB/s")
        left = (self.total - self.done) / self.rate if self.total and self.rate else 0.0
        if left > MINUTE:
            words.append(_("{minutes:.0f} min left", minutes=left / MINUTE))
        elif left:
            words.append(_("{seconds:.0f} s left", seconds=left))
        return Message("{figures}").format(figures=tuple(words))


class LogLine(Record, frozen=True, tag=True):
    """One line of a child process's output, credentials already removed."""

    step: Step
    text: Text


class FindingRaised(Record, frozen=True, tag=True):
    """A finding that a running step reports."""

    step: Step
    finding: Finding


class PartDone(Record, frozen=True, tag=True):
    """A task of an add-on has done a part: `value` is the add-on's record so far."""

    value: Any


Event = Progress | LogLine | FindingRaised | PartDone
Sink = Callable[[Event], None]


Level = Literal["quick", "full"]

BASE = _("The device itself")
ALGEBRA = _("Arithmetic and linear algebra")
NETWORKS = _("Network layers")
WHOLE = _("Whole models")
SPEED = _("Speed")
ASKED = _("The packages that you asked for")
PACKAGE = "package."  # begins the key of the check that imports a distribution; its name follows
RECIPE = "recipe."  # begins the key of the check that runs a recipe's verification call; the recipe's key follows
PACKAGES = "packages."  # begins that of several in one row; their number follows


@dataclass(frozen=True)
class CheckInfo:
    """Title and kind of a check, and how much depends on it.

    A `quick` check takes a few tenths of a second after `import torch`. If an `essential` one fails, no user's program
    can run. A device passes without a `optional` one: types that many devices lack, and a compiler that is only faster.
    """

    title: Message
    kind: Message
    quick: bool = False
    essential: bool = False
    optional: bool = False


_TABLE = {
    "import": CheckInfo(_("Import torch"), BASE, quick=True, essential=True),
    "device": CheckInfo(_("Allocate memory on the device"), BASE, quick=True, essential=True),
    "copy": CheckInfo(_("Copy to the device and back"), BASE, quick=True, essential=True),
    "matmul": CheckInfo(_("Multiply matrices"), ALGEBRA, quick=True, essential=True),
    "linalg.solve": CheckInfo(_("Solve a linear system"), ALGEBRA, quick=True),
    "linalg.solve.batched": CheckInfo(_("Solve a batch of linear systems"), ALGEBRA, quick=True),
    "linalg.solve.broadcast": CheckInfo(_("Solve linear systems with shared right-hand sides"), ALGEBRA, quick=True),
    "conv2d": CheckInfo(_("Convolve images"), NETWORKS, quick=True),
    "training": CheckInfo(_("Take one training step"), NETWORKS, quick=True, essential=True),
    "reductions": CheckInfo(_("Compute sums, means, maxima and softmax"), ALGEBRA, quick=True),
    "onnxruntime": CheckInfo(_("Run a model with ONNX Runtime"), WHOLE, quick=True),
    "linalg.svd": CheckInfo(_("Compute singular values and vectors"), ALGEBRA),
    "linalg.qr": CheckInfo(_("Compute QR decompositions"), ALGEBRA),
    "linalg.cholesky": CheckInfo(_("Compute Cholesky decompositions"), ALGEBRA),
    "linalg.eigh": CheckInfo(_("Compute eigenvalues and eigenvectors"), ALGEBRA),
    "conv1d": CheckInfo(_("Convolve sequences"), NETWORKS),
    "conv_transposed": CheckInfo(_("Apply a transposed convolution"), NETWORKS),
    "attention": CheckInfo(_("Compute attention over a sequence"), NETWORKS),
    "indexing": CheckInfo(_("Gather, scatter, mask and sort"), BASE),
    "random": CheckInfo(_("Draw random numbers"), BASE),
    "complex": CheckInfo(_("Compute with complex numbers and Fourier transforms"), ALGEBRA, optional=True),
    "integers": CheckInfo(_("Compute with 64-bit integers"), ALGEBRA),
    "float16": CheckInfo(_("Compute in float16"), ALGEBRA, optional=True),
    "bfloat16": CheckInfo(_("Compute in bfloat16"), ALGEBRA, optional=True),
    "float64": CheckInfo(_("Compute in float64"), ALGEBRA, optional=True),
    "autocast": CheckInfo(_("Train in mixed precision"), NETWORKS, optional=True),
    "out_of_memory": CheckInfo(_("Survive a request for too much memory"), BASE),
    "memory": CheckInfo(_("Release memory"), BASE),
    "small_kernels": CheckInfo(_("Run many small operators"), BASE),
    "workload.llm": CheckInfo(_("Generate tokens with a language model"), WHOLE),
    "workload.tts": CheckInfo(_("Turn text into a spectrogram"), WHOLE),
    "workload.vocoder": CheckInfo(_("Turn a spectrogram into sound"), WHOLE),
    "workload.lora": CheckInfo(_("Fine-tune a model with LoRA"), WHOLE),
    "speed.matmul.float32": CheckInfo(_("Matrix product speed in float32"), SPEED),
    "compile": CheckInfo(_("Compile with torch.compile"), BASE, optional=True),
}
QUICK = tuple(key for key, info in _TABLE.items() if info.quick)
FULL = tuple(_TABLE)
CHECKS: dict[Level, tuple[str, ...]] = {"quick": QUICK, "full": FULL}
ESSENTIAL = frozenset(key for key, info in _TABLE.items() if info.essential)
OPTIONAL = frozenset(key for key, info in _TABLE.items() if info.optional)


def package_check(name: str) -> str:
    """Return the key of the check that imports a distribution, by its canonical name."""
    return PACKAGE + name


def recipe_check(key: str) -> str:
    """Return the key of the check that runs a recipe's verification call, by the recipe's key."""
    return RECIPE + key


def checked_package(key: str) -> str:
    """Return the name of the distribution, or the key of the recipe, in a check's key; "" for any other check."""
    return next((key.removeprefix(start) for start in (PACKAGE, RECIPE) if key.startswith(start)), "")


def check_title(key: str) -> Message:
    """Return a check's title; for the key of an unknown check the key itself."""
    if name := checked_package(key):
        text = _("{name}: verification call") if key.startswith(RECIPE) else _("{name}: import")
        return text.format(name=name)
    if key.startswith(PACKAGES):
        return ngettext("{count} package: import", "{count} packages: import", int(key.removeprefix(PACKAGES)))
    return _TABLE[key].title if key in _TABLE else verbatim(key)


def check_kind(key: str) -> Message:
    """Return a check's kind; an unknown check, from another version's report, counts as a whole model."""
    if key.startswith((PACKAGE, PACKAGES, RECIPE)):
        return ASKED
    return _TABLE[key].kind if key in _TABLE else WHOLE


class Speed(Record, frozen=True):
    """How fast some work ran: `rate` in `unit`, the median of its runs; `cpu_rate` is this machine's CPU's."""

    rate: float
    unit: str
    cpu_rate: float | None = None


def format_number(value: float) -> str:
    """Format a number with three significant digits; from 1000 on without decimals, with commas."""
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


HANGS = 3  # chosen: checks in a row that do not end, from which the device hangs and not one operator is slow
RIGHT = {Status.PASSED, Status.SLOW}  # slow is not wrong
_WORDS = {
    Status.PASSED: _("passed"),
    Status.WRONG: _("wrong"),
    Status.UNSUPPORTED: _("unsupported"),
    Status.FAILED: _("failed"),
    Status.TIMEOUT: _("not finished"),
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
        """Whether a check was right (passed or slow), and so were all others that ran, but for those that are spared.

        Spared are optional ones that are unsupported, and `unfinished` ones.
        """
        ran = [check for check in self.checks if check.status is not Status.SKIPPED and check not in self.unfinished]
        right = [check for check in ran if check.status in RIGHT]
        spared = [check for check in ran if check.status is Status.UNSUPPORTED and check.key in OPTIONAL]
        return bool(right) and len(right) + len(spared) == len(ran)

    @property
    def usable(self) -> bool:
        """Whether results were compared, nothing was wrong, failed or hung, and nothing essential is unsupported.

        `unfinished` checks do not count. Where packages alone were checked, as a project without torch has them,
        nothing has to be compared.
        """
        outcomes = {check.status for check in self.checks if check not in self.unfinished} - {
            Status.SKIPPED,
            Status.UNSUPPORTED,
        }
        packages = [check for check in self.checks if checked_package(check.key)]
        compared = any(check.error is not None for check in self.checks if check.status in RIGHT)
        compared = compared or 0 < len(packages) == len(self.checks)
        return compared and outcomes <= RIGHT and not ESSENTIAL.intersection(self.lacking)

    @property
    def lacking(self) -> tuple[str, ...]:
        """The keys of the checks that the device does not support."""
        return tuple(check.key for check in self.checks if check.status is Status.UNSUPPORTED)

    @property
    def wrong(self) -> tuple[Check, ...]:
        """The checks that were neither right, skipped nor unfinished, unsupported ones included."""
        ended = (check for check in self.checks if check not in self.unfinished)
        return tuple(check for check in ended if check.status not in {*RIGHT, Status.SKIPPED})

    @property
    def unfinished(self) -> tuple[Check, ...]:
        """The checks of the device for which the time did not suffice, as on a busy machine; that is no failure.

        If an essential check is among them, or `HANGS` follow one another, it is the device that hangs: then this is
        (), and they count as wrong. Imports of packages are never among them.
        """
        own = [check for check in self.checks if not checked_package(check.key)]
        runs = [list(run) for late, run in groupby(own, lambda check: check.status is Status.TIMEOUT) if late]
        late = tuple(check for run in runs for check in run)
        hangs = any(len(run) >= HANGS for run in runs) or not ESSENTIAL.isdisjoint(check.key for check in late)
        return () if hangs else late

    @property
    def unusable(self) -> tuple[str, ...]:
        """The distributions that were asked for and do not work."""
        return tuple(filter(None, (checked_package(check.key) for check in self.wrong)))

    @property
    def speeds(self) -> dict[str, Speed]:
        """The measured speeds, by check."""
        return {check.key: check.speed for check in self.checks if check.speed is not None}


def verdict(report: Report) -> Message:
    """Return a report's result in one sentence: all passed, usable but incomplete, or what or how many failed."""
    late = report.unfinished
    ran = [check for check in report.checks if check.status is not Status.SKIPPED and check not in late]
    if report.usable and report.lacking:
        text = _("Usable on the device {device}, but it lacks: {lacking}.")
    elif report.passed and late:
        text = _("All checks that finished passed on the device {device}; not finished in time: {late}.")
    elif report.passed:
        text = _("All checks passed on the device {device}.")
    elif len(report.unusable) == len(report.wrong) > 0:
        text = _("The device {device} works, but these packages that you asked for do not: {packages}.")
    else:
        text = _("{passed} of {ran} checks passed on the device {device}.")
    passed, packages = sum(check.status in RIGHT for check in ran), ", ".join(dict.fromkeys(report.unusable))
    titles = tuple(check_title(check.key) for check in late)
    return text.format(
        late=titles,
        device=report.device,
        ran=len(ran),
        passed=passed,
        lacking=", ".join(report.lacking),
        packages=packages,
    )


def format_duration(seconds: float | None) -> str:
    """Format a duration (seconds) with three significant digits, in s, ms or µs; "" for None."""
    if seconds is None:
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"
