"""Fit plans to what the package sources really hold: confirmed, moved to what is there, refused or unchecked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from assistant.catalog import AMD_INDEX, Catalog
from assistant.i18n import Message, Text, _
from assistant.model.machine import Machine
from assistant.model.plan import Backend, Plan, Planning, Rejection, Request, Wheel
from assistant.model.record import Record, replace
from assistant.plan.nightly import NIGHTLY
from assistant.plan.planner import make_plans
from assistant.plan.requirements import beside_mb
from assistant.plan.target import Refusal, target_of

DEFAULT_BUILD = "pypi"
MB = 10**6


class Look(Record, frozen=True):
    """What one look for torch gave: the fitting wheels of `source`, or the `reason` why it could not be asked.

    `leaks` are the servers ("https://host") other than the source's own that a mirror's pages lead to.
    """

    source: str
    wheels: tuple[Wheel, ...] = ()
    reason: Text = ""
    leaks: tuple[str, ...] = ()


class Case(NamedTuple):
    """What the plans were made for; settling plans anew where a source holds another version."""

    machine: Machine
    catalog: Catalog
    request: Request = Request()


Looks = dict[tuple[str | None, str], Look]


def settle(planning: Planning, looks: Looks, case: Case) -> Planning:
    """Settle each plan by `looks`: per index address (None: pip's own sources) and Python version what was seen there.

    The order is kept. A plan for a GPU whose wheel is nowhere, where everything could be asked, is rejected; the plan
    for the CPU stays, and where its build cannot be confirmed, PyPI's default build is offered as the last plan.
    """
    plans: list[Plan] = []
    rejected: list[Rejection] = []
    for plan in planning.plans:
        settled = _settled(plan, looks, case)
        if isinstance(settled, Rejection):
            rejected.append(settled)
        else:
            plans.append(settled)
    if plans and plans[0].backend is Backend.CPU and rejected:
        plans[0] = replace(plans[0], warnings=(*plans[0].warnings, *(refusal.why for refusal in rejected)))
    last = plans[-1] if plans else None
    if last and last.backend is Backend.CPU and last.index_url and last.wheel is None:
        plans.append(_default_build(last, looks[None, last.python], case))
    answers = (*rejected, *planning.rejected)
    return replace(planning, plans=tuple(plans), choice=plans[0] if plans else None, rejected=answers)


def brings_cuda(plan: Plan) -> bool:
    """Tell whether a plan for the CPU takes PyPI's default build, which on Linux brings CUDA along."""
    return plan.backend is Backend.CPU and plan.variant == DEFAULT_BUILD


def with_sizes(planning: Planning, sizes: dict[str, int], case: Case) -> Planning:
    """Put the wheels' true sizes (bytes by address) in the place of estimates."""
    plans = tuple(_sized(plan, sizes, case) for plan in planning.plans)
    return replace(planning, plans=plans, choice=plans[0] if plans else None)


def _sized(plan: Plan, sizes: dict[str, int], case: Case) -> Plan:
    wheel = plan.wheel
    size = wheel and (wheel.size or sizes.get(wheel.url))
    beside = beside_mb(plan.backend, plan.variant, case.machine.os or "linux", case.catalog)
    if not (wheel and size):
        return plan
    plan = replace(plan, wheel=replace(wheel, size=size))
    return plan if beside is None else replace(plan, download_mb=round(size / MB) + beside)


def _default_build(plan: Plan, configured: Look, case: Case) -> Plan:
    """Offer, as the very last, what can be had anywhere; nobody takes it without being asked."""
    warning = _(
        "This is PyPI's default build: it brings several GB of CUDA libraries, and computes on the CPU all the same."
    )
    bare = replace(
        plan, variant=DEFAULT_BUILD, index_url=None, download_mb=None, reasons=(), warnings=(warning,), wheel=None
    )
    wheel = _exact(bare, configured, case)
    return replace(bare, wheel=wheel, reasons=(_confirmed(wheel),)) if wheel else bare


def _settled(plan: Plan, looks: Looks, case: Case) -> Plan | Rejection:
    """Take the plan's own index first, then pip's sources; in each the planned version, else the newest that fits."""
    official = looks[plan.index_url, plan.python]
    if plan.variant.startswith(NIGHTLY):
        return _last_night(plan, official, case)
    in_turn = dict.fromkeys((plan.index_url, None))
    looked = [looks[address, plan.python] for address in in_turn]
    for look in looked:
        if wheel := _exact(plan, look, case):
            return _with(plan, wheel, look, official)
        for wheel in _others(plan, look, case):
            if again := _again(plan, wheel, case):
                return _with(again, wheel, look, official, wanted=plan.torch)
    silent = next((look for look in looked if look.reason), None)
    if silent or plan.backend is Backend.CPU:
        return replace(plan, warnings=(*plan.warnings, _unchecked(silent) if silent else _nothing(plan, official)))
    helps = _("Name another index with --index-url, or wait until the build is published.")
    return Rejection(
        backend=plan.backend, variant=plan.variant, key="not-in-index", why=_nothing(plan, official), would_help=helps
    )


def _last_night(plan: Plan, look: Look, case: Case) -> Plan | Rejection:
    """Take the newest nightly build that the plan's own index holds for this machine."""
    fitting = [wheel for wheel in look.wheels if _suits(plan, wheel, case) and _version(wheel) >= Version(plan.torch)]
    wheel = max(fitting, key=_version, default=None)
    if wheel:
        return replace(_with(plan, wheel, look, look, wanted=plan.torch), torch=_version(wheel).public)
    if look.reason:
        return replace(plan, warnings=(*plan.warnings, _unchecked(look)))
    return Rejection(
        backend=plan.backend, variant=plan.variant, key="not-in-index", why=_nothing(plan, look), would_help=""
    )


def _unchecked(look: Look) -> Message:
    return _("Not checked: {source} cannot be reached ({reason}).", source=look.source, reason=look.reason)


def _nothing(plan: Plan, look: Look) -> Message:
    return _(
        "{source} holds no {variant} build of torch that fits Python {python} on this machine.",
        source=look.source,
        variant=plan.variant,
        python=plan.python,
    )


def _with(plan: Plan, wheel: Wheel, look: Look, official: Look, wanted: str = "") -> Plan:
    """Tie a plan to the wheel that was found: its exact build where other builds lie beside it, and the reasons."""
    version = _version(wheel)
    reasons = [*plan.reasons, _confirmed(wheel)]
    if look is not official:
        told = (
            _("{source} cannot be reached ({reason}).") if official.reason else _("{source} does not hold this build.")
        )
        reasons.append(told.format(source=official.source, reason=official.reason))
    elif wanted:
        reasons.append(_("{source} does not hold torch {wanted}.", source=look.source, wanted=wanted))
    elsewhere = wheel.where != "official"
    pinned = tuple(_pinned(line, str(version)) for line in plan.requirements)
    leak = next((server for server in look.leaks if wheel.url.startswith(f"{server}/")), None)
    return replace(
        plan,
        wheel=wheel,
        index_url=plan.index_url if look is official else None,
        requirements=pinned if wanted or elsewhere else plan.requirements,
        reasons=tuple(reasons),
        warnings=(*plan.warnings, *([_leak(look, leak)] if leak else [])),
    )


def _confirmed(wheel: Wheel) -> Message:
    """Say where the wheel lies: a server's name, or a folder."""
    server = re.match(r"\w+://([^/]+)/", wheel.url)
    place = server[1] if server else wheel.url.rpartition("/")[0].removeprefix("file://")
    return _("Confirmed: {file} is at {place}.", file=wheel.filename, place=place)


def _leak(look: Look, server: str) -> Message:
    return _(
        "{source} leads on to {server} for its files: where only the mirror can be reached, the download will fail.",
        source=look.source,
        server=server,
    )


def _exact(plan: Plan, look: Look, case: Case) -> Wheel | None:
    wheels = (wheel for wheel in look.wheels if _version(wheel).public == plan.torch)
    return next((wheel for wheel in wheels if _suits(plan, wheel, case)), None)


def _others(plan: Plan, look: Look, case: Case) -> Iterator[Wheel]:
    """Give the wheels of the plan's own build in other versions, newest first."""
    fitting = [wheel for wheel in look.wheels if _suits(plan, wheel, case) and not _version(wheel).is_prerelease]
    yield from sorted(fitting, key=_version, reverse=True)


def _again(plan: Plan, wheel: Wheel, case: Case) -> Plan | None:
    """Plan anew for the version that is there: it has its own reasons and companions, or does not fit at all."""
    pins = (*case.request.pins, f"torch=={_version(wheel).public}")
    request = replace(case.request, backend=plan.backend, python=plan.python, pins=pins)
    found = make_plans(case.machine, case.catalog, request).plans
    again = next((other for other in found if (other.backend, other.variant) == (plan.backend, plan.variant)), None)
    return again and replace(again, index_url=plan.index_url)


def _suits(plan: Plan, wheel: Wheel, case: Case) -> bool:
    """Accept only the plan's own build: other sources mix them, and the local part of the version tells them apart."""
    local = _version(wheel).local
    if plan.variant == AMD_INDEX:
        return local is None or local.startswith("rocm")
    if plan.variant == DEFAULT_BUILD or (plan.variant == "directml" and plan.index_url is None):
        return local is None
    wanted = "cpu" if plan.backend is Backend.DIRECTML else plan.variant.removeprefix(NIGHTLY)
    return local == wanted or (local is None and (wheel.where == "official" or _untagged(wheel, case) == wanted))


def _untagged(wheel: Wheel, case: Case) -> str:
    """Name the build that PyPI gives without a local part: with CUDA on Linux, for the CPU on Windows."""
    target = target_of(case.machine, case.request, case.catalog)
    release = case.catalog.release(_version(wheel).public)
    if release is None or isinstance(target, Refusal):
        return ""
    return release.pypi.get(target.platform, "cpu")


def _pinned(line: str, version: str) -> str:
    """Write the exact build into the line that asks for torch."""
    return re.sub(r"^(torch(?:\[[^]]*])?)\s*[=>]=.*$", rf"\1=={version}", line)


def _version(wheel: Wheel) -> Version:
    try:
        return parse_wheel_filename(wheel.filename)[1]
    except InvalidWheelFilename:
        return Version("0")
