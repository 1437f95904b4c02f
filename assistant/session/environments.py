"""The environments on this machine: found, judged by what they hold, and looked into or mended when the user asks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assistant import verify
from assistant.catalog import carried_by_torch_index, load_catalog
from assistant.catalog.companions import sharing
from assistant.catalog.onnxruntimes import runtime_plugins
from assistant.catalog.rows import FAMILY
from assistant.detect import detect
from assistant.host.base import Host
from assistant.host.files import may_write
from assistant.host.folders import full_path, here, is_own_environment
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
from assistant.plan import make_plans
from assistant.session.doctor import findings_of
from assistant.session.state import State, Surveyed, required
from assistant.session.survey import EnvironmentSummary, Repair, Survey

_OF_THE_SHELL = {"foreign-pip", "pythonpath-leak"}  # these are about the shell that asks, not about the environment


def survey(host: Host, machine: Machine, folders: Iterable[str] = ()) -> Survey:
    """Find the environments on this machine and judge each by its files; nothing in them is started."""
    named = tuple(str(full_path(folder)) for folder in folders)
    found = find_environments(host, here(), map(Path, named))
    rows = []
    for environment in found.environments:
        row = EnvironmentSummary(
            path=str(environment.path), name=environment.name, kind=environment.kind, of=environment.of, unread=True
        )
        with suppress(OSError, ValueError):  # a stranger's files may hold anything
            if not environment.is_unreadable(host):
                row = summary_of(environment, Site.read(environment.path, host), host, machine)
        rows.append(row)
    return Survey(environments=tuple(rows), folders=named, cut_short=found.cut_short)


def summary_of(environment: EnvironmentFolder, site: Site, host: Host, machine: Machine) -> EnvironmentSummary:
    """Return what is known of an environment by what it holds, with its findings."""
    own = is_own_environment(environment.path)
    return EnvironmentSummary(
        path=str(environment.path),
        name=environment.name,
        kind=environment.kind,
        of=environment.of,
        python=site.version,
        torch=site.versions.get("torch", ""),
        backend=_backend(site, host, machine),
        findings=() if own else judged_site(site, host, machine),
        kernels=environment.kernels,
        made=environment.marker is not None,
        own=own,
        others=_is_others(str(environment.path)),
        undo=environment.last_change,
    )


def _is_others(path: str) -> bool:
    """Return whether an environment stands that this user may not change."""
    return Path(path).is_dir() and not may_write(Path(path))


def may_change(path: str) -> bool:
    """Return whether an environment is one to change: not others', nor the assistant's own, which is made anew."""
    return not (is_own_environment(path) or _is_others(path))


def _backend(site: Site, host: Host, machine: Machine) -> Backend | None:
    """Return what torch was built for; None without torch, or where that cannot be told."""
    if "torch-directml" in site.versions:
        return Backend.DIRECTML
    built = site.torch_build(host).partition(" ")[0]
    if built == "cpu" and machine.os == "macos" and machine.arch == "arm64":
        return Backend.MPS
    return {"cuda": Backend.CUDA, "hip": Backend.ROCM, "xpu": Backend.XPU, "cpu": Backend.CPU}.get(built)


def judged_site(site: Site, host: Host, machine: Machine, *, guarded: bool = True) -> tuple[Finding, ...]:
    """Judge an environment: whether its Python is there, what it holds, what was replaced since it was made.

    Without `guarded` its constraints are not asked: a change writes them anew.
    """
    environment = EnvironmentFolder(Path(site.prefix))
    marker = environment.marker
    if gone := site.missing_python(host):
        return (gone,)
    chosen = marker is not None and marker.plan.backend is Backend.CPU
    gpu = not chosen and any(plan.backend is not Backend.CPU for plan in make_plans(machine, load_catalog()).plans)
    changed = environment.replaced_builds(site, host) if guarded else ()
    found = (*changed, *findings_of(site, machine, gpu_plan=gpu))
    return tuple(finding for finding in found if finding.wrong and finding.key not in _OF_THE_SHELL)


def looked_into(
    path: str, host: Host, machine: Machine, before: EnvironmentSummary | None = None
) -> tuple[EnvironmentSummary, Site | None]:
    """Ask an environment's own Python what it holds, and judge that; None for the second where it does not answer.

    Raises `BadInput` for a folder that is no environment.
    """
    environment = EnvironmentFolder.at(path)
    if before:
        environment = EnvironmentFolder(environment.path, before.name, before.kind, before.of)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    site = None
    try:
        site = Site.ask(environment.path, host)
        summary = summary_of(environment, site, host, machine)
    except BadInput as error:
        summary = summary_of(environment, Site.read(environment.path, host), host, machine)
        if not summary.findings or summary.findings[0].key != "environment-without-python":
            summary = replace(summary, findings=(unanswered(error), *summary.findings))
    return replace(summary, checked=now, stamp=site.stamp if site else environment.stamp), site


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
    """Find and judge the environments on this machine; those that the user named before stay in the list."""
    tools.sink(Progress(step=Step.DETECT, text=_("Looking for environments")))
    before = state.environments.survey or Survey()
    faults = {folder: fault for folder in before.folders if (fault := _fault(folder))}
    folders = (folder for folder in before.folders if folder not in faults)
    found = survey(tools.host, machine_here(state, tools.host), folders)
    checked = {one.path: one for one in before.environments if one.checked}
    rows = (_as_checked(one, checked.get(one.path)) for one in found.environments)
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


def _as_checked(now: EnvironmentSummary, before: EnvironmentSummary | None) -> EnvironmentSummary:
    """Keep what a check has found as long as the environment holds the same."""
    if before is None or not before.stamp or before.stamp != EnvironmentFolder(Path(now.path)).stamp:
        return now
    return replace(before, kernels=now.kernels, undo=now.undo)


def looked(state: State, tools: Tools) -> Surveyed:
    """Look into the environment that the user chose, and let it compute where it has torch."""
    picked = state.environments.picked
    tools.sink(Progress(step=Step.VERIFY, text=_("Reading what {path} holds", path=picked)))
    entry, site = _look_again(state, tools)
    if site and entry.torch and not entry.own:
        marker = EnvironmentFolder(Path(picked)).marker
        made = (
            replace(marker.environment, python=site.python) if marker else Environment(path=picked, python=site.python)
        )
        device = (entry.backend or Backend.CPU).value
        plan = marker.plan if marker else None
        report = verify.run(made, plan, device=device, sink=tools.sink, cancel=tools.cancel, traceless=True)
        wrong = tuple(finding for finding in verify.raised(report) if finding.wrong)
        entry = replace(entry, findings=(*entry.findings, *wrong), device=report.device if report.usable else "")
    return _with(state, replace(entry, size=EnvironmentFolder(Path(entry.path)).size))


def _look_again(state: State, tools: Tools) -> tuple[EnvironmentSummary, Site | None]:
    """Look into the environment that the user chose, as `looked_into` does."""
    picked, survey = state.environments.picked, state.environments.survey
    return looked_into(picked, tools.host, machine_here(state, tools.host), survey.of(picked) if survey else None)


def _with(state: State, entry: EnvironmentSummary, repair: Repair | None = None) -> Surveyed:
    """Return the environments with what is known of one by now, and the change that is offered for it."""
    return Surveyed(survey=(state.environments.survey or Survey()).with_summary(entry), repair=repair)


def undone(state: State, tools: Tools) -> Surveyed:
    """Put back what the environment held before its last change."""
    tools.sink(Progress(step=Step.INSTALL, text=_("Putting the packages back as they were")))
    EnvironmentFolder(Path(state.environments.picked)).undo_last_change(tools)
    return _with(state, _look_again(state, tools)[0])


def forgotten(state: State, _tools: Tools) -> Surveyed:
    """Delete what is kept for undoing the last change of an environment: the change is for good."""
    survey = state.environments.survey or Survey()
    environment = survey.of(state.environments.picked)
    EnvironmentFolder(Path(state.environments.picked)).forget_last_change()
    return _with(state, replace(environment, undo=None)) if environment else Surveyed(survey=survey)


def removed(state: State, tools: Tools) -> Surveyed:
    """Remove an environment that the assistant made."""
    tools.sink(Progress(step=Step.INSTALL, text=_("Removing {path}", path=state.environments.picked)))
    EnvironmentFolder.named(state.environments.picked).remove()
    return Surveyed(survey=(state.environments.survey or Survey()).without(state.environments.picked))


def compared(state: State, tools: Tools) -> Surveyed:
    """Work out the change that mends the environment that the user chose, and what it leaves; nothing is changed."""
    machine = machine_here(state, tools.host)
    environment, site = _look_again(state, tools)
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
    difference = change_mending(site, environment.findings, machine).work_out(site, tools)
    if not difference.moves:
        raise BadInput(
            _("No change of packages that would mend {path} was found.", path=environment.path),
            hint=_("Set up a new environment instead."),
        )
    remains = judged_site(difference.site_after, tools.host, machine, guarded=False)
    left = set(map(_identity, remains))
    mends = tuple(one for one in environment.findings if _identity(one) not in left)
    repair = Repair(path=environment.path, difference=difference, mends=mends, remains=remains)
    return _with(state, environment, repair)


def repaired(state: State, tools: Tools) -> Surveyed:
    """Carry out the change that was shown; it counts only once all packages import and what it mends is gone."""
    repair, machine = required(state.environments.repair), machine_here(state, tools.host)

    def prove(made: Environment, lock: Lock) -> None:
        site = Site.ask(Path(made.python), tools.host)
        names = {*site.versions, *made.packages}
        if differs := [name for name in names if site.versions.get(name) != made.packages.get(name)]:
            raise _refused(_("{names} would not have the versions that were shown", names=", ".join(sorted(differs))))
        left = set(map(_identity, judged_site(site, tools.host, machine, guarded=False)))
        if stays := [one for one in repair.mends if _identity(one) in left]:
            raise _refused(stays[0].text)
        for check in _imported(repair.difference, site, lock, tools).wrong:
            raise _refused(first_line(check.detail))

    repair.difference.make(prove, tools)
    return _with(state, _look_again(state, tools)[0])


def _identity(finding: Finding) -> tuple[str, str]:
    return finding.key, str(finding.text)


_GROUND = re.compile(r"torch(vision|audio)?$|numpy$|onnxruntime")


def _imported(difference: Difference, site: Site, lock: Lock, tools: Tools) -> Report:
    """Import the packages that moved, and of those that require one of them what everything else rests on."""
    moved = {move.name for move in difference.moves}
    needing = {canonicalize_name(one.name) for one in site.own if moved.intersection(map(_name_of, one.requires))}
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


def _name_of(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9][\w.-]*", requirement)  # PEP 508: a requirement begins with the name
    return canonicalize_name(found[0]) if found else ""


def _refused(reason: object) -> WorkFailed:
    return WorkFailed(
        _("The change did not mend the environment, so it was rolled back: {reason}.", reason=reason),
        hint=_("Everything is as it was before. Set up a new environment instead."),
    )


def mendable(environment: EnvironmentSummary) -> bool:
    """Return whether anything that is wrong with an environment can be mended by changing its packages."""
    closed = environment.own or environment.others or environment.unread
    return not closed and any(one.key in _WAYS for one in environment.findings)


def change_mending(site: Site, findings: Iterable[Finding], machine: Machine) -> ChangeRequest:
    """Return the change that would mend what is wrong with an environment, as far as changing packages can."""
    requires: dict[str, str] = {}
    change = ChangeRequest()
    order = list(_WAYS)
    for finding in sorted((one for one in findings if one.key in _WAYS), key=lambda one: order.index(one.key)):
        more = _WAYS[finding.key](site, finding, machine)
        for line in more.requires:  # of two ways that name a package the first counts
            requires.setdefault(canonicalize_name(Requirement(line).name), line)
        change = ChangeRequest(
            removes=(*change.removes, *more.removes),
            again=(*change.again, *more.again),
            index_url=change.index_url or more.index_url,
        )
    removes = tuple(name for name in dict.fromkeys(change.removes) if name not in requires)
    again = tuple(name for name in dict.fromkeys(change.again) if name not in removes)
    return replace(change, requires=tuple(requires.values()), removes=removes, again=again)


def _one_runtime(site: Site, finding: Finding, machine: Machine) -> ChangeRequest:
    """Keep the flavour of ONNX Runtime that a plan for this machine takes, else the plain one, and install it again.

    What plugs into it in the plan comes along: the provider of the flavour that goes may be a plug-in by now.
    """
    flavours = [canonicalize_name(str(line).partition("==")[0]) for line in finding.evidence]
    plan = _best_plan(site, machine)
    planned = {canonicalize_name(Requirement(line).name) for line in plan.requirements} if plan else set()
    stays = next((name for name in flavours if name in planned), None)
    stays = stays or next((name for name in flavours if name == "onnxruntime"), flavours[0])
    plugins = tuple(sorted(planned & {*runtime_plugins()})) if stays in planned else ()
    return ChangeRequest(removes=tuple(name for name in flavours if name != stays), again=(stays,), requires=plugins)


def _one_version(site: Site, finding: Finding, _machine: Machine) -> ChangeRequest:
    """Install again the version that has most of its files in place; that removes the files of the others."""
    name = str(finding.evidence[0]).partition("==")[0]
    return ChangeRequest(requires=(f"{name}=={site.version_in_place(name)}",), again=(name,))


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
    lines = [line for line in plan.requirements if carried_by_torch_index(canonicalize_name(Requirement(line).name))]
    named = {canonicalize_name(Requirement(line).name) for line in lines}
    beside = [name for name in FAMILY if name in site.versions and name not in named]
    return ChangeRequest(requires=(*lines, *beside), index_url=plan.index_url)


def _no_directml(site: Site, finding: Finding, _machine: Machine) -> ChangeRequest:
    """Remove what cannot load here; ONNX Runtime comes in its plain flavour where none other is there."""
    names = tuple(canonicalize_name(str(line).partition("==")[0]) for line in finding.evidence)
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
    # What is required and does not fit is mended by every change (see `ChangeRequest.work_out`).
    "requirement-broken": lambda _site, _finding, _machine: ChangeRequest(),
    "torch-pinned": lambda _site, _finding, _machine: ChangeRequest(),
}


def _best_plan(site: Site, machine: Machine) -> Plan | None:
    """Return what would be installed into a new environment of the same Python."""
    try:
        return make_plans(machine, load_catalog(), Request(python=site.minor)).choice
    except AssistantError:
        return None
