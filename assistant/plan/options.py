"""What the rooms of the planner hand to one another: an option that works, and a question with all its facts."""

from __future__ import annotations

from typing import NamedTuple

from assistant.catalog import Catalog, Number, TorchWheel
from assistant.i18n import Message
from assistant.model.machine import Machine
from assistant.model.plan import Backend, Rejection
from assistant.plan.cards import Card, Driver
from assistant.plan.target import Target
from assistant.plan.wishes import Wishes


class Question(NamedTuple):
    """Everything that the answer may rest on. `asked` is the backend that the user asked for."""

    machine: Machine
    catalog: Catalog
    target: Target
    wishes: Wishes
    cards: tuple[Card, ...]
    driver: Driver
    asked: Backend | None

    def wheels(self, family: str) -> list[TorchWheel]:
        """List the builds of a variant family ("cu", "rocm", "xpu", "cpu", "pypi") that install here, newest first."""
        target, wishes = self.target, self.wishes
        wheels = self.catalog.wheels(target.platform, target.tag, family)
        if wishes.text:
            return [wheel for wheel in wheels if self.installs(wheel) and wishes.allow(wheel)]
        return [wheel for wheel in wheels if self.installs(wheel)] if target.glibc or target.macos else list(wheels)

    def installs(self, wheel: TorchWheel) -> bool:
        """Tell whether the system's glibc or macOS is new enough for a build; unknown floors refuse nothing."""
        target = self.target
        if target.platform == "macos_x86_64":
            return True  # these end with 2.2.2, which loads on every macOS that such a Python runs on
        if target.os == "macos":
            return not target.macos or target.macos >= floor(wheel.release.macos.wheel)
        return not target.glibc or target.glibc >= wheel.glibc


def floor(version: str) -> Number:
    """Turn a macOS floor into numbers that any of its minor versions reaches: "14.0" is (14,), "12.3" is (12, 3)."""
    major, _dot, minor = version.partition(".")
    return (int(major), int(minor)) if minor != "0" else (int(major),)


class Option(NamedTuple):
    """A way that works: torch `version` from `variant`; `rank` is smaller for better support.

    `also` are further requirements, `covers` counts the GPUs that it serves.
    """

    backend: Backend
    variant: str
    version: str
    reasons: tuple[Message, ...]
    warnings: tuple[Message, ...] = ()
    env: dict[str, str] = {}
    requirement: str = "torch=={version}"
    also: tuple[str, ...] = ()
    integrated: bool = False
    rank: int = 0
    covers: int = 1
    wheel: TorchWheel | None = None


class Offers(NamedTuple):
    """One backend's answer: options best first, and rivals with the reason against them."""

    options: tuple[Option, ...] = ()
    rejected: tuple[Rejection, ...] = ()
