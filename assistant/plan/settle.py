"""Fit plans to what the package sources really hold: confirmed, replaced by what is there, or marked unchecked."""

from __future__ import annotations

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from assistant.i18n import _
from assistant.model.plan import Backend, Plan, Planning, Wheel
from assistant.model.record import Record, replace

__all__ = ["Look", "brings_cuda", "settle"]


DEFAULT_BUILD = "pypi"


class Look(Record, frozen=True):
    """What one look for torch gave: the fitting wheels, or why the source could not be asked (`reason`)."""

    wheels: tuple[Wheel, ...] = ()
    reason: str = ""


def settle(planning: Planning, official: dict[str, Look], configured: Look) -> Planning:
    """Settle each plan: `official` holds a look per index address, `configured` one through pip's own sources.

    The order is kept. Where no CPU build can be confirmed, PyPI's default build is offered as the last plan.
    """
    plans = [_settled(plan, official.get(plan.index_url or "", Look()), configured) for plan in planning.plans]
    last = plans[-1] if plans else None
    if last and last.backend is Backend.CPU and last.index_url and last.wheel is None:
        plans.append(_default_build(last))
    return replace(planning, plans=tuple(plans), choice=plans[0] if plans else None)


def brings_cuda(plan: Plan) -> bool:
    """Tell whether a plan for the CPU takes PyPI's default build, which on Linux brings CUDA along."""
    return plan.backend is Backend.CPU and plan.variant == DEFAULT_BUILD


def _default_build(plan: Plan) -> Plan:
    """Offer, as the very last, what can be had anywhere; nobody takes it without being asked."""
    warning = _(
        "This is PyPI's default build: it brings several GB of CUDA libraries, and computes on the CPU all the same."
    )
    return replace(plan, variant=DEFAULT_BUILD, index_url=None, download_mb=None, reasons=(), warnings=(warning,))


def _settled(plan: Plan, official: Look, configured: Look) -> Plan:
    if plan.index_url is None:
        return plan
    if wheel := _exact(plan, official):
        return replace(plan, wheel=wheel, download_mb=_megabytes(wheel) or plan.download_mb)
    if not official.reason and (wheel := _newest(plan, official)):
        return _moved(plan, wheel, _("The index does not hold torch {wanted} for this machine, but {torch}."))
    if wheel := _newest(plan, configured):
        reason = _(
            "PyTorch's own index cannot be reached; torch {torch} is in the sources that pip is configured with."
        )
        return replace(_moved(plan, wheel, reason), index_url=None)
    return replace(plan, warnings=(*plan.warnings, _unchecked(official)))


def _unchecked(official: Look) -> str:
    if official.reason:
        return _("Not checked: PyTorch's own index cannot be reached ({reason}).").format(reason=official.reason)
    return _("PyTorch's own index holds no fitting wheel today.")


def _exact(plan: Plan, look: Look) -> Wheel | None:
    return next((wheel for wheel in look.wheels if _version(wheel).public == plan.torch and _suits(plan, wheel)), None)


def _newest(plan: Plan, look: Look) -> Wheel | None:
    """Take the newest wheel of the plan's own variant; other sources mix variants, the local tag tells them apart."""
    fitting = [wheel for wheel in look.wheels if _suits(plan, wheel) and not _version(wheel).is_prerelease]
    return max(fitting, key=_version, default=None)


def _suits(plan: Plan, wheel: Wheel) -> bool:
    """Accept only the plan's own local tag; a wheel without one is PyPI's default build, which on Linux is CUDA."""
    local = _version(wheel).local
    return local == plan.variant or (local is None and wheel.where == "official")


def _moved(plan: Plan, wheel: Wheel, reason: str) -> Plan:
    version = _version(wheel)
    requirements = tuple(_pinned(line, str(version)) for line in plan.requirements)
    told = reason.format(torch=version, wanted=plan.torch)
    return replace(
        plan,
        torch=version.public,
        requirements=requirements,
        wheel=wheel,
        reasons=(*plan.reasons, told),
        download_mb=_megabytes(wheel),
    )


def _pinned(line: str, version: str) -> str:
    return f"torch=={version}" if line.partition("==")[0].strip() == "torch" else line


def _megabytes(wheel: Wheel) -> int | None:
    return None if wheel.size is None else round(wheel.size / 10**6)


def _version(wheel: Wheel) -> Version:
    try:
        return parse_wheel_filename(wheel.filename)[1]
    except InvalidWheelFilename:
        return Version("0")
