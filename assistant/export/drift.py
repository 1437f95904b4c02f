"""What differs between a setup as it was exported and what is there now; each difference is one line for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter

from assistant.i18n import Message, _, render, say
from assistant.model.machine import Gpu, Machine
from assistant.model.plan import Plan
from assistant.model.record import Record
from assistant.model.report import RIGHT, Report, status_word
from assistant.model.visible import printable

DIFFERS = "≠"  # begins the line of each difference, for people and for VS Code's problem matcher
_DIGITS = 16  # of a hash: enough to tell files apart, and to be read
_KINDS = {
    "driver": _("driver"),
    "system": _("system"),
    "gpu": _("GPU"),
    "plan": _("plan"),
    "package": _("package"),
    "file": _("file of the package"),
    "python": _("Python"),
    "device": _("device"),
    "check": _("check"),
    "environment": _("environment"),
}


class Drift(Record, frozen=True, omit_defaults=False):
    """One difference: its kind (a key of `_KINDS`), what it concerns, the value then and now; None for not there."""

    kind: str
    name: str
    was: str | None = None
    now: str | None = None

    @property
    def text(self) -> str:
        """The difference as one line, in the current language."""
        return render(self.message)

    @property
    def message(self) -> Message:
        """The difference as one line."""
        kind = _KINDS.get(self.kind, printable(self.kind))
        what = Message("{kind} {name}" if self.name else "{kind}").format(kind=kind, name=printable(self.name))
        was, now = map(printable, (self.was, self.now))
        if self.was is None:
            return _("{what}: {now} is new", what=what, now=now)
        if self.now is None:
            return _("{what}: {was} is gone", what=what, was=was)
        return _("{what}: was {was}, is {now}", what=what, was=was, now=now)


def machine_drift(was: Machine, now: Machine) -> tuple[Drift, ...]:
    """Compare driver, system and GPUs; what was unknown then is not compared."""
    facts = (
        ("driver", "NVIDIA", was.nvidia_driver, now.nvidia_driver),
        ("driver", "CUDA", was.cuda_driver_api, now.cuda_driver_api),
        ("driver", "ROCm", was.rocm_version, now.rocm_version),
        ("system", "os", was.os_version or was.os, now.os_version or now.os),
        ("system", "arch", was.arch, now.arch),
        ("system", "WSL", _yes_or_no(was.wsl), _yes_or_no(was.wsl if now.wsl is None else now.wsl)),
    )
    changed = [Drift(kind=kind, name=name, was=a, now=b) for kind, name, a, b in facts if a != b and a is not None]
    new = [Drift(kind=kind, name=name, now=b) for kind, name, a, b in facts if a is None and b and kind == "driver"]
    return (*changed, *new, *_gpu_drift(was.gpus, now.gpus))


def plan_drift(was: Plan, now: Plan) -> tuple[Drift, ...]:
    """Compare what two plans install."""
    facts = {
        "backend": (was.backend.value, now.backend.value),
        "variant": (was.variant, now.variant),
        "torch": (was.torch, now.torch),
        "python": (was.python, now.python),
        "index": (was.index_url or say("pip's own"), now.index_url or say("pip's own")),
    }
    changed = [Drift(kind="plan", name=name, was=a, now=b) for name, (a, b) in facts.items() if a != b]
    return (*changed, *_by_name("plan", was.env, now.env))


def package_drift(was: Mapping[str, str], now: Mapping[str, str]) -> tuple[Drift, ...]:
    """Compare versions by package name; pip is a tool that users update as they please, and no part of a setup."""
    return tuple(drift for drift in _by_name("package", was, now) if drift.name != "pip")


def _by_name(kind: str, was: Mapping[str, str], now: Mapping[str, str]) -> tuple[Drift, ...]:
    return tuple(
        Drift(kind=kind, name=name, was=was.get(name), now=now.get(name))
        for name in sorted({*was, *now})
        if was.get(name) != now.get(name)
    )


def file_drift(was: Mapping[str, str], now: Mapping[str, str]) -> tuple[Drift, ...]:
    """Compare the SHA-256 of packages' files where both are known."""
    both = {name: digest[:_DIGITS] for name, digest in was.items() if now.get(name)}
    return _by_name("file", both, {name: now[name][:_DIGITS] for name in both})


def report_drift(was: Report, now: Report) -> tuple[Drift, ...]:
    """Compare device, Python, and the checks that passed and no longer do; one skipped in either is left out."""
    ran = {check.key: check for check in now.checks}
    device = [Drift(kind="device", name="", was=was.device, now=now.device)] if was.device != now.device else []
    python = was.facts.get("python"), now.facts.get("python")
    other = [Drift(kind="python", name="", was=python[0], now=python[1])] if all(python) and len({*python}) > 1 else []
    worse = [
        Drift(
            kind="check",
            name=check.key,
            was=render(status_word(check.status)),
            now=render(status_word(ran[check.key].status)),
        )
        for check in was.checks
        if check.status in RIGHT and check.key in ran and ran[check.key].status not in RIGHT
    ]
    return (*device, *other, *worse)


def same_hardware(was: Machine, now: Machine) -> bool:
    """Whether a lock of one machine fits the other: the same system, processor and GPUs."""
    return (was.os, was.arch, _labels(was.gpus)) == (now.os, now.arch, _labels(now.gpus))


def _gpu_drift(was: tuple[Gpu, ...], now: tuple[Gpu, ...]) -> Iterable[Drift]:
    before, after = _labels(was), _labels(now)
    if before != after:
        yield Drift(kind="gpu", name="", was=", ".join(before) or None, now=", ".join(after) or None)
        return
    by_label = attrgetter("label")
    for old, new in zip(sorted(was, key=by_label), sorted(now, key=by_label), strict=True):
        if old.driver and old.driver != new.driver:
            yield Drift(kind="driver", name=old.label, was=old.driver, now=new.driver)


def _labels(gpus: tuple[Gpu, ...]) -> list[str]:
    return sorted(gpu.label for gpu in gpus)


def _yes_or_no(value: bool | None) -> str | None:  # noqa: FBT001 - a fact
    return None if value is None else say("yes") if value else say("no")
