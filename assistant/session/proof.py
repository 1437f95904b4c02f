"""Both sides of a decision in words: which package needs which torch, and what the hardware says to that."""

from __future__ import annotations

from packaging.requirements import Requirement
from packaging.version import Version

from assistant.catalog.companions import build_needs, unpaired
from assistant.i18n import Message, Text, _
from assistant.install import Need
from assistant.model.plan import Backend, Plan, Planning
from assistant.model.record import replace
from assistant.plan import Band, card_name, make_plans, name_of, question, without_overwritten
from assistant.session.outcome import CORE, Outcome
from assistant.session.search import Search

_MOST = 3  # chosen: sentences of one kind


def told(search: Search, outcome: Outcome) -> Planning:
    """Return the plan that holds with the reasons for it, other plans for the same torch, and what was passed over."""
    case, trial = search.case, outcome.trial
    plan = (outcome.plan and search.fit(outcome.plan)) or outcome.plan
    assert plan  # noqa: S101 - an outcome that holds has one
    bounds = (line for line in search.bounds_of(question(Band((plan,)), *case)) if name_of(line) in trial.versions)
    lines, overwritten = without_overwritten(search.lines_of(plan), trial.versions, search.own)
    chosen = replace(
        plan,
        requirements=lines,
        reasons=(*_needs(search, outcome), *plan.reasons),
        warnings=(*plan.warnings, *_warnings(search, outcome, plan), *overwritten),
        constraints=tuple(dict.fromkeys((*plan.constraints, *bounds))),
        apart=search.apart,
    )
    pinned = replace(case.request, pins=(*case.request.pins, f"torch=={plan.torch}"))
    others = make_plans(case.machine, case.catalog, pinned).plans
    beside = tuple(one for one in others if one.backend is not plan.backend) if plan.backend is not Backend.CPU else ()
    return Planning(choice=chosen, plans=(chosen, *beside), rejected=make_plans(*case).rejected)


def needs_torch(need: Need) -> Message:
    """Say what a package needs of torch."""
    return _("{package} {version} needs torch {need}.", package=need.package, version=need.version, need=need.text)


def on_gpu(search: Search) -> list[Plan]:
    """Return the plans that the hardware allows for a GPU."""
    return [rung for rung in search.rungs if rung.backend is not Backend.CPU]


def hardware_side(search: Search) -> Message:
    """Say for which releases of torch the machine's GPU has builds."""
    gpu = on_gpu(search)
    torches = sorted({rung.torch for rung in gpu}, key=Version)
    return _(
        "{card} has builds of torch {oldest} to {newest} here.",
        card=card_name(search.case.machine, gpu[0].backend) or gpu[0].backend.title,
        oldest=torches[0],
        newest=torches[-1],
    )


def _deciding(search: Search, outcome: Outcome) -> list[Need]:
    """Return the needs that exclude the best torch which the hardware allows."""
    found = [need for need in outcome.needs if not need.allows(search.rungs[0].torch)]
    return [need for need in found if need.package not in CORE] or found


def _needs(search: Search, outcome: Outcome) -> tuple[Text, ...]:
    return tuple(map(needs_torch, _deciding(search, outcome)[:_MOST]))


def _warnings(search: Search, outcome: Outcome, plan: Plan) -> list[Text]:
    found: list[Text] = []
    deciding, versions = _deciding(search, outcome), outcome.trial.versions
    if plan.backend is Backend.CPU and on_gpu(search):
        found.append(hardware_side(search))
        packages = ", ".join(dict.fromkeys(need.package for need in deciding))
        if packages:
            text = _("So the plan is for the CPU: other versions of {packages} may open the GPU.", packages=packages)
            found.append(text)
    for need in outcome.given_up[:_MOST]:
        text = _("{need} With this torch, {package} {older} is taken.")
        found.append(text.format(need=needs_torch(need), package=need.package, older=versions[need.package]))
    found += [to_build(name) for name in search.without]
    if search.is_blind(plan):
        text = _("Not checked: {source} cannot be reached; PyPI's torch {torch} stood in for its own.")
        found.append(text.format(source=plan.index_url or search.blind, torch=plan.torch))
    return [*found, *_mismatched(search, outcome, plan)]


def _mismatched(search: Search, outcome: Outcome, plan: Plan) -> list[Text]:
    """Say what is known to go with another torch alone, and is taken all the same as nothing else can be had."""
    versions = outcome.trial.versions
    lost = unpaired((name for name in versions if name != "torch"), plan.torch)
    giving_way = map(Requirement, search.giving_way(question(Band((plan,)), *search.case)))
    text = _("torch {torch} goes with {need}, but {package} {version} is taken: it may fail when it is imported.")
    others = (
        text.format(torch=plan.torch, need=need, package=need.name, version=versions[need.name])
        for need in giving_way
        if need.name in versions and not need.specifier.contains(versions[need.name], prereleases=True)
        if not unpaired((need.name,), plan.torch)
    )
    return [*lost, *others]


def to_build(name: str) -> Message:
    """Say that a package would be built from source, and what that needs."""
    needs = build_needs(name)
    tools = ["C++", *(["nvcc"] if needs.nvcc else []), *needs.requires] if needs else []
    text = _("{name} has no wheel for this system and Python: it would be built from source, with your consent.")
    if tools:
        text = _("{name} has no wheel for this system and Python: a build from source needs your consent and {tools}.")
    return text.format(name=name, tools=", ".join(tools), option=f"--build-from-source {name}")
