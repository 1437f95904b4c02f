"""Fit plans to what the package indexes really hold: confirmed, moved to what is there, refused or unchecked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from assistant.catalog import AMD_INDEX, AMD_NIGHTLY, Catalog
from assistant.catalog.rows import FAMILY
from assistant.i18n import Message, Text, _
from assistant.model.machine import Machine
from assistant.model.plan import Backend, Plan, Planning, Rejection, Request, Wheel
from assistant.model.record import Record, replace
from assistant.plan.candidates import reject
from assistant.plan.planner import NIGHTLY, make_plans
from assistant.plan.requirements import beside_mb, bundle_mb
from assistant.plan.target import Target, target_of

DEFAULT_BUILD = "pypi"  # the catalogue's tag for what `pip install torch` gets
MB = 10**6


class Lookup(Record, frozen=True):
    """What one search for torch found: the fitting wheels of `source`, or the `reason` why it could not be asked.

    `nearer` where the user's own settings name the source in PyPI's place: a mirror, as a rule. `leaks` are the servers
    ("https://host") other than the source's own that a mirror's pages lead to.
    """

    source: str
    wheels: tuple[Wheel, ...] = ()
    reason: Text = ""
    nearer: bool = False
    leaks: tuple[str, ...] = ()


class PlanInputs(NamedTuple):
    """What the plans were made from; settling plans anew where a source holds another version."""

    machine: Machine
    catalog: Catalog
    request: Request = Request()


Lookups = dict[tuple[str | None, str], Lookup]


def settle(planning: Planning, lookups: Lookups, inputs: PlanInputs) -> Planning:
    """Settle each plan by `lookups`: per index address (None: pip's own sources) and Python version what was found.

    The order is kept. A plan for a GPU whose wheel is nowhere, where everything could be asked, is rejected; the plan
    for the CPU stays, and where its build cannot be confirmed, PyPI's default build is offered as the last plan.
    """
    plans: list[Plan] = []
    rejected: list[Rejection] = []
    for plan in planning.plans:
        nightly = plan.variant.startswith(NIGHTLY)
        answer = _newest_nightly(plan, lookups, inputs) if nightly else _settled(plan, lookups, inputs)
        if isinstance(answer, Rejection):
            rejected.append(answer)
        else:
            plans.append(answer)
    if plans and plans[0].backend is Backend.CPU and rejected:
        plans[0] = replace(plans[0], warnings=(*plans[0].warnings, *(refusal.why for refusal in rejected)))
    last = plans[-1] if plans else None
    if last and last.backend is Backend.CPU and last.index_url and last.wheel is None:
        plans.append(_default_build(last, lookups[None, last.python], inputs))
    answers = (*rejected, *planning.rejected)
    return replace(planning, plans=tuple(plans), choice=plans[0] if plans else None, rejected=answers)


def brings_cuda(plan: Plan) -> bool:
    """Return whether a plan for the CPU takes PyPI's default build, which on Linux brings CUDA along."""
    return plan.backend is Backend.CPU and plan.variant == DEFAULT_BUILD


def with_sizes(planning: Planning, sizes: dict[str, int], inputs: PlanInputs) -> Planning:
    """Replace the estimated downloads by the wheels' true sizes (bytes by address)."""
    plans = []
    for plan in planning.plans:
        wheel = plan.wheel
        size = wheel and (wheel.size or sizes.get(wheel.url))
        if wheel and size:
            beside = beside_mb(plan.backend, plan.variant, inputs.machine.os or "linux", inputs.catalog)
            bundle = bundle_mb(inputs.request.bundle)
            own = None if beside is None or bundle is None else round(size / MB) + beside + bundle
            whole = plan.download_mb if own is None else own
            plan = replace(plan, wheel=replace(wheel, size=size), download_mb=whole)  # noqa: PLW2901 - the same plan, sized
        plans.append(plan)
    return replace(planning, plans=tuple(plans), choice=plans[0] if plans else None)


def _default_build(plan: Plan, configured: Lookup, inputs: PlanInputs) -> Plan:
    """Offer, as the very last, what can be had anywhere; nobody takes it without being asked."""
    warning = _("This is PyPI's default build: it brings several GB of CUDA libraries and still computes on the CPU.")
    bare = replace(
        plan, variant=DEFAULT_BUILD, index_url=None, download_mb=None, reasons=(), warnings=(warning,), wheel=None
    )
    wheel = _exact(bare, configured, inputs)
    return replace(bare, wheel=wheel, reasons=(_confirmed(wheel),)) if wheel else bare


def _settled(plan: Plan, lookups: Lookups, inputs: PlanInputs) -> Plan | Rejection:
    """Take the plan's own index first, then pip's sources; in each the planned version, else the newest that fits.

    A nearer source that holds the very build goes before both. Where torch's own index is silent, what PyPI serves is
    planned anew: another CUDA may run here, too.
    """
    official, own = lookups[plan.index_url, plan.python], lookups[None, plan.python]
    if own.nearer and own is not official and (wheel := _exact(plan, own, inputs)):
        return _tied(plan, wheel, own, official)
    asked = [lookups[address, plan.python] for address in dict.fromkeys((plan.index_url, None))]
    for lookup in asked:
        if wheel := _exact(plan, lookup, inputs):
            return _tied(plan, wheel, lookup, official)
        fitting = [one for one in lookup.wheels if _suits(plan, one, inputs) and not _version(one).is_prerelease]
        for wheel in sorted(fitting, key=_version, reverse=True):
            if again := _planned_anew(plan, wheel, inputs, plan.variant):
                return _tied(again, wheel, lookup, official, wanted=plan.torch)
    if official.reason and plan.backend is Backend.CUDA and (found := _with_pypis_build(plan, own, inputs)):
        return _tied(*found, own, official)
    silent = next((lookup for lookup in asked if lookup.reason), None)
    if silent or plan.backend is Backend.CPU:
        warning = _unchecked(silent) if silent else _nothing(plan, official)
        return replace(plan, warnings=(*plan.warnings, warning))
    help_ = _("Name another index, or wait until the build is published.", option="--index-url")
    return reject(plan.backend, "not-in-index", _nothing(plan, official), help_, plan.variant)


def _newest_nightly(plan: Plan, lookups: Lookups, inputs: PlanInputs) -> Plan | Rejection:
    """Take the newest nightly build that the plan's own index holds for this machine."""
    lookup = lookups[plan.index_url, plan.python]
    least = Version(plan.torch)
    fitting = [wheel for wheel in lookup.wheels if _suits(plan, wheel, inputs) and _version(wheel) >= least]
    if fitting:
        wheel = max(fitting, key=_version)
        return replace(_tied(plan, wheel, lookup, lookup, wanted=plan.torch), torch=_version(wheel).public)
    if lookup.reason:
        return replace(plan, warnings=(*plan.warnings, _unchecked(lookup)))
    return reject(plan.backend, "not-in-index", _nothing(plan, lookup), variant=plan.variant)


def _unchecked(lookup: Lookup) -> Message:
    return _("Not checked: {source} cannot be reached ({reason}).", source=lookup.source, reason=lookup.reason)


def _nothing(plan: Plan, lookup: Lookup) -> Message:
    return _(
        "{source} holds no {variant} build of torch that fits Python {python} on this machine.",
        source=lookup.source,
        variant=plan.variant,
        python=plan.python,
    )


def _tied(plan: Plan, wheel: Wheel, lookup: Lookup, official: Lookup, wanted: str = "") -> Plan:
    """Tie a plan to the wheel that was found: its exact build where other builds lie beside it, and the reasons."""
    reasons = [*plan.reasons, _confirmed(wheel)]
    if lookup is not official and official.reason:
        reasons.append(_("{source} cannot be reached ({reason}).", source=official.source, reason=official.reason))
    elif lookup is not official and lookup.nearer:
        reasons.append(_("{source}, which your settings name, holds this very build.", source=lookup.source))
    elif lookup is not official:
        reasons.append(_("{source} does not hold this build.", source=official.source))
    elif wanted:
        reasons.append(_("{source} does not hold torch {wanted}.", source=lookup.source, wanted=wanted))
    requirements = plan.requirements
    if wanted or wheel.where != "official":  # the line that asks for torch names the exact build
        exact = rf"\1=={_version(wheel)}"
        requirements = tuple(re.sub(r"^(torch(?:\[[^]]*])?)\s*[=>]=.*$", exact, line) for line in requirements)
    leaks = [
        _(
            "{source} redirects downloads to {server}; they fail if only the mirror is reachable.",
            source=lookup.source,
            server=server,
        )
        for server in lookup.leaks
        if wheel.url.startswith(f"{server}/")
    ]
    return replace(
        plan,
        wheel=wheel,
        index_url=plan.index_url if lookup is official else None,
        requirements=requirements,
        reasons=tuple(reasons),
        warnings=(*plan.warnings, *leaks[:1]),
    )


def _confirmed(wheel: Wheel) -> Message:
    """Return the sentence that names where the wheel lies: a server or a folder."""
    server = re.match(r"\w+://([^/]+)/", wheel.url)
    place = server[1] if server else wheel.url.rpartition("/")[0].removeprefix("file://")
    return _("Confirmed: {file} is at {place}.", file=wheel.filename, place=place)


def _exact(plan: Plan, lookup: Lookup, inputs: PlanInputs) -> Wheel | None:
    wheels = (wheel for wheel in lookup.wheels if _version(wheel).public == plan.torch)
    return next((wheel for wheel in wheels if _suits(plan, wheel, inputs)), None)


def _planned_anew(plan: Plan, wheel: Wheel, inputs: PlanInputs, variant: str) -> Plan | None:
    """Plan for the version and the build that is there: it has its own reasons, or does not fit at all."""
    local = f"+{variant}" if variant != plan.variant else ""
    pins = (*inputs.request.pins, f"torch=={_version(wheel).public}{local}")
    request = replace(inputs.request, backend=plan.backend, python=plan.python, pins=pins)
    found = make_plans(inputs.machine, inputs.catalog, request).plans
    again = next((other for other in found if (other.backend, other.variant) == (plan.backend, variant)), None)
    return again and replace(again, index_url=plan.index_url)


def _with_pypis_build(plan: Plan, own: Lookup, inputs: PlanInputs) -> tuple[Plan, Wheel] | None:
    """Plan for the newest build without a local tag, which is PyPI's, where the machine runs that one, too."""
    for wheel in sorted(own.wheels, key=_version, reverse=True):
        build = _pypis_build(wheel, inputs)
        if build and not _version(wheel).is_prerelease and (again := _planned_anew(plan, wheel, inputs, build)):
            return again, wheel
    return None


def _suits(plan: Plan, wheel: Wheel, inputs: PlanInputs) -> bool:
    """Accept only the plan's own build: other sources mix them, and the local part of the version tells them apart.

    A wheel without a local part is what PyPI holds, which on Linux is a CUDA build, on Windows the one for the CPU.
    """
    local = _version(wheel).local
    if plan.variant in (AMD_INDEX, AMD_NIGHTLY):
        return local.startswith("rocm") if local else wheel.where == "official"
    if plan.variant == DEFAULT_BUILD or (plan.variant == "directml" and plan.index_url is None):
        return local is None
    wanted = "cpu" if plan.backend is Backend.DIRECTML else plan.variant.removeprefix(NIGHTLY)
    if local is not None or wheel.where == "official":
        return local in (None, wanted)
    return _pypis_build(wheel, inputs) == wanted


def _pypis_build(wheel: Wheel, inputs: PlanInputs) -> str:
    """Return the build that a wheel without a local tag is on this platform, "cu132"; "" for one with a tag."""
    target = target_of(inputs.machine, inputs.request, inputs.catalog)
    if _version(wheel).local is not None or not isinstance(target, Target):
        return ""
    return inputs.catalog.build_of(_version(wheel).public, "pypi", target.platform)


def _version(wheel: Wheel) -> Version:
    try:
        return parse_wheel_filename(wheel.filename)[1]
    except InvalidWheelFilename:
        return Version("0")


Looks = Mapping[tuple[str, str], Lookup]  # by package and Python version, in pip's own sources


def companions_to_find(planning: Planning) -> set[tuple[str, str]]:
    """Return the companions of torch, with the plan's Python, of which pip's own sources must hold the same build."""
    return {
        (name, plan.python)
        for plan in planning.plans
        if _local(plan)
        for name in FAMILY
        if _line(name, plan) is not None
    }


def with_companions(planning: Planning, looks: Looks, inputs: PlanInputs) -> Planning:
    """Tie each companion to torch's own build; one that no source holds is left out, unless the user pinned it."""
    plans = tuple(_fitted(plan, looks, inputs) if _local(plan) else plan for plan in planning.plans)
    return replace(planning, plans=plans, choice=plans[0] if plans else None)


def _fitted(plan: Plan, looks: Looks, inputs: PlanInputs) -> Plan:
    lines, warnings, build = list(plan.requirements), list(plan.warnings), _local(plan)
    pinned = {canonicalize_name(Requirement(pin).name) for pin in inputs.request.pins}
    for name in FAMILY:
        need, look = _line(name, plan), looks.get((name, plan.python))
        if need is None or look is None or _is_default(plan, inputs):
            continue
        place = lines.index(str(need))
        found = [version for version in map(_version, look.wheels) if version.local == build]
        if any(need.specifier.contains(version) for version in found) or name in pinned:
            lines[place] = f"{need}+{build}"
        else:
            del lines[place]
            warnings.append(_left_out(need, build, look))
    return replace(plan, requirements=tuple(lines), warnings=tuple(warnings))


def _left_out(need: Requirement, build: str, look: Lookup) -> Message:
    if look.reason:
        text = _("{package} is left out: {source} could not be asked for it ({reason}).")
        return text.format(package=need, source=look.source, reason=look.reason)
    text = _("{package} is left out: none of your package sources has it for the {build} build of torch.")
    return text.format(package=need, build=build)


def _is_default(plan: Plan, inputs: PlanInputs) -> bool:
    """Return whether PyPI's build for this system is the plan's own."""
    target = target_of(inputs.machine, inputs.request, inputs.catalog)
    build = inputs.catalog.build_of(plan.torch, "pypi", target.platform) if isinstance(target, Target) else ""
    return build == _local(plan)


def _local(plan: Plan) -> str:
    """Return the build of a torch that does not come from its own index, such as "cpu"; "" for any other."""
    wheel = plan.wheel if plan.index_url is None else None
    return (_version(wheel).local or "") if wheel else ""


def _line(name: str, plan: Plan) -> Requirement | None:
    lines = (Requirement(line) for line in plan.requirements)
    return next((need for need in lines if canonicalize_name(need.name) == name), None)
