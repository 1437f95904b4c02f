"""The environments on this machine: found, judged by what they hold, and looked into or mended when the user asks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from packaging.utils import canonicalize_name

from assistant import verify
from assistant.catalog import carried_by_torch_index, load_catalog
from assistant.catalog.bundles import runtime_plugins
from assistant.catalog.companions import sharing
from assistant.catalog.rows import FAMILY
from assistant.detect import detect
from assistant.host.base import Host
from assistant.host.files import current_folder, full_path, is_own_environment, is_writable
from assistant.host.lock import Lock
from assistant.i18n import Text, _, first_line
from assistant.install import (
    ChangeRequest,
    Difference,
    EnvironmentFolder,
    Site,
    Tools,
    find_environments,
)
from assistant.model.errors import AssistantError, BadInput, WorkFailed
from assistant.model.event import Event, FindingRaised, Progress, Step
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.machine import Machine
from assistant.model.plan import Backend, Plan, Request
from assistant.model.record import replace
from assistant.model.report import Environment, Report
from assistant.model.requirement import name_of
from assistant.plan import make_plans
from assistant.session.doctor import findings_of
from assistant.session.state import State, Surveyed, identity, required
from assistant.session.survey import EnvironmentSummary, Repair, Survey

_OF_THE_SHELL = {"foreign-pip", "pythonpath-leak"}  # these are about the shell that asks, not about the environment


def survey(host: Host, machine: Machine, folders: Iterable[str] = ()) -> Survey:
    """Find the environments on this machine and judge each by its files; nothing in them is started."""
    named = tuple(str(full_path(folder)) for folder in folders)
    found = find_environments(host, current_folder(), map(Path, named))
    rows = []
    for environment in found.environments:
        row = _row_of(environment)
        with suppress(OSError, ValueError):  # a stranger's files may hold anything
            if not environment.is_unreadable(host):
                row = _judged(row, Site.read(environment.path, host), host, machine)
        rows.append(row)
    return Survey(environments=tuple(rows), folders=named, cut_short=found.cut_short)


def _row_of(environment: EnvironmentFolder) -> EnvironmentSummary:
    """Return what is known of an environment before anything in it is read."""
    return EnvironmentSummary(
        path=str(environment.path),
        name=environment.name,
        kind=environment.kind,
        of=environment.tool,
        kernels=environment.kernels,
        unread=True,
    )


def _judged(row: EnvironmentSummary, site: Site, host: Host, machine: Machine) -> EnvironmentSummary:
    """Return what is known of an environment by what it holds, with its findings."""
    path = Path(row.path)
    own = is_own_environment(path)
    return replace(
        row,
        unread=False,
        python=site.version,
        torch=site.versions.get("torch", ""),
        backend=_backend(site, host, machine),
        findings=() if own else judged_site(site, host, machine),
        made=EnvironmentFolder(path).marker is not None,
        own=own,
        others=path.is_dir() and not is_writable(path),
        undo=EnvironmentFolder(path).last_change,
    )


def may_change(path: str) -> bool:
    """Return whether an environment is one to change: not others', nor the assistant's own, which is made anew."""
    return not is_own_environment(path) and (is_writable(Path(path)) or not Path(path).is_dir())


def _backend(site: Site, host: Host, machine: Machine) -> Backend | None:
    """Return what torch was built for; None without torch, or where that cannot be told."""
    if "torch-directml" in site.versions:
        return Backend.DIRECTML
    built = site.read_torch_build(host).partition(" ")[0]
    if built == "cpu" and machine.os == "macos" and machine.arch == "arm64":
        return Backend.MPS
    return {"cuda": Backend.CUDA, "hip": Backend.ROCM, "xpu": Backend.XPU, "cpu": Backend.CPU}.get(built)


def judged_site(site: Site, host: Host, machine: Machine, *, guarded: bool = True) -> tuple[Finding, ...]:
    """Judge an environment: whether its Python is there, what it holds, what was replaced since it was made.

    Without `guarded` its constraints are not asked: a change writes them anew.
    """
    environment = EnvironmentFolder(Path(site.prefix))
    marker = environment.marker
    if gone := site.missing_python_finding(host):
        return (gone,)
    chosen = marker is not None and marker.plan.backend is Backend.CPU
    gpu = not chosen and any(plan.backend is not Backend.CPU for plan in make_plans(machine, load_catalog()).plans)
    changed = environment.find_replaced_builds(site, host) if guarded else ()
    found = (*changed, *findings_of(site, machine, gpu_plan=gpu))
    return tuple(finding for finding in found if finding.wrong and finding.key not in _OF_THE_SHELL)


def looked_into(path: str, state: State, tools: Tools) -> tuple[EnvironmentSummary, Site | None]:
    """Ask an environment's own Python what it holds, and judge that; None for the second where it does not answer.

    Raises `BadInput` for a folder that is no environment.
    """
    environment, host, machine = EnvironmentFolder.at(path), tools.host, machine_here(state, tools.host)
    row, before, site = _row_of(environment), state.survey.of(path), None
    row = replace(row, name=before.name, kind=before.kind, of=before.of) if before else row
    try:
        site = Site.ask(environment.path, host)
        row = _judged(row, site, host, machine)
    except BadInput as error:
        row = _judged(row, Site.read(environment.path, host), host, machine)
        if not row.findings or row.findings[0].key != "environment-without-python":
            row = replace(row, findings=(unanswered(error), *row.findings))
    stamp = site.stamp if site else environment.stamp
    return replace(row, checked=datetime.now(UTC).isoformat(timespec="seconds"), stamp=stamp), site


def unanswered(error: BadInput) -> Finding:
    """Return the finding that an environment's Python does not answer."""
    return Finding(key="python-does-not-answer", severity=Severity.ERROR, text=error.message)


def machine_here(state: State, host: Host) -> Machine:
    """Return the machine at hand, whichever recorded one is looked at meanwhile."""
    real = state.aside if state.machine else state
    return real.detection.machine if real and real.detection else detect(host).machine


def kernel_of(summary: EnvironmentSummary) -> tuple[Environment, Plan]:
    """Return an environment with its kernel, and what it was planned for, or is as good as."""
    kernel, marker = summary.kernels[0], EnvironmentFolder(Path(summary.path)).marker
    if marker:
        return replace(marker.environment, kernel=kernel), marker.plan
    made = Environment(path=summary.path, python="", kernel=kernel)
    return made, Plan(backend=summary.backend or Backend.CPU, variant="", torch=summary.torch, python=summary.python)


def surveyed(state: State, tools: Tools) -> Surveyed:
    """Find and judge the environments on this machine; those that the user named before stay in the list.

    What a check has found is kept as long as the environment holds the same.
    """
    tools.sink(Progress(step=Step.DETECT, text=_("Looking for environments")))
    faults = {folder: fault for folder in state.survey.folders if (fault := _fault(folder))}
    folders = (folder for folder in state.survey.folders if folder not in faults)
    found = survey(tools.host, machine_here(state, tools.host), folders)
    rows = []
    for row in found.environments:
        before = state.survey.of(row.path)
        same = before and before.checked and before.stamp and before.stamp == EnvironmentFolder(Path(row.path)).stamp
        rows.append(replace(before, kernels=row.kernels, undo=row.undo) if before and same else row)
    return Surveyed(survey=replace(found, environments=tuple(rows), notes=tuple(faults.values())))


def _fault(folder: str) -> Finding | None:
    """Return what is wrong with a folder that the user named; None for one that can be searched."""
    text: Text = _("{folder} is not a folder.", folder=folder)
    hint: Text = ""
    try:
        if full_path(folder, relative=False).is_dir():
            return None
    except BadInput as error:
        text, hint = error.message, error.hint
    remedies = (Remedy(text=hint),) if hint else ()
    return Finding(key="no-folder", severity=Severity.WARNING, text=text, remedies=remedies)


def looked(state: State, tools: Tools) -> Surveyed:
    """Look into the environment that the user chose, and let it compute where it has torch."""
    picked = state.environments.picked
    tools.sink(Progress(step=Step.VERIFY, text=_("Reading what {path} holds", path=picked)))
    entry, site = looked_into(picked, state, tools)
    if site and entry.torch and not entry.own:
        marker = EnvironmentFolder(Path(picked)).marker
        made = replace(marker.environment if marker else Environment(path=picked, python=""), python=site.python)
        device = (entry.backend or Backend.CPU).value
        plan = marker.plan if marker else None
        report = verify.run(made, plan, device=device, sink=tools.sink, cancel=tools.cancel, traceless=True)
        wrong = tuple(finding for finding in verify.report_findings(report) if finding.wrong)
        entry = replace(entry, findings=(*entry.findings, *wrong), device=report.device if report.usable else "")
    return Surveyed(survey=state.survey.with_summary(replace(entry, size=EnvironmentFolder(Path(entry.path)).size)))


def undone(state: State, tools: Tools) -> Surveyed:
    """Put back what the environment held before its last change."""
    tools.sink(Progress(step=Step.INSTALL, text=_("Putting the packages back as they were")))
    EnvironmentFolder(Path(state.environments.picked)).undo_last_change(tools)
    return Surveyed(survey=state.survey.with_summary(looked_into(state.environments.picked, state, tools)[0]))


def forgotten(state: State, _tools: Tools) -> Surveyed:
    """Delete what is kept for undoing the last change of an environment: the change is for good."""
    EnvironmentFolder(Path(state.environments.picked)).delete_previous_state()
    row = state.survey.of(state.environments.picked)
    return Surveyed(survey=state.survey.with_summary(replace(row, undo=None)) if row else state.survey)


def removed(state: State, tools: Tools) -> Surveyed:
    """Remove an environment that the assistant made."""
    picked = state.environments.picked
    tools.sink(Progress(step=Step.INSTALL, text=_("Removing {path}", path=picked)))
    EnvironmentFolder.named(picked).remove()
    rows = tuple(row for row in state.survey.environments if row.path != picked)
    return Surveyed(survey=replace(state.survey, environments=rows))


def compared(state: State, tools: Tools) -> Surveyed:
    """Work out the change that mends the environment that the user chose, and what it leaves; nothing is changed."""
    machine = machine_here(state, tools.host)
    environment, site = looked_into(state.environments.picked, state, tools)
    if environment.own:
        raise BadInput(
            _("This is the assistant's own environment: the next update replaces it."),
            hint=_("Set up an environment of your own; nothing needs to be changed here."),
        )
    if site is None or not mendable(environment):
        raise BadInput(
            _("Nothing that is wrong with {path} can be mended by changing its packages.", path=environment.path),
            hint=_("Check it to see what is wrong, or set up a new environment."),
        )
    difference = change_mending(site, environment.findings, machine).resolve_change(site, tools)
    if not difference.moves:
        raise BadInput(
            _("No change of packages that would mend {path} was found.", path=environment.path),
            hint=_("Set up a new environment instead."),
        )
    remains = judged_site(difference.site_after, tools.host, machine, guarded=False)
    left = set(map(identity, remains))
    mends = tuple(finding for finding in environment.findings if identity(finding) not in left)
    repair = Repair(path=environment.path, difference=difference, mends=mends, remains=remains)
    return Surveyed(survey=state.survey.with_summary(environment), repair=repair)


def repaired(state: State, tools: Tools) -> Surveyed:
    """Carry out the change that was shown; it counts only once all packages import and what it mends is gone."""
    repair, machine = required(state.environments.repair), machine_here(state, tools.host)

    def prove(made: Environment, lock: Lock) -> None:
        site = Site.ask(Path(made.python), tools.host)
        names = {*site.versions, *made.packages}
        if differs := [name for name in names if site.versions.get(name) != made.packages.get(name)]:
            raise _refused(_("{names} would not have the versions that were shown", names=", ".join(sorted(differs))))
        left = set(map(identity, judged_site(site, tools.host, machine, guarded=False)))
        if stays := [finding for finding in repair.mends if identity(finding) in left]:
            raise _refused(stays[0].text)
        for check in _imported(repair.difference, site, lock, tools).wrong:
            raise _refused(first_line(check.detail))

    repair.difference.apply(prove, tools)
    return Surveyed(survey=state.survey.with_summary(looked_into(state.environments.picked, state, tools)[0]))


_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")  # PEP 508: a requirement begins with it
_GROUND = re.compile(r"torch(vision|audio)?$|numpy$|onnxruntime")


def _imported(difference: Difference, site: Site, lock: Lock, tools: Tools) -> Report:
    """Import the packages that moved, and of those that require one of them what everything else rests on."""
    moved = {move.name for move in difference.moves}
    needing = {
        canonicalize_name(package.name)
        for package in site.own
        for line in package.requires
        if (need := _NAME.match(line)) and canonicalize_name(need[0]) in moved
    }
    names = [name for name in site.versions if name in moved or (name in needing and _GROUND.match(name))]

    def hear(event: Event) -> None:
        if not isinstance(event, FindingRaised):  # a change that is refused leaves nothing to be told of
            tools.sink(event)

    return verify.run_checks(
        site.python,
        Backend.CPU.value,
        hear,
        tools.cancel,
        level=(),
        packages=names,
        calls=False,
        traceless=True,
        lock=lock,
    )


def _refused(reason: object) -> WorkFailed:
    return WorkFailed(
        _("The change did not mend the environment, so it was rolled back: {reason}.", reason=reason),
        hint=_("Everything is as it was before. Set up a new environment instead."),
    )


def mendable(environment: EnvironmentSummary) -> bool:
    """Return whether anything that is wrong with an environment can be mended by changing its packages."""
    closed = environment.own or environment.others or environment.unread
    return not closed and any(finding.key in _WAYS for finding in environment.findings)


def change_mending(site: Site, findings: Iterable[Finding], machine: Machine) -> ChangeRequest:
    """Return the change that would mend what is wrong with an environment, as far as changing packages can."""
    findings, requires = tuple(findings), dict[str, str]()
    ways = [way(site, finding, machine) for key, way in _WAYS.items() for finding in findings if finding.key == key]
    for line in (line for change in ways for line in change.requires):
        requires.setdefault(name_of(line), line)  # of two ways that name a package the first counts
    removes = dict.fromkeys(name for change in ways for name in change.removes if name not in requires)
    again = dict.fromkeys(name for change in ways for name in change.again if name not in removes)
    index_url = next((change.index_url for change in ways if change.index_url), None)
    return ChangeRequest(tuple(requires.values()), tuple(removes), tuple(again), index_url)


def _one_runtime(site: Site, finding: Finding, machine: Machine) -> ChangeRequest:
    """Keep the flavour of ONNX Runtime that a plan for this machine takes, else the plain one, and install it again.

    What plugs into it in the plan comes along: the provider of the flavour that goes may be a plug-in by now.
    """
    flavours = [name_of(str(line)) for line in finding.evidence]
    plan = _best_plan(site, machine)
    planned = set(map(name_of, plan.requirements)) if plan else set()
    stays = next((name for name in flavours if name in planned), None)
    stays = stays or next((name for name in flavours if name == "onnxruntime"), flavours[0])
    plugins = tuple(sorted(planned & {*runtime_plugins()})) if stays in planned else ()
    return ChangeRequest(removes=tuple(name for name in flavours if name != stays), again=(stays,), requires=plugins)


def _one_version(site: Site, finding: Finding, _machine: Machine) -> ChangeRequest:
    """Install again the version that has most of its files in place; that removes the files of the others."""
    name = str(finding.evidence[0]).partition("==")[0]
    return ChangeRequest(requires=(f"{name}=={site.version_with_most_files(name)}",), again=(name,))


def _one_index(site: Site, _finding: Finding, _machine: Machine) -> ChangeRequest:
    """Take what belongs to torch from torch's own index."""
    versions = site.versions
    beside = [name for name in FAMILY if name in versions]
    return ChangeRequest(requires=(f"torch=={versions['torch']}", *beside))


def _for_this_gpu(site: Site, _finding: Finding, machine: Machine) -> ChangeRequest:
    """Take the build that a plan for this machine takes; none where the plan needs variables beside the packages."""
    plan = _best_plan(site, machine)
    if plan is None or plan.env:
        return ChangeRequest()
    lines = [line for line in plan.requirements if carried_by_torch_index(name_of(line))]
    named = set(map(name_of, lines))
    beside = [name for name in FAMILY if name in site.versions and name not in named]
    return ChangeRequest(requires=(*lines, *beside), index_url=plan.index_url)


def _no_directml(site: Site, finding: Finding, _machine: Machine) -> ChangeRequest:
    """Remove what cannot load here; ONNX Runtime comes in its plain flavour where none other is there."""
    names = tuple(name_of(str(line)) for line in finding.evidence)
    alone = sharing("onnxruntime-packages-conflict", site.versions) == ("onnxruntime-directml",)
    return ChangeRequest(removes=names, requires=("onnxruntime",) if alone else ())


def _original(site: Site, _finding: Finding, _machine: Machine) -> ChangeRequest:
    """Bring back the versions that the environment's constraints name."""
    environment, versions = EnvironmentFolder(Path(site.prefix)), site.versions
    others = tuple(
        pin for pin in environment.constraints if versions.get(pin.partition("==")[0]) != pin.partition("==")[2]
    )
    marker = environment.marker
    return ChangeRequest(requires=others, index_url=marker.plan.index_url if marker else None)


Way = Callable[[Site, Finding, Machine], ChangeRequest]
_WAYS: dict[str, Way] = {  # in order: where two name the same package, the first counts
    "wrong-backend-build-for-gpu": _for_this_gpu,
    "torch-cpu-build-installed": _for_this_gpu,
    "build-replaced": _original,
    "package-installed-twice": _one_version,
    "directml-on-native-linux": _no_directml,
    "onnxruntime-packages-conflict": _one_runtime,
    "torch-torchvision-mismatch": _one_index,
    "numpy2-abi": lambda _site, _finding, _machine: ChangeRequest(requires=("numpy<2",)),
    # What is required and does not fit is mended by every change (see `ChangeRequest.resolve_change`).
    "requirement-broken": lambda _site, _finding, _machine: ChangeRequest(),
    "torch-pinned": lambda _site, _finding, _machine: ChangeRequest(),
}


def _best_plan(site: Site, machine: Machine) -> Plan | None:
    """Return what would be installed into a new environment of the same Python."""
    try:
        return make_plans(machine, load_catalog(), Request(python=site.minor)).choice
    except AssistantError:
        return None
