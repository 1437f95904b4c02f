"""Plans for a setup, and what stands in for one whose index does not serve.

A plan says what the catalogue says. An add-on brings what goes beyond torch's own family. The reader `project` is a
module: its `with_project_of(request, trusted)` reads the project that a request names, `read_project` and `agreed` do
so for the terminal. The task `decide` is a function `(planning, case, tools) -> Planning`, which finds the build with
which all packages go together.

Only uv asks an index: for the whole plan, and where that fails, for torch alone in the user's own sources (the indexes
and folders that the settings of pip and uv name), newest release first. What is taken is of the build that the plan is
for; PyPI's default build for Linux, which brings several GB of CUDA, is never taken for a plan for the CPU unless the
user agreed to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from assistant import addons
from assistant.catalog import AMD_INDEX, AMD_NIGHTLY, JETSON_INDEX, load_catalog
from assistant.catalog.catalog import is_recipe, load_recipe_reader
from assistant.catalog.tables import CORE, FAMILY
from assistant.host.files import file_name
from assistant.i18n import Message, Text, _
from assistant.install import Package, Prepared, Tools, Unsolved, prepare
from assistant.model.errors import WorkFailed
from assistant.model.finding import Finding, Severity
from assistant.model.plan import Backend, Plan, Planning, name_of
from assistant.model.record import replace
from assistant.model.report import FindingRaised, Step
from assistant.plan import (
    DEFAULT_BUILD,
    NIGHTLY,
    PlanInputs,
    Target,
    card_name,
    find_target,
    make_plans,
    nothing_fits,
    requested_packages,
)
from assistant.privacy import without_credentials
from assistant.session.state import Planned, State, required
from assistant.views import plan_title


def gpu_name(state: State) -> str:
    """Return the short name of the GPU that the chosen plan computes on; "" for the CPU."""
    return card_name(required(state.detection).machine, required(state.plan).backend)


def load_project_reader() -> Any:  # noqa: ANN401 - the module that is described above
    """Return the add-on's module that reads projects (see above); raise `WorkFailed` if its extra is missing."""
    return addons.load_from_extra(addons.READERS, "project", extra="projects")


def plan_setup(state: State, tools: Tools) -> Planned:
    """Plan for the machine that was detected, and for the project that the request names, which is read first.

    Raises `NothingFits` if there is no plan, `BadInput` for a project that cannot be read, and `WorkFailed` if the
    add-on that reads it is missing.
    """
    request, project = state.choices.request, None
    if request.project:
        request, project = load_project_reader().with_project_of(request, tools.sources.trusted)
    case = PlanInputs(required(state.detection).machine, load_catalog(), request)
    planning = plan_request(case, tools)
    if planning.choice is None:
        raise nothing_fits(planning)
    return Planned(planning=planning, project=project)


def plan_request(case: PlanInputs, tools: Tools) -> Planning:
    """Return the plans for a request (in `case`): builds that the hardware runs, with which all packages install.

    A resolver, which an add-on brings, is asked only if the request names more than torch's own family, or sources. If
    the add-on is missing, the plans carry a warning, but a recipe raises `WorkFailed`. Raises `Cancelled`, and
    `BadInput` as the planner does.
    """
    if is_recipe(case.request.bundle):
        case = case._replace(request=load_recipe_reader().with_recipe(case.request))
    planning, request = make_plans(*case), case.request
    names = {canonicalize_name(need.name) for need in requested_packages(*case)} if planning.choice else set()
    sources = request.constraints or request.overrides or request.indexes or request.links
    if planning.choice is None or not (names - CORE or sources):
        return _use_user_index(planning, tools)
    try:
        decide = addons.load_from_extra(addons.TASKS, "decide", extra="projects")
    except WorkFailed as error:
        return warn_unchecked(_use_user_index(planning, tools), error.message)
    found: Planning = decide(planning, case, tools)
    return found


def _use_user_index(planning: Planning, tools: Tools) -> Planning:
    """Return the planning with the user's index in place of each plan's own, and the first plan as its choice.

    torch is pinned with its local tag, as in torch==2.7.0+cu128, where releases have several builds. Plans without an
    index stay as they are, and so does the whole planning if the user named no index.
    """

    def own(plan: Plan) -> Plan:
        named = replace_torch(plan, f"torch=={plan.torch}+{local_tag(plan)}") if has_builds(plan) else plan.requirements
        return replace(plan, index_url=tools.sources.index_url, requirements=named)

    if not tools.sources.index_url:
        return planning
    plans = tuple(own(plan) if plan.index_url else plan for plan in planning.plans)
    return replace(planning, plans=plans, choice=plans[0] if plans else None)


def warn_unchecked(planning: Planning, reason: Text) -> Planning:
    """Return the plans, each with a warning: it was not checked, for this reason, whether all packages go together."""
    text = _("It could not be checked whether all packages go together: {reason}", "packages-not-checked")
    warning = text.format(reason=reason)
    plans = tuple(replace(plan, warnings=(*plan.warnings, warning)) for plan in planning.plans)
    return replace(planning, plans=plans, choice=plans[0] if plans else None)


def is_unchecked(planning: Planning) -> bool:
    """Return whether nobody knows if all packages of the chosen plan go together (see `warn_unchecked`)."""
    warnings = planning.choice.warnings if planning.choice else ()
    return any(isinstance(text, Message) and text.key == "packages-not-checked" for text in warnings)


def has_builds(plan: Plan) -> bool:
    """Return whether a plan's build is one of several that releases of torch have, told apart by their local tags."""
    return (
        bool(plan.torch)
        and plan.variant not in {AMD_INDEX, AMD_NIGHTLY, JETSON_INDEX}
        and not plan.variant.startswith(NIGHTLY)
    )


def local_tag(plan: Plan) -> str:
    """Return the local tag of the torch that a plan is for, such as "cu130"; DirectML uses the build "cpu"."""
    return "cpu" if plan.backend is Backend.DIRECTML else plan.variant


def replace_torch(plan: Plan, line: str) -> tuple[str, ...]:
    """Return a plan's requirements with another line for torch; its extras stay."""
    exact = rf"torch\g<extras>{line.removeprefix('torch')}"
    return tuple(re.sub(r"^torch(?P<extras>(?:\[[^]]*])?)\s*[=>]=.*$", exact, need) for need in plan.requirements)


# As in uv's "Because there is no version of torch==2.15.0+cpu and …", "Because torch was not found in the package
# registry and …", "Because torch==2.15.0 has no wheels with a matching Python ABI tag …".
_LACKS_TORCH = re.compile(
    r"no versions? of torch(?![\w-])|(?<![\w-])torch(?:[=<>]\S*)? (?:was not found|has no wheels)"
)
MOST = 12  # chosen: the releases of a year and a half
AT_ONCE = 4  # chosen: questions to uv at a time


class _Candidate(NamedTuple):
    """A torch to look for at an index (None: the user's own sources): its release, local tag and plan's variant."""

    address: str | None
    version: str
    local: str
    variant: str

    @property
    def line(self) -> str:
        """The requirement that names this torch and no other."""
        return f"torch=={self.version}" + (f"+{self.local}" if self.local else "")


def prepare_nearest(
    plan: Plan, others: Sequence[Plan], case: PlanInputs, target: str, tools: Tools, gpu: str = ""
) -> Prepared:
    """Prepare a plan for a target as `prepare` does, or the first substitute that resolves, which is then reported.

    Substitutes are tried only if torch itself cannot be resolved; after them the `others`, worse plans, unless an index
    was unreachable or the request names a backend. Raises the plan's own failure if nothing resolves; on Linux, for the
    CPU, one that names PyPI's build as a way out. `gpu` is the name of the GPU, for messages.
    """
    try:
        return _check_build(prepare(plan, target, tools, gpu), case)
    except Unsolved as error:
        if not _is_torch_missing(error, plan, tools):
            raise
        failure = error
    unreachable = isinstance(failure, Unsolved) and failure.unreachable
    key = "index-silent" if unreachable else "build-not-found"
    reason = Message("{reason}", key=key).format(reason=failure.message)
    for other in _substitutes(plan, case, reason, tools, unreachable=unreachable):
        with suppress(Unsolved):
            return _report_substitute(prepare(other, target, tools, gpu), plan, reason, tools)
    for other in () if unreachable or case.request.backend else others:
        instead = replace(other, warnings=(*other.warnings, reason))
        with suppress(WorkFailed):
            return _report_substitute(prepare_nearest(instead, (), case, target, tools, gpu), plan, reason, tools)
    if plan.backend is not Backend.CPU or plan.index_url is None or case.machine.os != "linux":
        raise failure
    raise Unsolved(
        _("No CPU build of torch is available from here. {reason}"),
        hint=_(
            "Restore the connection, name another source, or take PyPI's build and its several GB of CUDA.",
            option="--index-url, --find-links, --with-cuda-libraries",
        ),
        reason=failure.message,
        unreachable=True,
        address=plan.index_url,
    )


def _report_substitute(prepared: Prepared, plan: Plan, reason: Message, tools: Tools) -> Prepared:
    """Report that `prepared` stands in for `plan`, and why; return it with that finding added."""
    text = _("{instead} stands in for {planned}. {reason}", instead=plan_title(prepared.plan), planned=plan_title(plan))
    finding = Finding(key="stands-in", severity=Severity.WARNING, text=text.format(reason=reason))
    tools.sink(FindingRaised(step=Step.INSTALL, finding=finding))
    return replace(prepared, findings=(finding, *prepared.findings))


def _check_build(prepared: Prepared, case: PlanInputs) -> Prepared:
    """Return what was prepared, a nightly plan pinned to its build; raise `WorkFailed` for another build than planned.

    A find-links folder may hold one beside PyPI's, and uv takes that for the newer of the two.
    """
    plan = prepared.plan
    if not plan.torch:
        return prepared
    version = Version(prepared.resolution.versions["torch"])
    if plan.variant.startswith(NIGHTLY):
        lines = replace_torch(plan, f"torch=={version}")
        return replace(prepared, plan=replace(plan, torch=version.public, requirements=lines))
    target = find_target(case.machine, replace(case.request, python=plan.python), case.catalog)
    build = case.catalog.build_of(plan.torch, plan.variant, target.platform) if isinstance(target, Target) else ""
    if plan.index_url is None and version.local and build and version.local != build and has_builds(plan):
        raise WorkFailed(
            _("Your package sources hold torch {version}, which is not the build of this plan.", version=version),
            hint=_("Choose the plan for that build, or leave the source out that holds it."),
        )
    return prepared


def _is_torch_missing(error: Unsolved, plan: Plan, tools: Tools) -> bool:
    """Return whether resolving failed because no source has the plan's torch, or torch's own index was unreachable.

    Offline, any unreachable index counts.
    """
    if error.only_source:
        return any(need.startswith("torch==") for need in error.only_source)
    if error.unreachable:
        own = without_credentials(plan.index_url or "")  # as uv names it
        return bool(own and error.address.startswith(own)) or tools.sources.offline
    return _LACKS_TORCH.search(error.reason) is not None


def _substitutes(plan: Plan, case: PlanInputs, reason: Message, tools: Tools, *, unreachable: bool) -> Iterator[Plan]:
    """Yield plans to try in place of one: its build, then older ones, at its index, then in the user's own sources.

    Each from the user's sources is followed by the same without torchvision and torchaudio. PyPI's default build is
    last, for the CPU only and if the user accepts it. `reason` says why the plan itself is unavailable; an index that
    is `unreachable` is not asked again.
    """
    named = tools.sources.index_url or plan.index_url
    places = list(_torch_candidates(plan, case, (None,) if unreachable or named is None else (named, None)))

    def find(place: _Candidate) -> Package | None:
        bare = replace(plan, index_url=place.address, requirements=(place.line,), constraints=(), overrides=())
        return tools.find_single_package(bare)

    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        found = list(pool.map(find, places))
    for place, package in zip(places, found, strict=True):
        if package and (other := _plan_found(place, package, plan, case, reason)):
            yield other
            yield from _without_companions(other, case)
    if plan.backend is Backend.CPU and case.request.cuda_libraries:
        for other in _default_build_plans(plan, case):
            yield other
            yield from _without_companions(other, case)


def _torch_candidates(plan: Plan, case: PlanInputs, addresses: tuple[str | None, ...]) -> Iterator[_Candidate]:
    """Yield the builds of torch to look for: at each address the plan's variant, from its release down to older ones.

    PyPI's default builds, which have no local tag, are among them if of the same variant; for CUDA, any of them, last.
    """
    target = find_target(case.machine, replace(case.request, python=plan.python), case.catalog)
    if not isinstance(target, Target) or not has_builds(plan):
        return
    local = local_tag(plan)
    builds = case.catalog.wheels(target.platform, target.tag)
    older = (build.version for build in builds if Version(build.version) <= Version(plan.torch))
    versions = list(dict.fromkeys(older))[:MOST]
    for address in addresses:
        for version in versions:
            if any((build.version, build.variant) == (version, local) for build in builds):
                yield _Candidate(address, version, local, plan.variant)
            if case.catalog.build_of(version, "pypi", target.platform) == local:
                yield _Candidate(address, version, "", plan.variant)
    if plan.backend is Backend.CUDA:
        for version in versions:
            yield _Candidate(None, version, "", case.catalog.build_of(version, "pypi", target.platform))


def _plan_found(place: _Candidate, package: Package, plan: Plan, case: PlanInputs, reason: Message) -> Plan | None:
    """Return the plan for a torch that was found, with it and the companions pinned to that build.

    Its reasons say why and where it was found. None if that torch does not run on this machine, or is another build.
    """
    other: Plan | None = plan
    if (place.version, place.variant) != (plan.torch, plan.variant):
        pin = f"torch=={place.version}" + ("" if place.variant == plan.variant else f"+{place.variant}")
        request = replace(case.request, backend=plan.backend, python=plan.python, pins=(*case.request.pins, pin))
        plans: tuple[Plan, ...] = ()
        with suppress(WorkFailed):
            plans = make_plans(case.machine, case.catalog, request).plans
        other = next((one for one in plans if (one.backend, one.variant) == (plan.backend, place.variant)), None)
    if other is None or not (place.local or Version(package.version).local in {None, local_tag(other)}):
        return None
    lines = _keep_other_packages(replace_torch(other, place.line), plan)
    if place.address is None and place.local:
        lines = tuple(f"{line}+{place.local}" if name_of(line) in FAMILY and "==" in line else line for line in lines)
    folder = package.url.rpartition("/")[0].removeprefix("file://")
    found = _("Found: {file} is at {place}.", "torch-found", file=file_name(package.url), place=folder)
    return replace(other, index_url=place.address, requirements=lines, reasons=(*other.reasons, reason, found))


def _keep_other_packages(lines: tuple[str, ...], plan: Plan) -> tuple[str, ...]:
    """Return the requirements of a plan for another torch with what `plan`, as for a project, asks for beside torch."""
    asked = {str(name_of(line)): line for line in plan.requirements if name_of(line) not in {"torch", *FAMILY}}
    names = {*map(name_of, lines)}
    kept = (asked.get(line, line) for line in lines)  # a name alone asks for no version
    return (*kept, *(line for name, line in asked.items() if name not in names))


def _default_build_plans(plan: Plan, case: PlanInputs) -> Iterator[Plan]:
    """Yield copies of a CPU plan with PyPI's default builds (several GB), newest first, from its release down.

    Left out are releases that the request's torch pins do not allow.
    """
    warning = _(
        "This is PyPI's default build: it brings several GB of CUDA libraries and still computes on the CPU.",
        "default-build-brings-cuda",
    )
    bare = replace(plan, variant=DEFAULT_BUILD, index_url=None, download_mb=None, reasons=(), warnings=(warning,))
    torchs = [need for need in map(Requirement, case.request.pins) if need.name == "torch"]
    for release in case.catalog.releases:
        allowed = all(need.specifier.contains(release.version) for need in torchs)
        if allowed and Version(release.version) <= Version(plan.torch):
            lines = replace_torch(plan, f"torch=={release.version}")
            yield replace(bare, torch=release.version, requirements=lines)


def _without_companions(plan: Plan, case: PlanInputs) -> Iterator[Plan]:
    """Yield the plan without its unpinned torchvision and torchaudio, with a warning that says so.

    Yields nothing if the plan has an index, or neither of them. It is for sources that lack them for this build of
    torch: PyPI's torchvision does not load beside a torch for the CPU.
    """
    pinned = {name_of(pin) for pin in case.request.pins}
    out = [line for line in plan.requirements if name_of(line) in FAMILY and name_of(line) not in pinned]
    if out and plan.index_url is None:
        text = _(
            "{packages}: left out, as none of your package sources has them for this build of torch.",
            "companions-left-out",
        )
        lines = tuple(line for line in plan.requirements if line not in out)
        warning = text.format(packages=", ".join(out))
        yield replace(plan, requirements=lines, warnings=(*plan.warnings, warning))


def not_added_error(requirements: Iterable[str], error: Unsolved) -> WorkFailed:
    """Return the error of packages that do not go with what an environment keeps, by what uv said of it."""
    return WorkFailed(
        _("{packages} cannot be added: {reason}", packages=", ".join(requirements), reason=error.reason),
        hint=_("Ask for another version, or set up a new environment for it."),
    )
