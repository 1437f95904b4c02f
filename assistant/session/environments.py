"""What is wrong on a machine and in its environments, which are found, judged, and mended when the user asks.

Of the machine that is what detection saw, what stands between it and a better plan, and what its facts tell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from packaging.utils import canonicalize_name

from assistant import verify
from assistant.catalog import carried_by_torch_index, load_catalog
from assistant.catalog.catalog import runtime_plugins
from assistant.catalog.companions import installed_of_clash
from assistant.catalog.tables import FAMILY
from assistant.detect import detect, find_broken_kernels
from assistant.diagnose import load_rules
from assistant.host.base import Host
from assistant.host.files import current_folder, full_path, is_own_environment, is_writable
from assistant.host.lock import Lock
from assistant.i18n import Text, _, first_line
from assistant.install import ChangeRequest, Difference, EnvironmentFolder, Site, Tools, Unsolved, find_environments
from assistant.model.errors import AssistantError, BadInput, WorkFailed
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.machine import Detection, Machine
from assistant.model.plan import Backend, Plan, Planning, Request, name_of
from assistant.model.record import replace
from assistant.model.report import Environment, Event, FindingRaised, Progress, Report, Step
from assistant.plan import make_plans
from assistant.session.diagnosis import add_rule_remedies
from assistant.session.state import EnvironmentSummary, Repair, State, Survey, Surveyed, finding_identity, required

# What a user can change, by the planner's keys; each state of NVIDIA's driver is one too.
MENDABLE = {
    "devices-hidden",
    "libc-musl",
    "macos-too-old",
    "mps-x86-python-rosetta",
    "python-32bit",
    "python-not-cpython",
    "rocm-wsl-unsupported-gpu",
    "windows-too-old",
}
# What detection sees in WSL and what keeps NVIDIA's driver from answering there: the cause is shown, not its effect.
CAUSES_OF_DRIVER = {"wsl-host-too-old", "wsl-linux-driver-installed"}
DISPROVED = {"vc-runtime-missing"}  # by torch that was imported


def examine(host: Host, site: Site | None = None) -> tuple[Finding, ...]:
    """Detect a machine and return all findings about it; a replayed one is judged by its recording alone.

    For the machine at hand these include torch builds that were replaced in environments. With `site`, the packages of
    that environment are judged instead of those of the Python at hand, with its conflicts.
    """
    found = detect(host)
    if host.replayed:
        return machine_findings(found)
    if site:
        found = replace(found, machine=replace(found.machine, packages=site.versions, python=site.version))
    settings = {name: answer.text for name in load_rules().variables if (answer := host.variable(name))}
    found = replace(found, machine=replace(found.machine, env={**settings, **found.machine.env}))
    folders = [Path(site.prefix)] if site else []
    conflicts = EnvironmentFolder(Path(site.prefix)).conflicts(site) if site else ()
    replaced = EnvironmentFolder.find_all_replaced_builds(host, *folders)
    return (*machine_findings(found, live=True), *conflicts, *replaced)


def package_findings(
    packages: Mapping[str, str], python: str, machine: Machine, *, gpu_plan: bool = True
) -> tuple[Finding, ...]:
    """Return findings, with remedies, about `packages` (name to version) that do not go together on a machine.

    `python` is their full version of Python; without `gpu_plan`, a build for the CPU is right even if there is a GPU.
    """
    there = replace(machine, packages=dict(packages), python=python)
    return add_rule_remedies(load_rules().check_up(there, gpu_plan=gpu_plan, of_packages=True), there)


def environment_findings(site: Site, machine: Machine, *, gpu_plan: bool = True) -> tuple[Finding, ...]:
    """Return the findings about what an environment holds now, with unmet requirements (see `package_findings`)."""
    return (
        *package_findings(site.versions, site.version, machine, gpu_plan=gpu_plan),
        *EnvironmentFolder(Path(site.prefix)).conflicts(site),
    )


def findings_still_true(found: Detection, host: Host, *, passed: bool = False) -> tuple[Finding, ...]:
    """Return detection's findings without those that no longer hold: of Jupyter kernels and this Python's packages.

    All others are kept, as they cannot be checked again, except those that a verification that `passed` disproves.
    """
    now = replace(found.machine, packages={name: str(text) for name, text in host.facts("packages").items()})
    wrong = {finding.text for finding in (*find_broken_kernels(host), *load_rules().check_up(now, of_packages=True))}
    asked = (
        {finding.text for finding in load_rules().check_up(found.machine, of_packages=True)}
        if host.ask("packages")
        else set()
    )
    if host.ask("kernels"):
        asked |= {finding.text for finding in found.findings if finding.key == "kernel-broken"}
    asked |= {finding.text for finding in found.findings if passed and finding.key in DISPROVED}
    return tuple(finding for finding in found.findings if finding.text in wrong or finding.text not in asked)


def machine_findings(found: Detection, *, live: bool = False) -> tuple[Finding, ...]:
    """Return all findings about a machine, with remedies: by its facts, on what rules out a better plan, by detection.

    No two of them say the same. `live` says that the machine is the one at hand.
    """
    machine = found.machine
    try:
        planning = make_plans(machine, load_catalog())
    except BadInput:  # nobody can read the version of its Python; what wants to plan for it will say so
        planning = Planning()
    causes = CAUSES_OF_DRIVER.intersection(finding.key for finding in found.findings)
    obstacles = tuple(finding for finding in _obstacles(planning) if not (causes and finding.key.startswith("nvidia-")))
    seen = {finding.key for finding in obstacles}
    observed = tuple(finding for finding in found.findings if finding.key not in seen)
    checked = load_rules().check_up(
        machine,
        {finding.key for finding in (*obstacles, *observed)},
        live=live,
        gpu_plan=any(plan.backend is not Backend.CPU for plan in planning.plans),
    )
    return add_rule_remedies((*checked, *obstacles, *observed), machine)


def _obstacles(planning: Planning) -> tuple[Finding, ...]:
    """Return what rules out a better plan than the chosen one as findings, the first of each key.

    They are warnings, but information if the user cannot change it, or if it would only bring a newer release of what
    works already. If no plan was chosen, every rejection becomes a warning.
    """
    order, choice = list(Backend), planning.choice
    found: dict[str, Finding] = {}
    for rejection in planning.rejected:
        # Backends are listed best first: only those at or before the choice would be taken instead of it.
        if choice and order.index(rejection.backend) > order.index(choice.backend):
            continue
        mendable = rejection.key in MENDABLE or rejection.key.startswith("nvidia-")
        matters = choice is None or (mendable and choice.backend is not rejection.backend)
        finding = Finding(
            key=rejection.key,
            severity=Severity.WARNING if matters else Severity.INFO,
            text=rejection.why,
            remedies=(Remedy(text=rejection.would_help),) if rejection.would_help else (),
        )
        found.setdefault(rejection.key, finding)
    return tuple(found.values())


_OF_THE_SHELL = {"foreign-pip", "pythonpath-leak"}  # these are about the shell that asks, not about the environment


def survey_environments(host: Host, machine: Machine, folders: Iterable[str] = ()) -> Survey:
    """Find environments, also below `folders`, and return each judged by its files; no program is started.

    One whose files cannot be read is only named (`unread`).
    """
    named = tuple(str(full_path(folder)) for folder in folders)
    found = find_environments(host, current_folder(), map(Path, named))
    rows = tuple(_summarize(environment, host, machine) for environment in found.environments)
    return Survey(environments=rows, folders=named, cut_short=found.cut_short)


def list_made(state: State, tools: Tools) -> Surveyed:
    """Return the environments that the assistant made, each judged by its files; no program is started."""
    machine = local_machine(state, tools.host)
    rows = (_summarize(environment, tools.host, machine) for environment in EnvironmentFolder.list_made())
    return Surveyed(survey=Survey(environments=tuple(rows)))


def _summarize(environment: EnvironmentFolder, host: Host, machine: Machine) -> EnvironmentSummary:
    """Return the summary of an environment by its files, of which a stranger's may hold anything."""
    row = _unread_summary(environment)
    with suppress(OSError, ValueError):
        if not environment.is_unreadable(host):
            row = _with_contents(row, Site.read(environment.path, host), host, machine)
    return row


def _unread_summary(environment: EnvironmentFolder) -> EnvironmentSummary:
    """Return a summary of an environment without its contents: path, name, kind, tool and kernels."""
    return EnvironmentSummary(
        path=str(environment.path),
        name=environment.name,
        kind=environment.kind,
        of=environment.tool,
        kernels=environment.kernels,
        unread=True,
    )


def _with_contents(row: EnvironmentSummary, site: Site, host: Host, machine: Machine) -> EnvironmentSummary:
    """Return the summary completed by what an environment holds, and by findings unless it is the assistant's own."""
    path = Path(row.path)
    own = is_own_environment(path)
    built = site.read_torch_build(host).partition(" ")[0]
    backend = {"cuda": Backend.CUDA, "hip": Backend.ROCM, "xpu": Backend.XPU, "cpu": Backend.CPU}.get(built)
    if "torch-directml" in site.versions:
        backend = Backend.DIRECTML
    elif backend is Backend.CPU and (machine.os, machine.arch) == ("macos", "arm64"):
        backend = Backend.MPS
    return replace(
        row,
        unread=False,
        python=site.version,
        torch=site.versions.get("torch", ""),
        backend=backend,
        findings=() if own else site_findings(site, host, machine),
        made=EnvironmentFolder(path).marker is not None,
        own=own,
        others=path.is_dir() and not is_writable(path),
        undo=EnvironmentFolder(path).last_change,
        keeps=EnvironmentFolder(path).guards,
    )


def is_changeable(path: str) -> bool:
    """Return whether packages may be changed in an environment: not another user's, nor the assistant's own."""
    return not is_own_environment(path) and (is_writable(Path(path)) or not Path(path).is_dir())


def site_findings(site: Site, host: Host, machine: Machine, *, guarded: bool = True) -> tuple[Finding, ...]:
    """Return what is wrong with an environment: only that its Python is missing, else what is wrong with its packages.

    Mere notes, and findings about the shell, are left out. Without `guarded`, builds other than the constraints pin are
    no finding, as a change writes the constraints anew.
    """
    environment = EnvironmentFolder(Path(site.prefix))
    marker = environment.marker
    if gone := site.missing_python_finding(host):
        return (gone,)
    chosen = marker is not None and marker.plan.backend is Backend.CPU
    gpu = not chosen and any(plan.backend is not Backend.CPU for plan in make_plans(machine, load_catalog()).plans)
    changed = environment.find_replaced_builds(site, host) if guarded else ()
    found = (*changed, *environment_findings(site, machine, gpu_plan=gpu))
    return tuple(finding for finding in found if finding.wrong and finding.key not in _OF_THE_SHELL)


def inspect(path: str, state: State, tools: Tools) -> tuple[EnvironmentSummary, Site | None]:
    """Run the Python of an environment, and return its summary and what it holds.

    If that does not answer, what it holds is None, and the summary is made from files and says so. Raises `BadInput`
    for a folder that is no environment.
    """
    environment, host, machine = EnvironmentFolder.at(path), tools.host, local_machine(state, tools.host)
    row, before, site = _unread_summary(environment), state.survey.summary_at(path), None
    row = replace(row, name=before.name, kind=before.kind, of=before.of) if before else row
    try:
        site = Site.ask(environment.path, host)
        row = _with_contents(row, site, host, machine)
    except BadInput as error:
        row = _with_contents(row, Site.read(environment.path, host), host, machine)
        if not row.findings or row.findings[0].key != "environment-without-python":
            row = replace(row, findings=(no_answer_finding(error), *row.findings))
    stamp = site.stamp if site else environment.stamp
    return replace(row, checked=datetime.now(UTC).isoformat(timespec="seconds"), stamp=stamp), site


def no_answer_finding(error: BadInput) -> Finding:
    """Return the finding that an environment's Python does not answer."""
    return Finding(key="python-does-not-answer", severity=Severity.ERROR, text=error.message)


def local_machine(state: State, host: Host) -> Machine:
    """Return the machine at hand even while a recorded one is simulated; it is detected if it was not yet."""
    real = state.aside if state.machine else state
    return real.detection.machine if real and real.detection else detect(host).machine


def kernel_and_plan(summary: EnvironmentSummary) -> tuple[Environment, Plan]:
    """Return an environment with the first of its kernels, and its plan; without a marker, one by the summary.

    It must have a kernel.
    """
    kernel, marker = summary.kernels[0], EnvironmentFolder(Path(summary.path)).marker
    if marker:
        return replace(marker.environment, kernel=kernel), marker.plan
    made = Environment(path=summary.path, python="", kernel=kernel)
    return made, Plan(backend=summary.backend or Backend.CPU, variant="", torch=summary.torch, python=summary.python)


def run_survey(state: State, tools: Tools) -> Surveyed:
    """Find and judge the environments on this machine, also below the folders that the user named.

    If nothing was installed in one since it was last checked, the summary of that check is kept. A folder that the user
    named and that is none becomes a note.
    """
    tools.sink(Progress(step=Step.DETECT, text=_("Looking for environments")))
    faults = {folder: fault for folder in state.survey.folders if (fault := _folder_finding(folder))}
    folders = (folder for folder in state.survey.folders if folder not in faults)
    found = survey_environments(tools.host, local_machine(state, tools.host), folders)
    rows = []
    for row in found.environments:
        before = state.survey.summary_at(row.path)
        same = before and before.checked and before.stamp and before.stamp == EnvironmentFolder(Path(row.path)).stamp
        rows.append(replace(before, kernels=row.kernels, undo=row.undo) if before and same else row)
    return Surveyed(survey=replace(found, environments=tuple(rows), notes=tuple(faults.values())))


def _folder_finding(folder: str) -> Finding | None:
    """Return what is wrong with a path that the user named: no folder is there, or the path is relative; else None."""
    text: Text = _("{folder} is not a folder.", folder=folder)
    hint: Text = ""
    try:
        if full_path(folder, relative=False).is_dir():
            return None
    except BadInput as error:
        text, hint = error.message, error.hint
    remedies = (Remedy(text=hint),) if hint else ()
    return Finding(key="no-folder", severity=Severity.WARNING, text=text, remedies=remedies)


def check_picked(state: State, tools: Tools) -> Surveyed:
    """Return the survey with a new summary of the picked environment: its Python is run, and its size measured.

    If it has torch and is not the assistant's own, torch is verified, too. Raises `BadInput` if it is no environment.
    """
    picked = state.environments.picked
    tools.sink(Progress(step=Step.VERIFY, text=_("Reading what {path} holds", path=picked)))
    entry, site = inspect(picked, state, tools)
    if site and entry.torch and not entry.own:
        marker = EnvironmentFolder(Path(picked)).marker
        made = replace(marker.environment if marker else Environment(path=picked, python=""), python=site.python)
        device = (entry.backend or Backend.CPU).value
        plan = marker.plan if marker else None
        report = verify.run(made, plan, device=device, sink=tools.sink, cancel=tools.cancel, traceless=True)
        wrong = tuple(finding for finding in verify.report_findings(report) if finding.wrong)
        entry = replace(entry, findings=(*entry.findings, *wrong), device=report.device if report.usable else "")
    return Surveyed(survey=state.survey.with_summary(replace(entry, size=EnvironmentFolder(Path(entry.path)).size)))


def undo_last_change(state: State, tools: Tools) -> Surveyed:
    """Restore what the picked environment held before its last change; return the survey with its new summary.

    Raises `BadInput` if there is nothing to undo, and `WorkFailed`, with the environment as it is, if that fails.
    """
    tools.sink(Progress(step=Step.INSTALL, text=_("Putting the packages back as they were")))
    EnvironmentFolder(Path(state.environments.picked)).undo_last_change(tools)
    return Surveyed(survey=state.survey.with_summary(inspect(state.environments.picked, state, tools)[0]))


def forget_last_change(state: State, _tools: Tools) -> Surveyed:
    """Delete what is kept for undoing the last change of the picked environment; return the survey that says so."""
    EnvironmentFolder(Path(state.environments.picked)).delete_previous_state()
    row = state.survey.summary_at(state.environments.picked)
    return Surveyed(survey=state.survey.with_summary(replace(row, undo=None)) if row else state.survey)


def keep_build(state: State, tools: Tools) -> Surveyed:
    """Make later installations keep the torch of the picked environment, or no longer if they do; return the survey.

    What the user has to do beside becomes a note. Raises as `EnvironmentFolder.guard` does.
    """
    picked = state.environments.picked
    environment, notes = EnvironmentFolder.at(picked), tuple[Finding, ...]()
    if environment.guards:
        environment.unguard()
    else:
        notes = environment.guard(Site.ask(environment.path, tools.host))
    survey = state.environments.survey or run_survey(state, tools).survey
    row = survey.summary_at(picked) or inspect(picked, state, tools)[0]
    row = replace(row, keeps=environment.guards)
    return Surveyed(survey=replace(survey.with_summary(row), notes=notes))


def remove_picked(state: State, tools: Tools) -> Surveyed:
    """Delete the picked environment and return the survey without it.

    Raises `BadInput` if the assistant did not make it.
    """
    picked = state.environments.picked
    tools.sink(Progress(step=Step.INSTALL, text=_("Removing {path}", path=picked)))
    EnvironmentFolder.named(picked).remove()
    rows = tuple(row for row in state.survey.environments if row.path != picked)
    return Surveyed(survey=replace(state.survey, environments=rows))


def work_out_repair(state: State, tools: Tools) -> Surveyed:
    """Work out a repair of the picked environment: what it changes, fixes and leaves unfixed; change nothing yet.

    Raises `BadInput` for the assistant's own environment, and if no change of packages would help.
    """
    machine = local_machine(state, tools.host)
    environment, site = inspect(state.environments.picked, state, tools)
    if environment.own:
        raise BadInput(
            _("This is the assistant's own environment: the next update replaces it."),
            hint=_("Set up an environment of your own; nothing needs to be changed here."),
        )
    if site is None or not is_mendable(environment):
        raise BadInput(
            _("Nothing that is wrong with {path} can be mended by changing its packages.", path=environment.path),
            hint=_("Check it to see what is wrong, or set up a new environment."),
        )
    difference = _resolve_mending(site, environment.findings, machine, tools)
    if not difference.moves:
        raise BadInput(
            _("No change of packages that would mend {path} was found.", path=environment.path),
            hint=_("Set up a new environment instead."),
        )
    remains = site_findings(difference.site_after, tools.host, machine, guarded=False)
    left = set(map(finding_identity, remains))
    mends = tuple(finding for finding in environment.findings if finding_identity(finding) not in left)
    repair = Repair(path=environment.path, difference=difference, mends=mends, remains=remains)
    return Surveyed(survey=state.survey.with_summary(environment), repair=repair)


def _resolve_mending(site: Site, findings: Iterable[Finding], machine: Machine, tools: Tools) -> Difference:
    """Return what the change that mends findings would do; raise as `ChangeRequest.resolve_change` does.

    If the build that was replaced does not go with what replaced it, in any version, that is removed.
    """
    change = mending_change(site, findings, machine)
    brought = tuple(str(name) for finding in findings if finding.key == "build-replaced" for name in finding.evidence)
    try:
        return change.resolve_change(site, tools)
    except Unsolved as failure:
        if failure.unreachable or not brought:
            raise
        return replace(change, removes=(*change.removes, *brought)).resolve_change(site, tools)


def carry_out_repair(state: State, tools: Tools) -> Surveyed:
    """Carry out the repair that was shown, and read the environment again; raise `WorkFailed`, all undone, if it fails.

    It fails if versions are not those that were shown, if a finding that it was to fix is still there, or if a changed
    package cannot be imported.
    """
    repair, machine = required(state.environments.repair), local_machine(state, tools.host)

    with repair.difference.apply(tools) as built:
        site, expected = Site.ask(Path(built.now.python), tools.host), built.now.packages
        names = sorted({*site.versions, *expected})
        if differs := [name for name in names if site.versions.get(name) != expected.get(name)]:
            raise _rejection(_("{names} would not have the versions that were shown", names=", ".join(differs)))
        left = set(map(finding_identity, site_findings(site, tools.host, machine, guarded=False)))
        if stays := [finding for finding in repair.mends if finding_identity(finding) in left]:
            raise _rejection(stays[0].text)
        for check in _import_moved(repair.difference, site, built.lock, tools).wrong:
            raise _rejection(first_line(check.detail))
    return Surveyed(survey=state.survey.with_summary(inspect(state.environments.picked, state, tools)[0]))


_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")  # PEP 508: a requirement begins with it
_GROUND = re.compile(r"torch(vision|audio)?$|numpy$|onnxruntime")


def _import_moved(difference: Difference, site: Site, lock: Lock | None, tools: Tools) -> Report:
    """Import the packages that changed, and torch, its family, NumPy and ONNX Runtime if they require a changed one.

    Returns the report. Findings are not passed on: a change that is refused leaves nothing to report.
    """
    moved = {move.name for move in difference.moves}
    needing = {
        canonicalize_name(package.name)
        for package in site.own
        for line in package.requires
        if (need := _NAME.match(line)) and canonicalize_name(need[0]) in moved
    }
    names = [name for name in site.versions if name in moved or (name in needing and _GROUND.match(name))]

    def hear(event: Event) -> None:
        if not isinstance(event, FindingRaised):
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


def _rejection(reason: object) -> WorkFailed:
    return WorkFailed(
        _("The change did not mend the environment, so it was rolled back: {reason}.", reason=reason),
        hint=_("Everything is as it was before. Set up a new environment instead."),
    )


def is_mendable(environment: EnvironmentSummary) -> bool:
    """Return whether an environment was read, may be changed, and has a finding that a change of packages may fix."""
    closed = environment.own or environment.others or environment.unread
    return not closed and any(finding.key in _WAYS for finding in environment.findings)


def mending_change(site: Site, findings: Iterable[Finding], machine: Machine) -> ChangeRequest:
    """Return one change that combines those for all findings with a key in `_WAYS`, in that order; others are ignored.

    Of two requirements for a package, and of two indexes, the first counts. What one requires no other removes, and
    what one removes no other installs again, whatever their order.
    """
    findings, requires = tuple(findings), dict[str, str]()
    ways = [way(site, finding, machine) for key, way in _WAYS.items() for finding in findings if finding.key == key]
    for line in (line for change in ways for line in change.requires):
        requires.setdefault(name_of(line), line)  # of two ways that name a package the first counts
    removes = dict.fromkeys(name for change in ways for name in change.removes if name not in requires)
    again = dict.fromkeys(name for change in ways for name in change.reinstalls if name not in removes)
    index_url = next((change.index_url for change in ways if change.index_url), None)
    return ChangeRequest(tuple(requires.values()), tuple(removes), tuple(again), index_url)


def _keep_one_runtime(site: Site, finding: Finding, machine: Machine) -> ChangeRequest:
    """Return the change that leaves one flavour of ONNX Runtime, the plan's, else the plain one, and reinstalls it.

    The plan's plug-ins for it are required, too: the provider of a flavour that is removed may be a plug-in by now.
    """
    flavours = [name_of(str(line)) for line in finding.evidence]
    plan = _plan_for_new(site, machine)
    planned = set(map(name_of, plan.requirements)) if plan else set()
    stays = next((name for name in flavours if name in planned), None)
    stays = stays or next((name for name in flavours if name == "onnxruntime"), flavours[0])
    plugins = tuple(sorted(planned & {*runtime_plugins()})) if stays in planned else ()
    others = tuple(name for name in flavours if name != stays)
    return ChangeRequest(requires=plugins, removes=others, reinstalls=(stays,))


def _reinstall_version(site: Site, finding: Finding, _machine: Machine) -> ChangeRequest:
    """Return the change that reinstalls the version of which most files exist; that removes the files of the others."""
    name = str(finding.evidence[0]).partition("==")[0]
    return ChangeRequest(requires=(f"{name}=={site.version_with_most_files(name)}",), reinstalls=(name,))


def _use_torch_index(site: Site, _finding: Finding, _machine: Machine) -> ChangeRequest:
    """Return the change that keeps torch's version, and resolves what is installed of its family to go with it."""
    versions = site.versions
    beside = [name for name in FAMILY if name in versions]
    return ChangeRequest(requires=(f"torch=={versions['torch']}", *beside))


def _use_planned_build(site: Site, _finding: Finding, machine: Machine) -> ChangeRequest:
    """Return the change to what the best plan takes from torch's index; an empty one without a plan.

    Also an empty one if the plan sets variables, which a change of packages cannot.
    """
    plan = _plan_for_new(site, machine)
    if plan is None or plan.env:
        return ChangeRequest()
    lines = [line for line in plan.requirements if carried_by_torch_index(name_of(line))]
    named = set(map(name_of, lines))
    beside = [name for name in FAMILY if name in site.versions and name not in named]
    return ChangeRequest(requires=(*lines, *beside), index_url=plan.index_url)


def _remove_directml(site: Site, finding: Finding, _machine: Machine) -> ChangeRequest:
    """Return the change that removes what the finding lists, and requires plain ONNX Runtime if that leaves none."""
    names = tuple(name_of(str(line)) for line in finding.evidence)
    alone = installed_of_clash("onnxruntime-packages-conflict", site.versions) == ("onnxruntime-directml",)
    return ChangeRequest(removes=names, requires=("onnxruntime",) if alone else ())


def _restore_pins(site: Site, _finding: Finding, _machine: Machine) -> ChangeRequest:
    """Return the change back to the versions that the environment's constraints pin, from the index of that build."""
    environment, versions = EnvironmentFolder(Path(site.prefix)), site.versions
    others = tuple(pin for pin in environment.guards if versions.get(pin.partition("==")[0]) != pin.partition("==")[2])
    return ChangeRequest(requires=others, index_url=environment.index_of_guards)


Way = Callable[[Site, Finding, Machine], ChangeRequest]
_WAYS: dict[str, Way] = {  # in order: where two name the same package, the first counts
    "wrong-backend-build-for-gpu": _use_planned_build,
    "torch-cpu-build-installed": _use_planned_build,
    "build-replaced": _restore_pins,
    "package-installed-twice": _reinstall_version,
    "directml-on-native-linux": _remove_directml,
    "onnxruntime-packages-conflict": _keep_one_runtime,
    "torch-torchvision-mismatch": _use_torch_index,
    "numpy2-abi": lambda _site, _finding, _machine: ChangeRequest(requires=("numpy<2",)),
    # What is required and does not fit is mended by every change (see `ChangeRequest.resolve_change`).
    "requirement-broken": lambda _site, _finding, _machine: ChangeRequest(),
    "torch-pinned": lambda _site, _finding, _machine: ChangeRequest(),
}


def _plan_for_new(site: Site, machine: Machine) -> Plan | None:
    """Return the best plan for a machine and the Python version of `site`; None if planning fails or nothing fits."""
    try:
        return make_plans(machine, load_catalog(), Request(python=site.minor)).choice
    except AssistantError:
        return None
