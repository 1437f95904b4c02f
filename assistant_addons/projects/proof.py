"""A decision in words: which package needs which torch, what the hardware says to that, and what would help."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

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
    make_plans,
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
from assistant_addons.projects.companions import ranges_for, system_warnings
from assistant_addons.projects.search import Outcome, Search, source_of, within_all
from assistant_addons.projects.trial import Need, Trace, Trial

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
    if search.case.request.name and not (outcome.needs or CORE & search.own_names or search.case.request.bundle):
        bare = without_torch(plan, search)
        return Planning(choice=bare, plans=(bare,))
    chosen = replace(
        plan,
        requirements=tuple(dict.fromkeys((*lines, *(of_torch if plan.backend is not Backend.CPU else ())))),
        reasons=(
            *map(needs_torch, _deciding(search, outcome)[:_MOST]),
            *named_builds(search, plan),
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
        asked=tuple(name for name in plan.asked if name not in search.unusable),
    )
    others = [one for one in search.builds if one.torch == plan.torch and one.backend is not plan.backend]
    beside = (search.by_its_build(one) for one in others if plan.backend is not Backend.CPU)
    return Planning(choice=chosen, plans=(chosen, *beside), rejected=search.planning.rejected)


def without_torch(plan: Plan, search: Search) -> Plan:
    """Return the plan for a project of which nothing needs torch: it has what the project asks for, and no more."""
    text = _("Nothing that this project asks for needs torch, so the plan has none.", "project-without-torch")
    target = find_target(search.case.machine, Request(python=plan.python), search.case.catalog)
    os = target.os if isinstance(target, Target) else ""
    return replace(
        plan,
        backend=Backend.CPU,
        variant="",
        torch="",
        index_url=None,
        requirements=tuple(str(need) for _name, need in search.requested if str(need) not in search.unreachable),
        env={},
        download_mb=None,
        reasons=(text,),
        warnings=system_warnings(search.own_names, os, Backend.CPU),
        asked=tuple(sorted(search.own_names - search.unusable)),
    )


def named_builds(search: Search, plan: Plan) -> list[Message]:
    """Say of the builds of torch that the project's own files name whether the plan has one, and if not, why."""
    named = [build for build in search.case.request.builds if build.startswith(_LOCAL.get(plan.backend, "-"))]
    if plan.variant in named:
        return [_("The project's own files name {build}, which this machine can use.", build=plan.variant)]
    text = _("The project's own files name {build}, and the plan takes {variant}: {why}")
    why = {build: why_not(build, plan, search) for build in named}
    return [text.format(build=build, variant=plan.variant, why=said) for build, said in why.items() if said]


def why_not(build: str, plan: Plan, search: Search) -> Text:
    """Return why a plan is not for another build of its torch, "" where nothing speaks against that build."""
    pinned = replace(search.case.request, pins=(f"torch=={plan.torch}+{build}",), python=plan.python)
    planning = make_plans(search.case.machine, search.case.catalog, pinned)
    return next((one.why for one in planning.rejected if one.backend is plan.backend), "")


_LOCAL = {Backend.CUDA: "cu", Backend.ROCM: "rocm", Backend.XPU: "xpu"}  # how the names of a backend's builds begin


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
    wrong = [
        need
        for need in giving_way
        if need.name in versions and not need.specifier.contains(versions[need.name], prereleases=True)
        if not unpaired_warnings((need.name,), torch)
    ]
    text = _("torch {torch} works with {need}, but the plan takes {package} {version}: importing it may fail.")
    unknown = _("Which torch {package} {version} needs is not known; {torch} goes with the next release that is known.")
    others = []
    for need in wrong:
        known, _guessed = ranges_for(need.name, f"=={versions[need.name]}")
        said = unknown if any(one.goes_with(torch) for one in known) else text
        others.append(said.format(torch=torch, need=need, package=need.name, version=versions[need.name]))
    return [*lost, *others]


_MOST_PYTHONS = 3  # chosen: each may take a resolver's run or two
_MOST_CHANGES = 3  # chosen: likewise
_MOST_NEAR = 2  # chosen: likewise
_LIKE = 0.75  # chosen: "torchvison" is so near to "torchvision" (0.95), and "trl" not to "tri" (0.67)


def refused(search: Search, trial: Trial, case: PlanInputs) -> Planning:
    """Return the planning for a set that does not hold: without what is source alone, with another Python, else why.

    `case` is as the user gave it: a Python that is fixed there is only pointed out.
    """
    if unknown := _unknown(search, trial):
        return _planning(search, "name-unknown", *unknown)
    if not isinstance(trial.words, str):  # an index of the user's own lacks the build
        help_ = _("Name another index, or wait until the build is published.", option="--index-url")
        return _planning(search, "not-in-index", trial.words, help_)
    own = _without_source(search, Outcome(None, trial), {})
    others = [] if own.holds and case.request.python else _with_other_pythons(own, case)
    best = min((rest for rest in (own, *others) if rest.holds), key=lambda rest: len(rest.lines), default=None)
    if best is None:
        tried = (own, *others)
        told = next((rest for rest in tried if rest.outcome.plan or not rest.is_about_python), own)
        return _why_not(told, other_python=told is not own)
    if best is own or not case.request.python:
        planning = _planned_without(best)
        return planning if best is own else with_python_reason(planning, search.python, case.request)
    why = _("What you ask for cannot all be installed for Python {own}; for Python {python} it can.")
    help_ = _("Use Python {python}.", python=best.search.python, option=f"--python {best.search.python}")
    return _planning(search, "no-wheel-for-python", why.format(own=search.python, python=best.search.python), help_)


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


class Rest(NamedTuple):
    """What is left of a set without the packages that have source alone: `lines` by their names, and how that went.

    `whole` is the search for all of it.
    """

    lines: dict[str, str]
    whole: Search
    search: Search
    outcome: Outcome

    @property
    def holds(self) -> bool:
        """Whether it is planned: without some packages for a project alone, as a single one is what was asked for."""
        return self.outcome.plan is not None and bool(not self.lines or self.search.case.request.name)

    @property
    def is_about_python(self) -> bool:
        """Whether it was refused as another Python is needed."""
        return bool(self.outcome.trial.refusal and self.outcome.trial.refusal.pythons)


def _without_source(search: Search, outcome: Outcome | None, lines: Mapping[str, str]) -> Rest:
    """Leave out one after the other what has no wheel, as the resolver stops at the first, until the rest holds.

    `outcome` is how it went before, None where nobody asked yet; `lines` are left out from the beginning.
    """
    left, again, needs = dict(lines), search, set[Need]()
    while search.may_ask and (outcome is None or outcome.trial.builds):
        if outcome:
            needs |= {*outcome.trial.trace.needs}
            left |= {name: _line_of(name, search, outcome.trial.trace) for name in outcome.trial.builds}
        request = search.case.request
        pins = tuple(pin for pin in request.pins if name_of(pin) not in left)
        never = tuple(f"{name} ; sys_platform == 'never'" for name in left)
        again = search.again(replace(request, pins=pins, overrides=(*request.overrides, *never)))
        again.reads_all = True
        outcome = again.run() or outcome or Outcome(None, Trial())
    outcome = outcome or Outcome(None, Trial())
    again.unusable = _standing_on(left, needs | {*outcome.trial.trace.needs})
    return Rest(left, search, again, outcome)


def _line_of(name: str, search: Search, trace: Trace) -> str:
    """Return the requirement of a package, as the user or the first package that needs it states it."""
    own = next((str(need) for one, need in search.requested if one == name), "")
    return own or next((need.line for need in trace.needs if need.on == name), name)


def _standing_on(names: Iterable[str], needs: Collection[Need]) -> frozenset[str]:
    """Return the packages that need some others, directly or by way of more: they cannot be imported without them."""
    found = set(names)
    while more := {need.package for need in needs if need.on in found} - found:
        found |= more
    return frozenset(found)


def _planned_without(rest: Rest) -> Planning:
    """Return the plan for what is left, which says what was left out and how it is built."""
    planning, names = explained(rest.search, rest.outcome), list(rest.lines)
    if not names:
        return planning
    text = _(
        "{names}: left out, as there is no wheel for this system and Python, only source, which runs its authors' code "
        "when it is built. If you trust them, install what is left out afterwards with `{command}`.",
        "left-out-source",
    )
    command = command_line(["pip", "install", *rest.lines.values()])
    told = [text.format(names=", ".join(names), command=command), *_how_built(names, rest.whole)]
    plans = tuple(replace(plan, warnings=(*told, *plan.warnings)) for plan in planning.plans)
    return replace(planning, plans=plans, choice=plans[0])


def _how_built(names: Iterable[str], search: Search) -> list[Message]:
    """Say what must be there to build some packages by hand, and where others keep a wheel of one for which torch."""
    by_text: dict[Message, list[str]] = {}
    for name in names:
        if text := _compiler(name, search.builds[0].backend):
            by_text.setdefault(text, []).append(name)
    found = [text.format(names=", ".join(few)) for text, few in by_text.items()]
    for name in names:
        pages = (wheel_pages(name, one, search.case.machine, search.case.catalog) for one in search.builds)
        found += next(filter(None, pages), [])
    return found


def _why_not(rest: Rest, *, other_python: bool) -> Planning:
    """Say what does not go together, what has no wheel and what a build of it takes, and the nearest way out."""
    outcome, search, names = rest.outcome, rest.search, ", ".join(rest.lines)
    why, help_ = list[Message](), list[Message]()
    if outcome.plan is None:
        text = _("With Python {python}: {why}", python=search.python) if other_python else Message("{why}")
        why.append(text.format(why=_quarrel(search, outcome.trial)))
        help_.append(_smallest_change(rest))
    if not rest.lines:
        return _planning(search, "set-does-not-fit", sentences(why), sentences(help_))
    text = _("There is no wheel of {names} for this system and Python, only source: it would have to be built by hand.")
    why += [text.format(names=names), *_how_built(rest.lines, rest.whole)]
    if outcome.plan:
        fits = _(
            "Everything else fits torch {torch} ({variant}): leave {names} out, and if you trust the authors, install "
            "what is left out afterwards with `{command}`, which runs their code."
        )
        command = command_line(["pip", "install", *rest.lines.values()])
        help_.append(fits.format(torch=outcome.torch, variant=outcome.plan.variant, names=names, command=command))
    return _planning(search, "needs-build", sentences(why), sentences((*help_, Unsolved.ONLY_SOURCE_HINT)))


def _compiler(name: str, backend: Backend) -> Message | None:
    """Say what a build of {names} by hand takes, as far as the tables tell of one of them."""
    row = find_companion(name)
    compiler = row.compiler if row else ""
    if compiler == "nvcc" or (compiler == "nvcc-for-cuda" and backend is Backend.CUDA):
        return _("Building {names} takes a C++ compiler and nvcc of the CUDA version of PyTorch.")
    return _("Building {names} takes a C++ compiler.") if compiler else None


def _python_matters(rest: Rest) -> bool:
    """Return whether another Python may open the set: a wheel is for another one, or the torch that is wanted is."""
    if rest.lines or rest.is_about_python:
        return True
    needs, search = rest.outcome.trial.trace.first_needs, rest.search
    here = {plan.torch for plan in search.builds}
    elsewhere = [row.version for row in search.case.catalog.releases if row.version not in here]
    return bool(needs) and any(all(need.allows(torch) for need in needs) for torch in elsewhere)


def _with_other_pythons(own: Rest, case: PlanInputs) -> list[Rest]:
    """Return how it goes with other Pythons that may open the set, until one opens all of it.

    Where a package came as source alone, those count for which it has a wheel.
    """
    found = list[Rest]()
    if not _python_matters(own):
        return found
    free, refusal = replace(case.request, python=None), own.outcome.trial.refusal
    held = refusal.others if refusal else ()
    every = other_pythons(replace(case.machine, python=own.whole.python), free, case.catalog)
    others = (python for python in every if not held or python in held)
    for _try, python in zip(range(_MOST_PYTHONS), others, strict=False):
        again = own.whole.again(replace(free, python=python))
        if not (again.builds and again.may_ask):
            continue
        closed = {name: line for name, line in own.lines.items() if not again.has_wheel(line)}
        if own.lines and closed == own.lines and not own.is_about_python:
            continue
        found.append(_without_source(again, None, closed))
        if found[-1].holds and not found[-1].lines:
            break
    return found


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


def _smallest_change(rest: Rest) -> Message:
    """Find, among what quarrels, the line whose bound or whose absence makes the rest hold, or a few of them."""
    search, torch = rest.search, _on_torch(rest.search)
    if torch and (nearest := _nearest_torch(search, rest.outcome.trial)):
        text = _("Ask for {name} instead of {line}: everything else fits that.")
        return text.format(name=f"torch {nearest}", line=torch)
    changed, current = dict[str, str](), rest
    while current.outcome.trial.refusal and len(changed) < _MOST_CHANGES:
        named = search.own_names.intersection(current.outcome.trial.refusal.names)
        lines = [need for name, need in search.requested if name in named and str(need) not in changed]
        ways = [(str(need), _without_versions(need)) for need in lines if need.specifier]
        tried = list[tuple[dict[str, str], Rest]]()
        for line, other in (*ways, *((str(need), "") for need in lines)):
            if not search.may_ask:
                break
            tried.append(({**changed, line: other}, _changed({**changed, line: other}, rest)))
            if tried[-1][1].holds:
                return _told_changes(*tried[-1])
        if not tried:
            break
        changed, current = tried[0]  # alone it does not help: what else is in the way beside it?
    return _("Allow other versions of one of the packages named here, or leave it out.")


def _changed(lines: Mapping[str, str], rest: Rest) -> Rest:
    """Return how it goes with some of the user's lines changed, "" for none."""

    def pin(text: str) -> str:
        need = requirement(text)
        need.marker = None
        return lines.get(str(need), text)

    request = rest.whole.case.request
    less = replace(request, pins=tuple(filter(None, map(pin, request.pins))))
    return _without_source(rest.whole.again(less), None, rest.lines)


def _told_changes(changed: Mapping[str, str], rest: Rest) -> Message:
    """Say which lines to change, to what, and that everything else fits that."""
    versions = rest.outcome.trial.versions
    said = {line: versions.get(name_of(other), "") for line, other in changed.items() if other}
    without = ", ".join(name_of(line) for line, other in changed.items() if not other)
    if not said:
        return _("Leave out {name}: everything else fits without it.", name=without)
    names = ", ".join(f"{name_of(line)} {version}" for line, version in said.items())
    more = _("Leave out {name}, too.", name=without) if without else ""
    text = _("Ask for {name} instead of {line}: everything else fits that.", name=names, line=", ".join(said))
    return sentences((text, more))


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
