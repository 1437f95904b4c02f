"""A decision in words: which package needs which torch, what the hardware says to that, and what would help."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping
from copy import copy
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.version import Version

from assistant.api import Message, Text, _, replace, sentences
from assistant.api.planning import (
    CORE,
    PlanInputs,
    Unsolved,
    all_names,
    card_name,
    carried_by_torch_index,
    find_clashes,
    find_companion,
    is_required_by_torch,
    make_plans,
    name_of,
    other_pythons,
    requirement,
    unpaired_warnings,
    wheel_sources,
    with_python_reason,
)
from assistant.api.records import Backend, Plan, Planning, Rejection
from assistant.api.texts import command_line
from assistant_addons.projects.builds import DIRECTML, GPU, Builds
from assistant_addons.projects.companions import ranges_for, system_warnings
from assistant_addons.projects.search import Outcome, Search, source_of, within_all
from assistant_addons.projects.trial import Need, Trial

_MOST = 3  # chosen: sentences of one kind


def explained(search: Search, outcome: Outcome) -> Planning:
    """Return the plan that holds with the reasons for it, other plans for the same torch, and what was passed over."""
    plan, versions = outcome.plan, outcome.trial.versions
    assert plan  # noqa: S101 - an outcome that holds has one
    without = dict(outcome.lessons.only_source)
    unusable = _standing_on(without, search.known_needs.union(outcome.trial.trace.needs))
    if search.case.request.name and not (outcome.needs or CORE & search.own_names or search.case.request.bundle):
        bare = without_torch(plan, search, unusable)
        return Planning(choice=bare, plans=(bare,))
    of_torch = {name for name in map(name_of, plan.requirements) if is_required_by_torch(name)}
    needed = search.names_asked(plan) | of_torch | {*outcome.lessons.named}
    lines, overwritten = without_overwritten(plan.requirements, versions, needed)
    chosen = replace(
        plan,
        requirements=lines,
        reasons=(
            *map(needs_torch, _deciding(search, outcome)[:_MOST]),
            *named_builds(search, plan),
            *(search.builds.why_other_cuda(plan) if plan.backend is Backend.CUDA else ()),
            *plan.reasons,
        ),
        warnings=(
            *_left_out(without, search),
            *plan.warnings,
            *_warnings(search, outcome, plan),
            *_mismatched(search, outcome, plan),
            *overwritten,
        ),
        constraints=tuple(
            line for line in plan.constraints if line in search.case.request.constraints or name_of(line) in versions
        ),
        asked=tuple(name for name in plan.asked if name not in unusable),
    )
    others = [one for one in search.builds.ranked(lambda torch: torch == plan.torch) if one.backend is not plan.backend]
    beside = (search.by_its_build(search.without_source(one)) for one in others if plan.backend is not Backend.CPU)
    told = (replace(one, warnings=(*_left_out(without, search), *one.warnings)) for one in beside)
    return Planning(choice=chosen, plans=(chosen, *told), rejected=search.builds.rejected)


def without_torch(plan: Plan, search: Search, unusable: Collection[str]) -> Plan:
    """Return the plan for a project of which nothing needs torch: it has what the project asks for, and no more."""
    text = _("Nothing that this project asks for needs torch, so the plan has none.", "project-without-torch")
    os, without = search.builds.platform.partition("_")[0], dict(search.lessons.only_source)
    return replace(
        plan,
        backend=Backend.CPU,
        variant="",
        torch="",
        index_url=None,
        requirements=tuple(
            str(need)
            for need, name in search.requested.items()
            if name not in without and str(need) not in search.unreachable
        ),
        constraints=search.case.request.constraints,
        env={},
        download_mb=None,
        reasons=(text,),
        warnings=(*_left_out(without, search), *system_warnings(search.own_names, os, Backend.CPU)),
        asked=tuple(sorted(search.own_names.difference(unusable))),
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


def hardware_side(search: Search) -> Text:
    """Say for which releases of torch the machine's GPU has builds, "" where it has none."""
    gpu = list(search.builds.ranked(kinds=(GPU, DIRECTML)))
    if not gpu:
        return ""
    torches = sorted({plan.torch for plan in gpu}, key=Version)
    return _(
        "Torch {oldest} to {newest} can use {card} on this machine.",
        card=card_name(search.case.machine, gpu[0].backend) or gpu[0].backend.title,
        oldest=torches[0],
        newest=torches[-1],
    )


def _deciding(search: Search, outcome: Outcome) -> list[Need]:
    """Return the needs that exclude the best torch which the hardware allows."""
    found = [need for need in outcome.needs if not need.allows(_best(search).torch)]
    return [need for need in found if need.package not in CORE] or found


def _warnings(search: Search, outcome: Outcome, plan: Plan) -> list[Text]:
    found: list[Text] = []
    deciding, versions = _deciding(search, outcome), outcome.trial.versions
    if plan.backend is Backend.CPU and (hardware := hardware_side(search)):
        found.append(hardware)
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


def _mismatched(search: Search, outcome: Outcome, plan: Plan) -> list[Text]:
    """Say what is known to go with another torch alone, and is taken all the same as nothing else can be had."""
    versions, torch = outcome.trial.versions, plan.torch
    lost = unpaired_warnings((name for name in versions if name != "torch"), torch)
    alike = (one for one in search.builds.ranked(lambda release: release == torch) if one.variant == plan.variant)
    left_out = (line for one in alike for line in one.requirements if name_of(line) in outcome.lessons.left_out)
    wrong = [
        need
        for need in map(Requirement, (*search.giving_way(plan), *left_out))
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


def _best(search: Search) -> Plan:
    """Return the best plan that the hardware allows, of which there is one wherever a resolver was asked."""
    best = search.builds.best
    assert best  # noqa: S101 - as above
    return best


_MOST_PYTHONS = 3  # chosen: each may take a resolver's run or two
_MOST_CHANGES = 3  # chosen: likewise
_MOST_NEAR = 2  # chosen: likewise
_LIKE = 0.75  # chosen: "torchvison" is so near to "torchvision" (0.95), and "trl" not to "tri" (0.67)


def otherwise(search: Search, outcome: Outcome, case: PlanInputs) -> Planning:
    """Return the planning where not all holds: without what is source alone, with another Python, else why not.

    `case` is as the user gave it: a Python that is fixed there is only pointed out.
    """
    trial = outcome.trial
    if unknown := _unknown(search, trial):
        return _planning(search, "name-unknown", *unknown)
    if not isinstance(trial.words, str):  # an index of the user's own lacks the build
        help_ = _("Name another index, or wait until the build is published.", option="--index-url")
        return _planning(search, "not-in-index", trial.words, help_)
    own = Attempt(search, outcome)
    others = [] if own.holds and case.request.python else _with_other_pythons(own, case)
    best = min((one for one in (own, *others) if one.holds), key=lambda one: len(one.left_out), default=None)
    if best is None:
        tried = (own, *others)
        told = next((one for one in tried if one.outcome.plan or not one.outcome.trial.pythons), own)
        return _why_not(told, other_python=told is not own)
    if best is own:
        return explained(search, outcome)
    if not case.request.python:
        return with_python_reason(explained(best.search, best.outcome), search.python, case.request)
    why = _("What you ask for cannot all be installed for Python {own}; for Python {python} it can.")
    help_ = _("Use Python {python}.", python=best.search.python, option=f"--python {best.search.python}")
    return _planning(search, "no-wheel-for-python", why.format(own=search.python, python=best.search.python), help_)


def _planning(search: Search, key: str, why: Text, would_help: Text) -> Planning:
    best = _best(search)
    rejection = Rejection(backend=best.backend, variant=best.variant, why=why, would_help=would_help, key=key)
    return Planning(rejected=(rejection,))


def _unknown(search: Search, trial: Trial) -> tuple[Message, Text] | None:
    """Name what no source has, and the nearest real name; None where a source did not let anyone look."""
    missing = () if trial.locked_out else trial.missing
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


class Attempt(NamedTuple):
    """How it went with a request: the search for it, and its outcome."""

    search: Search
    outcome: Outcome

    @property
    def left_out(self) -> dict[str, str]:
        """What has no wheel, with the lines that ask for it."""
        return dict(self.search.lessons.only_source)

    @property
    def holds(self) -> bool:
        """Whether it is planned: without some packages for a project alone, as a single one is what was asked for."""
        return self.outcome.plan is not None and bool(not self.left_out or self.search.case.request.name)


def _standing_on(names: Iterable[str], needs: Collection[Need]) -> frozenset[str]:
    """Return the packages that need some others, directly or by way of more: they cannot be imported without them."""
    found = set(names)
    while more := {need.package for need in needs if need.on in found} - found:
        found |= more
    return frozenset(found)


def _left_out(lines: Mapping[str, str], search: Search) -> list[Message]:
    """Say what was left out as there is no wheel of it, and how it is built; nothing where all is there."""
    if not lines:
        return []
    text = _(
        "{names}: left out, as there is no wheel for this system and Python, only source, which runs its authors' code "
        "when it is built. If you trust them, install what is left out afterwards with `{command}`.",
        "left-out-source",
    )
    command = command_line(["pip", "install", *lines.values()])
    return [text.format(names=", ".join(lines), command=command), *_how_built(lines, search)]


def _how_built(names: Iterable[str], search: Search) -> list[Message]:
    """Say what must be there to build some packages by hand, and where others keep a wheel of one for which torch."""
    by_text: dict[Message, list[str]] = {}
    for name in names:
        if text := _compiler(name, _best(search).backend):
            by_text.setdefault(text, []).append(name)
    found = [text.format(names=", ".join(few)) for text, few in by_text.items()]
    for name in names:
        pages = (_wheel_pages(name, one, search.builds.platform) for one in search.builds.ranked())
        found += next(filter(None, pages), [])
    return found


def _why_not(attempt: Attempt, *, other_python: bool) -> Planning:
    """Say what does not go together, what has no wheel and what a build of it takes, and the nearest way out."""
    search, outcome = attempt
    lines, names = attempt.left_out, ", ".join(attempt.left_out)
    why, help_ = list[Message](), list[Message]()
    if outcome.plan is None:
        text = _("With Python {python}: {why}", python=search.python) if other_python else Message("{why}")
        why.append(text.format(why=_quarrel(search, outcome.trial)))
        help_.append(_smallest_change(attempt))
    if not lines:
        return _planning(search, "set-does-not-fit", sentences(why), sentences(help_))
    text = _("There is no wheel of {names} for this system and Python, only source: it would have to be built by hand.")
    why += [text.format(names=names), *_how_built(lines, search)]
    if outcome.plan:
        fits = _(
            "Everything else fits torch {torch} ({variant}): leave {names} out, and if you trust the authors, install "
            "what is left out afterwards with `{command}`, which runs their code."
        )
        command = command_line(["pip", "install", *lines.values()])
        help_.append(fits.format(torch=outcome.trial.torch, variant=outcome.plan.variant, names=names, command=command))
    return _planning(search, "needs-build", sentences(why), sentences((*help_, Unsolved.ONLY_SOURCE_HINT)))


def _compiler(name: str, backend: Backend) -> Message | None:
    """Say what a build of {names} by hand takes, as far as the tables tell of one of them."""
    row = find_companion(name)
    compiler = row.compiler if row else ""
    if compiler == "nvcc" or (compiler == "nvcc-for-cuda" and backend is Backend.CUDA):
        return _("Building {names} takes a C++ compiler and nvcc of the CUDA version of PyTorch.")
    return _("Building {names} takes a C++ compiler.") if compiler else None


def _python_matters(own: Attempt) -> bool:
    """Return whether another Python may open the set: a wheel is for another one, or the torch that is wanted is."""
    if own.left_out or own.outcome.trial.pythons:
        return True
    needs, search = own.outcome.trial.trace.first_needs, own.search
    here = {plan.torch for plan in search.builds.ranked()}
    elsewhere = [row.version for row in search.case.catalog.releases if row.version not in here]
    return bool(needs) and any(all(need.allows(torch) for need in needs) for torch in elsewhere)


def _with_other_pythons(own: Attempt, case: PlanInputs) -> list[Attempt]:
    """Return how it goes with other Pythons that may open the set, until one opens all of it.

    Where a package came as source alone, those count for which it has a wheel.
    """
    found = list[Attempt]()
    if not _python_matters(own):
        return found
    free, held = replace(case.request, python=None), own.outcome.trial.others
    every = other_pythons(replace(case.machine, python=own.search.python), free, case.catalog)
    others = (python for python in every if not held or python in held)
    for _try, python in zip(range(_MOST_PYTHONS), others, strict=False):
        again = own.search.again(replace(free, python=python))
        if not (again.builds.best and again.may_ask):
            continue
        closed = tuple((name, line) for name, line in again.lessons.only_source if not again.has_wheel(line))
        if closed and closed == again.lessons.only_source and not own.outcome.trial.pythons:
            continue
        again.lessons = again.lessons._replace(only_source=closed)
        if outcome := again.run():
            found.append(Attempt(again, outcome))
            if found[-1].holds and not found[-1].left_out:
                break
    return found


def _quarrel(search: Search, trial: Trial) -> Message:
    """Say which packages do not go together: who needs which torch and what the GPU has, else the resolver's words."""
    needs = [need for need in trial.trace.first_needs if not need.allows(_best(search).torch)]
    if needs and any(map(carried_by_torch_index, trial.names)):
        free = not any(name == "torch" and need.specifier for need, name in search.requested.items())
        hardware = hardware_side(search) if free else ""
        return sentences((*map(needs_torch, needs[:3]), hardware, _words(trial)))
    return _words(trial)


def _words(trial: Trial) -> Message:
    return _("No set of packages fits this plan: {reason}", reason=trial.words)


def _smallest_change(own: Attempt) -> Message:
    """Find, among what quarrels, the line whose bound or whose absence makes the rest hold, or a few of them."""
    search, changed, current = own.search, dict[str, str](), own
    for change in _other_torches(own):
        if search.may_ask and (found := _changed(change, search)).holds:
            return _told_changes(change, found)
    while current.outcome.trial.names and len(changed) < _MOST_CHANGES:
        named = search.own_names.intersection(current.outcome.trial.names)
        lines = [need for need, name in search.requested.items() if name in named and str(need) not in changed]
        ways = [(str(need), _without_versions(need)) for need in lines if need.specifier]
        tried = list[tuple[dict[str, str], Attempt]]()
        for line, other in (*ways, *((str(need), "") for need in lines)):
            if not search.may_ask:
                break
            tried.append(({**changed, line: other}, _changed({**changed, line: other}, search)))
            if tried[-1][1].holds:
                return _told_changes(*tried[-1])
        if not tried:
            break
        changed, current = tried[0]  # alone it does not help: what else is in the way beside it?
    return _("Allow other versions of one of the packages named here, or leave it out.")


def _other_torches(own: Attempt) -> Iterator[dict[str, str]]:
    """Yield changes of the user's bounds on torch: to the releases nearest to them, then to any.

    Those are tried first that the packages which were looked at allow, and that run on the best build.
    """
    search = own.search
    lines = [str(need) for need, name in search.requested.items() if name == "torch" and need.specifier]
    if not lines:
        return
    request = search.case.request
    pins = tuple(pin for pin in request.pins if name_of(pin) != "torch")
    free = Builds(search.case._replace(request=replace(request, pins=pins)))
    fitting = free.ranked(within_all(own.outcome.trial.trace.first_needs))
    best = [plan.torch for plan in fitting if plan.variant == (free.best or plan).variant]
    releases = [row.version for row in search.case.catalog.releases]
    here = releases.index(_best(search).torch)
    near = sorted(best, key=lambda torch: abs(releases.index(torch) - here))[:_MOST_NEAR]
    for torch in (*(f"torch=={torch}" for torch in near), "torch"):
        yield {**dict.fromkeys(lines, ""), lines[0]: torch}


def _changed(lines: Mapping[str, str], search: Search) -> Attempt:
    """Return how it goes with some of the user's lines changed, "" for none."""

    def pin(text: str) -> str:
        need = copy(requirement(text))
        need.marker = None
        return lines.get(str(need), text)

    request = search.case.request
    again = search.again(replace(request, pins=tuple(filter(None, map(pin, request.pins)))))
    return Attempt(again, again.run() or Outcome(None, Trial()))


def _told_changes(changed: Mapping[str, str], attempt: Attempt) -> Message:
    """Say which lines to change, to what, and that everything else fits that."""
    versions = attempt.outcome.trial.versions
    said = {name_of(other): versions.get(name_of(other), "").partition("+")[0] for other in changed.values() if other}
    without = ", ".join({name_of(line): "" for line in changed if name_of(line) not in said})
    if not said:
        return _("Leave out {name}: everything else fits without it.", name=without)
    names = ", ".join(f"{name} {version}" for name, version in said.items())
    lines = ", ".join(line for line in changed if name_of(line) in said)
    more = _("Leave out {name}, too.", name=without) if without else ""
    text = _("Ask for {name} instead of {line}: everything else fits that.")
    return sentences((text.format(name=names, line=lines), more))


def _without_versions(need: Requirement) -> str:
    return f"{need.name}[{','.join(sorted(need.extras))}]" if need.extras else need.name


def _wheel_pages(name: str, plan: Plan, platform: str) -> list[Message]:
    """Say where wheels of a package lie for a plan's torch, beside PyPI and torch's indexes."""
    needs = (requirement(line) for line in plan.requirements if name_of(line) == name)
    found = []
    for one in (one for need in needs for one in wheel_sources(need, plan.torch, plan.variant, platform)):
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
