"""A decision in words: which package needs which torch, what the hardware says to that, and what would help."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from assistant.api import Message, Text, _, replace, sentences
from assistant.api.planning import (
    CORE,
    Catalog,
    PlanInputs,
    Target,
    Unsolved,
    all_names,
    card_name,
    carried_by_torch_index,
    find_clashes,
    find_companion,
    find_target,
    is_required_by_torch,
    name_of,
    number,
    other_pythons,
    requirement,
    unpaired_warnings,
    wheel_sources,
    with_python_reason,
)
from assistant.api.records import Backend, Machine, Plan, Planning, Rejection, Request
from assistant.api.texts import command_line
from assistant_addons.projects.builds import question
from assistant_addons.projects.search import Outcome, Search, source_of, within_all
from assistant_addons.projects.trial import Need, Trial

_MOST = 3  # chosen: sentences of one kind


def explained(search: Search, outcome: Outcome) -> Planning:
    """Return the plan that holds with the reasons for it, other plans for the same torch, and what was passed over."""
    case, trial = search.case, outcome.trial
    plan = outcome.plan
    assert plan  # noqa: S101 - an outcome that holds has one
    asked = question([plan], *case, exact=True)
    bounds = (line for line in search.bounds_of(asked) if name_of(line) in trial.versions)
    lines, overwritten = without_overwritten(search.lines_of(plan), trial.versions, search.names_asked(plan))
    # An index of torch's serves only what is asked for by name, and no other has these.
    of_torch = (*(line for line in asked.requirements if is_required_by_torch(name_of(line))), *outcome.lessons.named)
    needless = not (outcome.needs or CORE & search.own_names)
    text = _("Nothing that you ask for needs torch; the plan brings it all the same.")
    chosen = replace(
        plan,
        requirements=tuple(dict.fromkeys((*lines, *(of_torch if plan.backend is not Backend.CPU else ())))),
        reasons=(
            *map(needs_torch, _deciding(search, outcome)[:_MOST]),
            *([text] if needless else ()),
            *plan.reasons,
        ),
        warnings=(
            *plan.warnings,
            *_warnings(search, outcome, plan),
            *_mismatched(search, outcome, asked),
            *overwritten,
        ),
        constraints=tuple(dict.fromkeys((*plan.constraints, *bounds))),
        apart=outcome.lessons.apart,
    )
    others = [one for one in search.builds if one.torch == plan.torch and one.backend is not plan.backend]
    beside = (search.by_its_build(one) for one in others if plan.backend is not Backend.CPU)
    return Planning(choice=chosen, plans=(chosen, *beside), rejected=search.planning.rejected)


def needs_torch(need: Need) -> Message:
    """Say what a package needs of torch."""
    return _("{package} {version} needs torch {need}.", package=need.package, version=need.version, need=need.text)


def on_gpu(search: Search) -> list[Plan]:
    """Return the plans that the hardware allows for a GPU."""
    return [plan for plan in search.builds if plan.backend is not Backend.CPU]


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
    found = [need for need in outcome.needs if not need.allows(search.builds[0].torch)]
    return [need for need in found if need.package not in CORE] or found


def _warnings(search: Search, outcome: Outcome, plan: Plan) -> list[Text]:
    found: list[Text] = []
    deciding, versions = _deciding(search, outcome), outcome.trial.versions
    if plan.backend is Backend.CPU and on_gpu(search):
        found.append(hardware_side(search))
        packages = ", ".join(dict.fromkeys(need.package for need in deciding))
        if packages:
            text = _("So the plan is for the CPU: other versions of {packages} may make the GPU usable.")
            found.append(text.format(packages=packages))
    for need in outcome.passed_over[:_MOST]:
        text = _("{need} For this torch the plan takes {package} {older}.")
        found.append(text.format(need=needs_torch(need), package=need.package, older=versions[need.package]))
    text = _("Not checked: {wheel} cannot be reached, so that nobody knows whether it goes with the rest.")
    found += [text.format(wheel=line) for line in sorted(search.unreachable)]
    if search.is_silent(plan):
        text = _("Not checked: {source} could not be asked for this build, and PyPI's torch {torch} stood in for it.")
        found.append(text.format(source=source_of(plan), torch=plan.torch))
    return found


def _mismatched(search: Search, outcome: Outcome, asked: Plan) -> list[Text]:
    """Say what is known to go with another torch alone, and is taken all the same as nothing else can be had."""
    versions, torch = outcome.trial.versions, asked.torch
    lost = unpaired_warnings((name for name in versions if name != "torch"), torch)
    left_out = (line for line in asked.requirements if name_of(line) in outcome.lessons.left_out)
    giving_way = map(Requirement, (*search.giving_way(asked), *left_out))
    text = _("torch {torch} works with {need}, but the plan takes {package} {version}: importing it may fail.")
    others = (
        text.format(torch=torch, need=need, package=need.name, version=versions[need.name])
        for need in giving_way
        if need.name in versions and not need.specifier.contains(versions[need.name], prereleases=True)
        if not unpaired_warnings((need.name,), torch)
    )
    return [*lost, *others]


_MOST_PYTHONS = 3  # chosen: each may take a resolver's run or two
_MOST_CHANGES = 6  # chosen: likewise
_MOST_NEAR = 2  # chosen: likewise
_LIKE = 0.75  # chosen: "torchvison" is so near to "torchvision" (0.95), and "trl" not to "tri" (0.67)


def refused(search: Search, trial: Trial, case: PlanInputs) -> Planning:
    """Return the planning for a set that does not hold: with another Python where one opens it, else why.

    `case` is as the user gave it: a Python that is fixed there is only pointed out.
    """
    if unknown := _unknown(search, trial):
        return _planning(search, "name-unknown", *unknown)
    if not isinstance(trial.words, str):  # an index of the user's own lacks the build
        help_ = _("Name another index, or wait until the build is published.", option="--index-url")
        return _planning(search, "not-in-index", trial.words, help_)
    if _python_matters(search, trial) and (found := _with_another_python(search, trial, case)):
        return found
    if trial.builds:
        return _only_source(search, trial)
    return _planning(search, "set-does-not-fit", _quarrel(search, trial), _smallest_change(search, trial))


def _planning(search: Search, key: str, why: Text, would_help: Text) -> Planning:
    best = search.builds[0]
    rejection = Rejection(backend=best.backend, variant=best.variant, why=why, would_help=would_help, key=key)
    return Planning(rejected=(rejection,))


def _unknown(search: Search, trial: Trial) -> tuple[Message, Text] | None:
    """Name what no source has, and the nearest real name; None where a source did not let anyone look."""
    missing = trial.refusal.missing if trial.refusal and not trial.refusal.locked_out else ()
    for name in (one for one in missing if not carried_by_torch_index(one)):
        asker = next((need.package for need in trial.trace.needs if need.on == name), "")
        text = (
            _("None of your package sources has {name}, which {asker} needs.")
            if asker
            else _("None of your package sources has a package named {name}.")
        )
        return text.format(name=name, asker=asker), _nearest(name, search)
    return None


def _nearest(name: str, search: Search) -> Text:
    """Propose the real name that is nearest to one that nobody has."""
    known = {*all_names(), *search.case.catalog.packages}
    if near := difflib.get_close_matches(name, sorted(known), n=1, cutoff=_LIKE):
        return _("Did you mean {name}?", name=near[0])
    return _("Check the name, or name the index that has it.")


def _only_source(search: Search, trial: Trial) -> Planning:
    """Say what a build by hand takes of all that has no wheel, and where others keep one for which torch."""
    names, more, rest = list(trial.builds), True, None
    while more and search.may_ask:  # the resolver stops at the first, so the rest is asked for without those
        request = search.case.request
        pins = tuple(pin for pin in request.pins if name_of(pin) not in names)
        never = tuple(f"{name} ; sys_platform == 'never'" for name in names)
        rest = search.again(replace(request, pins=pins, overrides=(*request.overrides, *never))).run()
        found = [name for name in rest.trial.builds if name not in names] if rest else []
        names, more = names + found, bool(found)
    by_text: dict[Message, list[str]] = {}
    for name in names:
        by_text.setdefault(_to_compile(name, search.builds[0].backend), []).append(name)
    why: list[Message] = [text.format(names=", ".join(few)) for text, few in by_text.items()]
    for name in names:
        pages = (wheel_pages(name, one, search.case.machine, search.case.catalog) for one in search.builds)
        why += next(filter(None, pages), [])
    help_: Message | str = ""
    if rest and rest.plan:
        text = _(
            "Everything else fits torch {torch} ({variant}): leave {names} out, and if you trust the authors, install "
            "what is left out afterwards with `{command}`, which runs their code."
        )
        command, said = command_line(["pip", "install", *names]), {"torch": rest.torch, "variant": rest.plan.variant}
        help_ = text.format(names=", ".join(names), command=command, **said)
    elif rest and rest.trial.refusal:
        why.append(_words(rest.trial))
    return _planning(search, "needs-build", sentences(why), sentences((Unsolved.ONLY_SOURCE_HINT, help_)))


def _to_compile(name: str, backend: Backend) -> Message:
    """Say what a build by hand takes of {names}, as far as the tables tell of one of them."""
    row = find_companion(name)
    compiler = row.compiler if row else ""
    if compiler == "nvcc" or (compiler == "nvcc-for-cuda" and backend is Backend.CUDA):
        return _(
            "There is no wheel of {names} for this system and Python, only source: it would have to be compiled by "
            "hand, with a C++ compiler and nvcc of the CUDA version of PyTorch."
        )
    if compiler:
        return _(
            "There is no wheel of {names} for this system and Python, only source: it would have to be compiled by "
            "hand, with a C++ compiler."
        )
    return _("There is no wheel of {names} for this system and Python, only source: it would have to be built by hand.")


def _python_matters(search: Search, trial: Trial) -> bool:
    """Return whether another Python may open the set: a wheel is for another one, or the torch that is wanted is."""
    if trial.builds or (trial.refusal and trial.refusal.pythons):
        return True
    needs = trial.trace.first_needs
    here = {plan.torch for plan in search.builds}
    elsewhere = [row.version for row in search.case.catalog.releases if row.version not in here]
    return bool(needs) and any(all(need.allows(torch) for need in needs) for torch in elsewhere)


def _with_another_python(search: Search, trial: Trial, case: PlanInputs) -> Planning | None:
    """Return the plans with another Python that opens the set; where the user fixed theirs, the reason and the hint."""
    own = search.case.request.python or ""
    free = replace(case.request, python=None)
    held = trial.refusal.others if trial.refusal else ()
    every = other_pythons(replace(case.machine, python=own), free, case.catalog)
    others = (python for python in every if not held or python in held)
    for _try, python in zip(range(_MOST_PYTHONS), others, strict=False):
        again = search.again(replace(free, python=python))
        outcome = again.run() if again.builds and again.may_ask else None
        if outcome is None or outcome.plan is None:
            if outcome and outcome.trial.builds and not trial.builds:
                return _only_source(again, outcome.trial)
            continue
        if case.request.python:
            why = _("What you ask for cannot all be installed for Python {own}; for Python {python} it can.")
            help_ = _("Use Python {python}.", python=python, option=f"--python {python}")
            return _planning(search, "no-wheel-for-python", why.format(own=own, python=python), help_)
        return with_python_reason(explained(again, outcome), own, case.request)
    return None


def _quarrel(search: Search, trial: Trial) -> Message:
    """Say which packages do not go together: who needs which torch and what the GPU has, else the resolver's words."""
    needs = [need for need in trial.trace.first_needs if not need.allows(search.builds[0].torch)]
    names = trial.refusal.names if trial.refusal else ()
    if needs and any(carried_by_torch_index(name) for name in names):
        hardware = hardware_side(search) if on_gpu(search) and not _on_torch(search) else ""
        return sentences((*map(needs_torch, needs[:3]), hardware, _words(trial)))
    return _words(trial)


def _words(trial: Trial) -> Message:
    why = _("No set of packages fits this plan: {reason}", reason=trial.words)
    if not (trial.refusal and trial.refusal.elsewhere):
        return why
    name, index = trial.refusal.elsewhere
    rule = _(
        "{index} has other versions of {name}, and uv takes a package only from the first index that has it; a later "
        "one was not asked."
    )
    return sentences((why, rule.format(index=index, name=name)))


def _smallest_change(search: Search, trial: Trial) -> Message:
    """Find, among what quarrels, the line whose bound or whose absence makes the rest hold."""
    instead = _("Ask for {name} {version} instead of {line}: everything else fits that.")
    torch = _on_torch(search)
    if torch and (nearest := _nearest_torch(search, trial)):
        return instead.format(name="torch", version=nearest, line=torch)
    plan = question([search.builds[0]], *search.case, exact=True)
    named = search.own_names.intersection(trial.refusal.names if trial.refusal else ())
    needs = [(line, requirement(line)) for line in plan.requirements if name_of(line) in named]
    without = _("Leave out {name}: everything else fits without it.")
    changes = [(line, _without_versions(need), instead) for line, need in needs if need.specifier]
    changes += [(line, "", without) for line, _need in needs]
    for line, changed, text in changes[:_MOST_CHANGES]:
        if not search.may_ask:
            break
        lines = tuple(filter(None, (changed if one == line else one for one in plan.requirements)))
        answer = search.ask(replace(plan, requirements=lines))
        if answer.holds:
            name = name_of(line)
            return text.format(name=name, version=answer.versions.get(name, ""), line=line)
    return _("Allow other versions of one of the packages named here, or leave it out.")


def _without_versions(need: Requirement) -> str:
    return f"{need.name}[{','.join(sorted(need.extras))}]" if need.extras else need.name


def _nearest_torch(search: Search, trial: Trial) -> str:
    """Return the release of torch nearest to the one asked for with which all else holds, "" where none is found.

    Those are tried first that the packages which were looked at allow; last, whatever the search finds.
    """
    pins = tuple(pin for pin in search.case.request.pins if canonicalize_name(Requirement(pin).name) != "torch")
    free = search.again(replace(search.case.request, pins=pins))
    own = number(search.builds[0].torch)
    fits = within_all(trial.trace.first_needs)
    best = [plan for plan in free.builds if fits(plan.torch) and plan.variant == free.builds[0].variant]
    releases = [number(row.version) for row in search.case.catalog.releases]
    near = sorted(best, key=lambda plan: abs(releases.index(number(plan.torch)) - releases.index(own)))
    for plan in near[:_MOST_NEAR]:
        if search.may_ask and free.answer([plan]).plan:
            return plan.torch
    outcome = free.run()
    return outcome.plan.torch if outcome and outcome.plan else ""


def _on_torch(search: Search) -> str:
    """Return the user's own bound on torch, "" for none."""
    return ", ".join(str(need) for name, need in search.requested if name == "torch" and need.specifier)


def wheel_pages(name: str, plan: Plan, machine: Machine, catalog: Catalog) -> list[Message]:
    """Say where wheels of a package lie for a plan's torch, beside PyPI and torch's indexes."""
    target = find_target(machine, Request(python=plan.python), catalog)
    need = next((Requirement(line) for line in plan.requirements if name_of(line) == name), None)
    if not isinstance(target, Target) or need is None:
        return []
    found = []
    for one in wheel_sources(need, plan.torch, plan.variant, target.platform):
        text = _("Others have wheels for torch {torch} at {url}: use them only if you trust them.")
        if one.by == "its makers":
            text = _("Its makers have wheels for torch {torch} at {url}.")
        option = {"option": f"--find-links {one.url}"} if one.find == "links" else {}
        found.append(text.format(torch=plan.torch, url=one.url, **option))
    return found


def without_overwritten(
    lines: Iterable[str], versions: Mapping[str, str], asked: Collection[str]
) -> tuple[tuple[str, ...], list[Message]]:
    """Leave out what nobody asked for and another package of the solved set overwrites; say what clashes all the same.

    faster-whisper brings plain onnxruntime, for example, into whose folder a plan's onnxruntime-gpu would write.
    """
    kept = list(lines)
    ours = {name_of(line) for line in kept}.difference(asked)
    left_out = {name for names in find_clashes(versions).values() for name in names if name in ours}
    there = {name: version for name, version in versions.items() if name not in left_out}
    rest = tuple(line for line in kept if name_of(line) not in left_out)
    text = _("{names} share one folder and overwrite one another; keep only one of them.")
    return rest, [text.format(names=", ".join(names)) for names in find_clashes(there).values()]
