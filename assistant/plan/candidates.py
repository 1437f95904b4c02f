"""Types shared by the backend planners: the planning context, a candidate, and why there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from assistant.catalog import Catalog, Number, TorchWheel, number
from assistant.i18n import Message, Text, _, sentences
from assistant.model.machine import Machine, Vendor
from assistant.model.plan import Backend, Rejection
from assistant.plan.gpus import Card, Driver
from assistant.plan.pins import Pins
from assistant.plan.sentences import SENTENCES, sentence
from assistant.plan.target import Target

MAKERS = {Vendor.NVIDIA: "NVIDIA", Vendor.AMD: "AMD", Vendor.INTEL: "Intel"}
# A list of devices ends at the first that is none, so only its first entry counts. "void" and "none" are words of
# NVIDIA_VISIBLE_DEVICES, "NoDevFiles" is what Slurm sets for a job without GPUs; the catalogue names the sources.
_NO_DEVICE = {"", "-1", "none", "void", "nodevfiles"}

T = TypeVar("T")


class Context(NamedTuple):
    """Everything that a plan may rest on. `asked`, `bundle` and `nightly` are what the user asked for."""

    machine: Machine
    catalog: Catalog
    target: Target
    pins: Pins
    cards: tuple[Card, ...]
    driver: Driver
    asked: Backend | None
    bundle: str = ""
    nightly: bool = False

    def wheels(self, family: str) -> list[TorchWheel]:
        """List the builds of a variant family ("cu", "rocm", "xpu", "cpu", "pypi") that install here, newest first."""
        target, pins = self.target, self.pins
        wheels = self.catalog.wheels(target.platform, target.tag, family)
        if pins.text:
            return [wheel for wheel in wheels if self.installs(wheel) and pins.allow(wheel)]
        return [wheel for wheel in wheels if self.installs(wheel)] if target.glibc or target.macos else list(wheels)

    def installs(self, wheel: TorchWheel) -> bool:
        """Return whether the system's glibc or macOS is new enough for a build; unknown floors refuse nothing."""
        target = self.target
        if target.platform == "macos_x86_64":
            return True  # these end with 2.2.2, which loads on every macOS that such a Python runs on
        if target.os == "macos":
            return not target.macos or target.macos >= floor(wheel.release.macos.wheel)
        return not target.glibc or target.glibc >= wheel.glibc

    def published(self, package: str, cuda: int | None = None) -> str | None:
        """Return the requirement of a package that plans bring beside torch, where it has a wheel for this target."""
        row = self.catalog.basics.get((package, cuda))
        if row and self.target.tag in row.pythons.get(self.target.platform, ()):
            return str(row.requirement or row.package)
        return None

    def with_any_driver(self) -> Context:
        """Return this context with an NVIDIA driver that runs every build."""
        return self._replace(driver=self.driver._replace(version=(), api=()))

    def lift(self, conditions: Iterable[str], find: Callable[[Context], T | None]) -> dict[str, T]:
        """Lift one condition at a time and return what `find` then finds, by condition.

        Conditions: "driver" (NVIDIA's version), "pins" (on torch), "system" (its age and the Python), "wsl".
        """
        freed = {
            "driver": self.with_any_driver(),
            "pins": self._replace(pins=self.pins.unpinned()),
            "system": self._replace(target=self.target.anywhere()),
            "wsl": self._replace(target=self.target._replace(wsl=False)),
        }
        return {name: found for name in conditions if (found := find(freed[name])) is not None}


def floor(version: str) -> Number:
    """Turn a macOS floor into numbers that any of its minor versions reaches: "14.0" is (14,), "12.3" is (12, 3)."""
    major, _dot, minor = version.partition(".")
    return (int(major), int(minor)) if minor != "0" else (int(major),)


class Candidate(NamedTuple):
    """A build that works here: torch `version` from `variant`; `rank` is smaller for better support.

    `cards` are the GPUs that it serves, `covers` counts them. `also` are further requirements. `targets` are those
    whose code an index keeps in extras, as AMD's does; `index_url` is set where the variant alone does not tell it.
    """

    backend: Backend
    variant: str
    version: str
    reasons: tuple[Message, ...]
    warnings: tuple[Message, ...] = ()
    env: dict[str, str] = {}
    also: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    integrated: bool = False
    rank: int = 0
    covers: int = 1
    wheel: TorchWheel | None = None
    cards: tuple[Card, ...] = ()
    index_url: str = ""


def passed_over(candidate: Candidate, context: Context) -> Message | None:
    """Say why a candidate is not of the newest release that the pins allow; None where it is, or something else says.

    torch-directml's torch is frozen, which its own warning tells.
    """
    allowed = (row for row in context.catalog.releases if context.pins.allow_release(row))
    newest = next(allowed, None)
    if candidate.backend is Backend.DIRECTML or newest is None or number(candidate.version) >= number(newest.version):
        return None
    family = candidate.wheel.variant.rstrip("0123456789.") if candidate.wheel else "rocm"
    builds = [
        wheel for wheel in context.catalog.wheels(context.target.platform, None, family) if wheel.release is newest
    ]
    here = [wheel for wheel in builds if context.target.tag in (None, *wheel.pythons)]
    if not builds:
        key = "newer-torch-not-for-system"
    elif not here:
        key = "newer-torch-not-for-python"
    elif not any(context.installs(wheel) for wheel in here):
        key = "newer-torch-needs-newer-system"
    elif not any(wheel.confirmed for wheel in here):
        key = "newer-torch-not-seen"
    else:
        return None
    return sentence(key, version=newest.version, backend=candidate.backend.title, python=context.target.python)


def of_code(text: Message, wheel: TorchWheel) -> Message:
    """Return what is said of the code in a build; of one that nobody has looked into, that it is assumed."""
    if not wheel.assumed:
        return text
    key = f"{text.key}-assumed"
    if key in SENTENCES:
        return sentence(key, **text.params)
    return sentences((text, _("That is assumed from the build before it.")), text.key and key)


class Offers(NamedTuple):
    """One backend's answer: candidates best first, and rivals with the reason against them."""

    candidates: tuple[Candidate, ...] = ()
    rejected: tuple[Rejection, ...] = ()


def reject(backend: Backend, key: str, why: Text, would_help: Text = "", variant: str = "") -> Rejection:
    """Return the rejection of a backend, or of one of its variants."""
    return Rejection(backend=backend, variant=variant, key=key, why=why, would_help=would_help)


def reject_hidden(backend: Backend, vendor: Vendor, context: Context) -> Rejection | None:
    """Reject a backend where an environment variable, such as CUDA_VISIBLE_DEVICES=-1, hides all of its GPUs."""
    for row in context.catalog.rows("systems.hiding"):
        value = context.machine.env.get(row.variable) if vendor.value in row.vendors else None
        if value is not None and value.split(",")[0].strip().lower() in _NO_DEVICE:
            setting = f"{row.variable}={value}"
            why = _("{setting} hides every {vendor} GPU from PyTorch.", setting=setting, vendor=MAKERS[vendor])
            return reject(backend, "devices-hidden", why, _("Remove that setting from the environment."))
    return None


def reject_pins(backend: Backend, context: Context, version: str, variant: str) -> Rejection:
    """Reject a backend whose build is there but for the pins: torch `version` with `variant`."""
    return reject(
        backend,
        "pins-exclude-build",
        _("No {backend} build that satisfies {pins} runs here.", backend=backend.title, pins=context.pins.text),
        _("Relax the pin: torch {version} with {variant} runs here.", version=version, variant=variant),
        variant,
    )


def reject_system(backend: Backend, context: Context, would_help: Message, variant: str = "") -> Rejection:
    """Reject a backend none of whose builds has a wheel for this system and Python."""
    pins = context.pins.text
    with_pins = _("No {backend} build that satisfies {pins} installs with Python {python} on this system.")
    why = with_pins if pins else _("No {backend} build installs with Python {python} on this system.")
    why = why.format(backend=backend.title, pins=pins, python=context.target.python)
    return reject(backend, "no-wheel-for-system", why, would_help, variant)
