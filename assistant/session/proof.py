"""Both sides of a decision in words: which package needs which torch, and what the hardware says to that."""

from __future__ import annotations

from packaging.requirements import Requirement
from packaging.version import Version

from assistant.catalog.companions import required_by_torch, unpaired
from assistant.catalog.rows import CORE
from assistant.i18n import Message, Text, _
from assistant.install import Need
from assistant.model.plan import Backend, Plan, Planning
from assistant.model.record import replace
from assistant.model.requirement import name_of
from assistant.plan import Band, card_name, question, without_overwritten
from assistant.session.outcome import Outcome
from assistant.session.search import Search

_MOST = 3  # chosen: sentences of one kind


def explained(search: Search, outcome: Outcome) -> Planning:
    """Return the plan that holds with the reasons for it, other plans for the same torch, and what was passed over."""
    case, trial = search.case, outcome.trial
    plan = (outcome.plan and search.fit(outcome.plan)) or outcome.plan
    assert plan  # noqa: S101 - an outcome that holds has one
    asked = question(Band(plan), *case)
    bounds = (line for line in search.bounds_of(asked) if name_of(line) in trial.versions)
    lines, overwritten = without_overwritten(search.lines_of(plan), trial.versions, search.names_asked(plan))
    # An index of torch's serves only what is asked for by name, and no other has these.
    of_torch = (*(line for line in asked.requirements if required_by_torch(name_of(line))), *outcome.terms.named)
    chosen = replace(
        plan,
        requirements=tuple(dict.fromkeys((*lines, *(of_torch if plan.backend is not Backend.CPU else ())))),
        reasons=(*_needs(search, outcome), *plan.reasons),
        warnings=(
            *plan.warnings,
            *_warnings(search, outcome, plan),
            *_mismatched(search, outcome, asked),
            *overwritten,
        ),
        constraints=tuple(dict.fromkeys((*plan.constraints, *bounds))),
        apart=outcome.terms.apart,
    )
    others = search.ladder.plans_for(plan.torch) if plan.backend is not Backend.CPU else ()
    beside = filter(None, (search.fit(one) for one in others if one.backend is not plan.backend))
    return Planning(choice=chosen, plans=(chosen, *beside), rejected=search.ladder.planning.rejected)


def needs_torch(need: Need) -> Message:
    """Say what a package needs of torch."""
    return _("{package} {version} needs torch {need}.", package=need.package, version=need.version, need=need.text)


def on_gpu(search: Search) -> list[Plan]:
    """Return the plans that the hardware allows for a GPU."""
    return [plan for plan in search.ladder if plan.backend is not Backend.CPU]


def hardware_side(search: Search) -> Message:
    """Say for which releases of torch the machine's GPU has builds."""
    gpu = on_gpu(search)
    torches = sorted({plan.torch for plan in gpu}, key=Version)
    return _(
        "Torch {oldest} to {newest} can use {card} on this machine.",
        card=card_name(search.case.machine, gpu[0].backend) or gpu[0].backend.title,
        oldest=torches[0],
        newest=torches[-1],
    )


def _deciding(search: Search, outcome: Outcome) -> list[Need]:
    """Return the needs that exclude the best torch which the hardware allows."""
    found = [need for need in outcome.needs if not need.allows(search.ladder.best.torch)]
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
            text = _(
                "So the plan is for the CPU: other versions of {packages} may make the GPU usable.", packages=packages
            )
            found.append(text)
    for need in outcome.given_up[:_MOST]:
        text = _("{need} For this torch the plan takes {package} {older}.")
        found.append(text.format(need=needs_torch(need), package=need.package, older=versions[need.package]))
    if search.is_blind(plan):
        text = _("Not checked: {source} could not be asked for this build, and PyPI's torch {torch} stood in for it.")
        found.append(text.format(source=plan.index_url or search.blind, torch=plan.torch))
    return found


def _mismatched(search: Search, outcome: Outcome, asked: Plan) -> list[Text]:
    """Say what is known to go with another torch alone, and is taken all the same as nothing else can be had."""
    versions, torch = outcome.trial.versions, asked.torch
    lost = unpaired((name for name in versions if name != "torch"), torch)
    left_out = (line for line in asked.requirements if name_of(line) in outcome.terms.left_out)
    giving_way = map(Requirement, (*search.giving_way(asked), *left_out))
    text = _("torch {torch} works with {need}, but the plan takes {package} {version}: importing it may fail.")
    others = (
        text.format(torch=torch, need=need, package=need.name, version=versions[need.name])
        for need in giving_way
        if need.name in versions and not need.specifier.contains(versions[need.name], prereleases=True)
        if not unpaired((need.name,), torch)
    )
    return [*lost, *others]
