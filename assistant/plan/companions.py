"""torchvision and torchaudio beside a torch that does not come from its own index: the same build, or none.

PyPI's torchvision for Linux is made for PyPI's torch, which computes with CUDA; beside a build for the CPU its import
fails ("operator torchvision::nms does not exist").
"""

from __future__ import annotations

from collections.abc import Mapping

from packaging.requirements import Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from assistant.catalog.rows import FAMILY
from assistant.i18n import Message, _
from assistant.model.plan import Plan, Planning
from assistant.model.record import replace
from assistant.plan.availability import Lookup, PlanInputs
from assistant.plan.target import Target, target_of

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
        found = [version for version in map(_version, _filenames(look)) if version.local == build]
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
    return (_version(wheel.filename).local or "") if wheel else ""


def _line(name: str, plan: Plan) -> Requirement | None:
    lines = (Requirement(line) for line in plan.requirements)
    return next((need for need in lines if canonicalize_name(need.name) == name), None)


def _filenames(look: Lookup) -> list[str]:
    return [wheel.filename for wheel in look.wheels]


def _version(filename: str) -> Version:
    try:
        return parse_wheel_filename(filename)[1]
    except InvalidWheelFilename:
        return Version("0")
