"""What differs between a setup as it was exported and what is there now: values in, one line per difference out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from assistant.export.trust import plain
from assistant.i18n import render, say
from assistant.model.machine import Gpu, Machine
from assistant.model.plan import Plan
from assistant.model.record import Record
from assistant.model.report import RIGHT, Report, status_word

_DIGITS = 16  # of a hash: enough to tell files apart, and to be read


class Drift(Record, frozen=True, omit_defaults=False):
    """One difference: of which kind (driver, system, gpu, plan, package, python, device, check), in what, was and is.

    None stands for "not there".
    """

    kind: str
    name: str
    was: str | None = None
    now: str | None = None

    @property
    def text(self) -> str:
        """Say it in one line."""
        what, was, now = (plain(part) for part in (f"{_kind(self.kind)} {self.name}".strip(), self.was, self.now))
        if self.was is None:
            return say("{what}: {now} came in addition", what=what, now=now)
        if self.now is None:
            return say("{what}: {was} is gone", what=what, was=was)
        return say("{what}: was {was}, is {now}", what=what, was=was, now=now)


def machine_drift(was: Machine, now: Machine) -> tuple[Drift, ...]:
    """Compare driver, system and GPUs; what was unknown then is not compared."""
    facts = (
        ("driver", "NVIDIA", was.nvidia_driver, now.nvidia_driver),
        ("driver", "CUDA", was.cuda_driver_api, now.cuda_driver_api),
        ("driver", "ROCm", was.rocm_version, now.rocm_version),
        ("system", "os", was.os_version or was.os, now.os_version or now.os),
        ("system", "arch", was.arch, now.arch),
        (
            "system",
            "WSL",
            *((_yes(was.wsl), _yes(now.wsl)) if was.wsl != now.wsl and now.wsl is not None else (None, None)),
        ),
    )
    told = [Drift(kind=kind, name=name, was=a, now=b) for kind, name, a, b in facts if a != b and a is not None]
    came = [Drift(kind=kind, name=name, now=b) for kind, name, a, b in facts if a is None and b and kind == "driver"]
    return (*told, *came, *_gpus(was.gpus, now.gpus))


def plan_drift(was: Plan, now: Plan) -> tuple[Drift, ...]:
    """Compare what two plans install."""
    facts = {
        "backend": (was.backend.value, now.backend.value),
        "variant": (was.variant, now.variant),
        "torch": (was.torch, now.torch),
        "python": (was.python, now.python),
        "index": (was.index_url or say("pip's own"), now.index_url or say("pip's own")),
    }
    names = sorted({*was.env, *now.env})
    told = [Drift(kind="plan", name=name, was=a, now=b) for name, (a, b) in facts.items() if a != b]
    settings = [
        Drift(kind="plan", name=name, was=was.env.get(name), now=now.env.get(name))
        for name in names
        if was.env.get(name) != now.env.get(name)
    ]
    return (*told, *settings)


def package_drift(was: Mapping[str, str], now: Mapping[str, str], kind: str = "package") -> tuple[Drift, ...]:
    """Compare versions by package name."""
    return tuple(
        Drift(kind=kind, name=name, was=was.get(name), now=now.get(name))
        for name in sorted({*was, *now})
        if was.get(name) != now.get(name)
    )


def file_drift(was: Mapping[str, str], now: Mapping[str, str]) -> tuple[Drift, ...]:
    """Compare the SHA-256 of packages' files where both are known."""
    both = {name: digest[:_DIGITS] for name, digest in was.items() if now.get(name)}
    return package_drift(both, {name: now[name][:_DIGITS] for name in both}, "file")


def report_drift(was: Report, now: Report) -> tuple[Drift, ...]:
    """Compare device and checks: what was right and is not any more; a check that one of both skipped says nothing."""
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
    """Tell whether a lock of one machine fits the other: the same kind of system and the same GPUs."""
    return (was.os, was.arch, _names(was.gpus)) == (now.os, now.arch, _names(now.gpus))


def _kind(kind: str) -> str:
    return {
        "driver": say("driver"),
        "system": say("system"),
        "gpu": say("GPU"),
        "plan": say("plan"),
        "package": say("package"),
        "file": say("file of the package"),
        "python": say("Python"),
        "device": say("device"),
        "check": say("check"),
        "environment": say("environment"),
    }.get(kind, kind)


def _gpus(was: tuple[Gpu, ...], now: tuple[Gpu, ...]) -> Iterable[Drift]:
    before, after = _names(was), _names(now)
    if before != after:
        yield Drift(kind="gpu", name="", was=", ".join(before) or None, now=", ".join(after) or None)
        return
    for old, new in zip(sorted(was, key=_name), sorted(now, key=_name), strict=True):
        if old.driver and old.driver != new.driver:
            yield Drift(kind="driver", name=_name(old), was=old.driver, now=new.driver)


def _names(gpus: tuple[Gpu, ...]) -> list[str]:
    return sorted(map(_name, gpus))


def _name(gpu: Gpu) -> str:
    return gpu.label


def _yes(value: bool | None) -> str | None:  # noqa: FBT001 - a fact
    return None if value is None else say("yes") if value else say("no")
