"""Events that a running step sends to a sink; only the shells print or draw them."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from assistant.i18n import Message, Text, _
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
