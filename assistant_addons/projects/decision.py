"""One decision of hardware and packages: what the planner allows, in its order, is put to the resolver as a whole."""

from __future__ import annotations

from assistant.api import Message, NothingFits, WorkFailed, _, render, replace
from assistant.api.planning import PlanInputs, Tools, warn_unchecked, with_python_reason
from assistant.api.records import Planning
from assistant_addons.projects.builds import Band
from assistant_addons.projects.companions import with_needs
from assistant_addons.projects.proof import explained, otherwise
from assistant_addons.projects.search import Search

# Chosen: what is assumed of a system whose version is not given, which is RHEL 8 or the first macOS with MPS, and a
# usual one of today.
_TAGS = {"glibc": "manylinux", "macOS": "macosx"}  # how the tags of wheels for them begin
_ASSUMED = {"glibc": ("2.28", "2.39"), "macOS": ("14.0", "15.0")}


def decide(planning: Planning, case: PlanInputs, tools: Tools) -> Planning:
    """Search for the whole set, for the Python of the best plan; else add what is known where nobody can tell.

    Of a nightly build nobody knows what goes with it. Where the machine's glibc or macOS is not known, an old one is
    assumed, and said; a set that only a newer one opens is planned for that, and what holds for the older one is said.
    """
    planning = with_needs(planning, case)
    if planning.choice is None or case.request.nightly:
        return planning
    machine = case.machine
    if machine.os == "macos" and not machine.os_version:
        name, field = "macOS", "os_version"
    elif machine.os in (None, "linux") and not (machine.glibc or machine.libc):
        name, field = "glibc", "glibc"
    else:
        return _decided(planning, case, tools)
    older, newer = _ASSUMED[name]
    found = _decided(planning, case._replace(machine=replace(machine, **{field: older})), tools)
    if found.choice:
        text = _("The version of {name} is not given; {version} was assumed.", "system-version-assumed")
        return _warned(found, text.format(name=name, version=older))
    why = render(found.rejected[0].why)
    if f"{_TAGS[name]}_" not in why:  # no wheel is for another system's version
        return found
    again = _decided(planning, case._replace(machine=replace(machine, **{field: newer})), tools)
    if again.choice is None:
        return found
    text = _(
        "The version of {name} is not given: this is the plan from {newer} on. For {older}: {why}",
        "system-version-decides",
    )
    return _warned(again, text.format(name=name, newer=newer, older=older, why=why))


def _warned(planning: Planning, warning: Message) -> Planning:
    """Return the plans with one more warning each."""
    plans = tuple(replace(plan, warnings=(*plan.warnings, warning)) for plan in planning.plans)
    return replace(planning, plans=plans, choice=plans[0] if plans else None)


def _decided(planning: Planning, case: PlanInputs, tools: Tools) -> Planning:
    """Return the plan that holds, or why none does; the plans as they are, with a warning, where nobody can tell."""
    assert planning.choice  # noqa: S101 - `decide` looked
    python = planning.choice.python
    search = Search(case._replace(request=replace(case.request, python=python)), tools, planning)
    try:
        outcome = search.run() or search.answer(Band(planning.choice, (planning.choice.torch,)))
        if outcome.trial.unchecked:
            return warn_unchecked(planning, outcome.trial.unchecked)
        if outcome.plan is None or outcome.lessons.only_source:
            return otherwise(search, outcome, case)
    except NothingFits:
        raise
    except WorkFailed as error:  # uv knows no such platform, or may not be used
        return warn_unchecked(planning, error.message)
    found = explained(search, outcome)
    here = case.machine.python
    if here and not case.request.python and not here.startswith(python):
        return with_python_reason(found, here, case.request)
    return found
