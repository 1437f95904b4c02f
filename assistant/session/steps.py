"""The tasks of the steps: detect, prepare, install, add, verify and export, each from the state to what it found."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assistant import verify
from assistant.catalog import load_catalog
from assistant.detect import detect
from assistant.export import Setup, export
from assistant.host.base import Host, ReplayHost
from assistant.host.files import is_own_environment
from assistant.host.live import private_names_here
from assistant.host.lock import Lock
from assistant.i18n import Message, _, first_line, map_texts, sentences
from assistant.install import EnvironmentFolder, Prepared, Resolution, Site, Tools, Unsolved, prepare
from assistant.machines import load
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.finding import Finding, Severity
from assistant.model.machine import Detection
from assistant.model.plan import Backend, Plan, check_requirement, name_of
from assistant.model.record import replace
from assistant.model.report import Environment, FindingRaised, LogLine, Part, Progress, Report, Step, check_title
from assistant.plan import PlanInputs
from assistant.session.environments import (
    environment_findings,
    machine_findings,
    no_answer_finding,
    package_findings,
    site_findings,
)
from assistant.session.planning import gpu_name, not_added_error, prepare_nearest
from assistant.session.state import Adding, Detected, Drawn, Exported, Installed, State, Verified, required

TITLES: Mapping[Part, Message] = {
    Part.RESOLVE: _("Resolve the packages"),
    Part.DOWNLOAD: _("Download"),
    Part.UNPACK: _("Unpack"),
    Part.CHECK: _("Check that it computes"),
    Part.REGISTER: _("Add the kernel to Jupyter"),
}


def detect_machine(state: State, tools: Tools) -> Detected:
    """Detect this machine, or the simulated one that the state names, with the user's overrides and what is not OK.

    For this machine it also finds the interpreters, and starts reading the settings of the package sources in the
    background. After a failed cell, if the state has an environment, the packages are those of that environment.
    """
    if not state.machine:
        tools.sources.start_reading_settings()
    found = detect(ReplayHost(load(state.machine)) if state.machine else tools.host, overrides=state.choices.overrides)
    if state.failed_cell and state.environment:
        found = with_kernel_packages(found, state.environment, tools)
    found = replace(found, findings=tuple(each for each in machine_findings(found) if each.severity is not Severity.OK))
    return Detected(detection=found, pythons={} if state.machine else find_interpreters(tools.host))


def with_kernel_packages(found: Detection, kernel: Environment, tools: Tools) -> Detection:
    """Return a detection with the packages and Python of a kernel; unchanged if its Python does not answer.

    What is wrong with these packages, or that there was no answer, is reported to the sink of `tools`.
    """
    try:
        site = Site.ask(Path(kernel.python), tools.host)
    except BadInput as error:
        tools.sink(FindingRaised(step=Step.DETECT, finding=no_answer_finding(error)))
        return found
    machine = replace(found.machine, packages=site.versions, python=site.version)
    for finding in () if is_own_environment(kernel.path) else site_findings(site, tools.host, machine):
        tools.sink(FindingRaised(step=Step.DETECT, finding=finding))
    return replace(found, machine=machine)


def find_interpreters(host: Host) -> dict[str, str]:
    """Return the paths of the Pythons of this "kernel" and of its Jupyter "server", "" if unknown.

    "ours" is "yes" if the kernel runs in the environment that start.py made for the assistant itself, else "".
    """
    own, server = host.facts("platform"), host.facts("server")
    return {
        "kernel": str(own.get("executable", "")),
        "server": str(server.get("executable", "")),
        "ours": "yes" if is_own_environment(str(own.get("prefix", ""))) else "",
    }


def is_kernel_ours(state: State) -> bool:
    """Return whether this kernel runs in the assistant's own environment, where nothing else may be installed."""
    return state.detected is not None and bool(state.detected.pythons.get("ours"))


def prepare_plan(state: State, tools: Tools) -> Prepared:
    """Resolve the chosen plan, or the nearest possible one, and report packages that would not go together afterwards.

    The latter are sought only if the target is an environment already.
    """
    plan = required(state.plan)
    case = PlanInputs(required(state.detection).machine, load_catalog(), state.choices.request)
    plans = state.planning.plans if state.planning else ()
    ready = prepare_nearest(plan, plans[state.choices.plan + 1 :], case, state.choices.target, tools, gpu_name(state))
    if ready.site is None:
        return ready
    after = {**ready.site.versions, **ready.resolution.versions}
    gpu = plan.backend is not Backend.CPU
    mixed = package_findings(after, ready.site.version, required(state.detection).machine, gpu_plan=gpu)
    for finding in mixed:
        tools.sink(FindingRaised(step=Step.INSTALL, finding=finding))
    return replace(ready, findings=(*mixed, *ready.findings))


def install_prepared(state: State, tools: Tools) -> Installed:
    """Install what was prepared."""
    return _install(required(state.preview), state, tools, keep=state.choices.keep)


def _install(prepared: Prepared, state: State, tools: Tools, *, keep: bool) -> Installed:
    """Install what was prepared, verify it before it is committed, and send the findings in the environment.

    With `keep` an installation whose checks fail stays without a question. The proof in the result is None for what
    is of no setup (`built.lock` is missing). Only an environment that was there before is searched for findings.
    """
    with prepared.install(tools) as built:
        proof = _verify(prepared, built.now, built.lock, tools, keep=keep) if built.lock else None
    there = () if prepared.site is None else _findings_in(built.environment, state, tools)
    for finding in (*there, *prepared.by_project):
        tools.sink(FindingRaised(step=Step.VERIFY, finding=finding))
    keeps = EnvironmentFolder(Path(built.environment.path)).guards
    return Installed(environment=built.environment, proof=proof, keeps=keeps)


def _verify(prepared: Prepared, made: Environment, lock: Lock, tools: Tools, *, keep: bool) -> Report:
    """Verify what is being installed, and return the report; if it fails, raise `WorkFailed` unless it is to be kept.

    It is kept with `keep`, or if the user, who is asked, says yes. The report's paths are of the final folder, not of
    the one in which it was built.
    """
    in_place = made.path == prepared.target
    report = verify.run(made, prepared.plan, sink=tools.sink, cancel=tools.cancel, traceless=in_place, lock=lock)

    def placed(text: str) -> str:  # as it will be once the folder is renamed
        return text.replace(made.path, prepared.target)

    checks = tuple(replace(check, detail=map_texts(check.detail, placed)) for check in report.checks)
    report = replace(report, checks=checks, facts={key: placed(text) for key, text in report.facts.items()})
    for check in report.wrong:
        line = Message("{check}: {detail}").format(check=check_title(check.key), detail=check.detail)
        tools.sink(LogLine(step=Step.INSTALL, text=line))
    names = tuple(Message("“{check}”").format(check=check_title(check.key)) for check in report.wrong)
    question = _("The verification on {device} failed ({checks}). Keep the installation all the same?")
    if not (report.usable or keep or tools.ask(question.format(device=report.device, checks=names))):
        raise _verification_failure(report, names)
    return report


def _verification_failure(report: Report, names: tuple[Message, ...]) -> WorkFailed:
    """Return the error for a failed verification; if only packages beside torch failed, it says which, why, what helps.

    `names` are the titles of the failed checks.
    """
    if len(report.unusable) < len(report.wrong):
        return WorkFailed(
            _(
                "The verification on {device} failed, so the installation was rolled back: {checks}.",
                device=report.device,
                checks=names,
            ),
            hint=_("Choose another plan, or keep the installation anyway.", option="--keep"),
        )
    remedies = dict.fromkeys(
        text for check in report.wrong for text in verify.missing_system_parts(check, report.device)
    )
    another = _("Ask for another version or build, leave it out, or keep the installation anyway.", option="--keep")
    return WorkFailed(
        _(
            "{packages} cannot be used, so the installation was rolled back: {reasons}",
            packages=", ".join(dict.fromkeys(report.unusable)),
            reasons=sentences(map(first_line, dict.fromkeys(check.detail for check in report.wrong[:3]))),
        ),
        hint=sentences((*remedies, another)),
    )


# Between requirements: spaces and commas, unless what stands before or after them goes on with the same requirement.
_BETWEEN = re.compile(r"(?<![\s,<>=!~;@\[])[\s,]+(?![\s,]*[<>=!~;@\[])(?![^\[\]]{0,200}\])")
_INSTALLER = re.compile(r"^\s*[!%]*(?:pip3?|python3?|py|uv)\s(?:.*\s)?install\s+")


def split_requirements(text: str) -> tuple[str, ...]:
    """Return the requirements in what a person types, split at spaces and commas, without a leading `pip install`.

    "%pip install seaborn, pandas >= 2, <3" is "seaborn" and "pandas>=2,<3". What is no requirement stays as it is.
    """
    words = _BETWEEN.split(_INSTALLER.sub("", text).strip(" ,"))
    return tuple(re.sub(r"\s+", "", word) for word in words if word)


def add_packages(state: State, tools: Tools) -> Adding:
    """Install the packages of `State.adding` if their change was worked out and not made yet; else work it out anew.

    Raises `BadInput` for what is no requirement, and `WorkFailed` if a package does not go with the pinned ones.
    """
    wish = required(state.adding)
    if wish.prepared is None or wish.installed:
        prepared = _prepare_addition(wish.requirements, state, tools)
        return Adding(requirements=wish.requirements, prepared=prepared)
    return replace(wish, installed=_install(wish.prepared, state, tools, keep=False))


def _prepare_addition(requirements: tuple[str, ...], state: State, tools: Tools) -> Prepared:
    """Resolve packages to add with the plan's, builds for the accelerator pinned; return it with a plan that has both.

    Raises `BadInput` for what is no requirement, and `WorkFailed` if they do not go with what is pinned.
    """
    asked = {name_of(check_requirement(line)) for line in requirements}
    made, plan = required(state.environment), required(state.plan)
    site = Site.ask(Path(made.python), tools.host)
    _refuse_replacing(requirements, site, plan)
    own = {line: name_of(line) for line in plan.requirements}
    held = site.pinned
    others = tuple(line for line, name in own.items() if name not in {*asked, *held})
    whole = replace(
        plan, requirements=(*(f"{name}=={version}" for name, version in held.items()), *others, *requirements)
    )
    try:
        prepared = prepare(whole, made.path, tools, gpu_name(state))
    except Unsolved as error:
        if error.unreachable or error.only_source:
            raise
        raise not_added_error(requirements, error) from error
    recorded = replace(
        plan,
        requirements=(*(line for line, name in own.items() if name not in asked), *requirements),
        asked=(*plan.asked, *sorted(asked.difference(plan.asked))),
    )
    changes = prepared.resolution.changes(site.versions)
    return replace(prepared, plan=recorded, ready=prepared.ready or (None if changes else made))


def _refuse_replacing(requirements: tuple[str, ...], site: Site, plan: Plan) -> None:
    """Raise `WorkFailed` for a requirement that the pinned version of its package does not meet."""
    for need in map(Requirement, requirements):
        name = canonicalize_name(need.name)
        version = site.pinned.get(name)
        if version and not need.specifier.contains(version, prereleases=True):
            raise WorkFailed(
                _(
                    "{need} cannot be added: this environment keeps {name} {version}, which was chosen for {backend}.",
                    need=need,
                    name=name,
                    version=version,
                    backend=plan.backend.title,
                ),
                hint=_("Set up a new environment for it."),
            )


def verify_environment(state: State, tools: Tools) -> Verified:
    """Verify the setup's environment on the chosen device and level, and report what is wrong with it now."""
    made, how = required(state.environment), state.choices
    report = verify.run(made, state.plan, device=how.device, level=how.level, sink=tools.sink, cancel=tools.cancel)
    new = state.preview is not None and state.preview.site is None  # that what it holds goes together was seen to
    found = () if new else _findings_in(made, state, tools)
    if state.plan:
        found += EnvironmentFolder(Path(made.path)).project_undo_findings(state.plan, made.packages)
    for finding in found:
        tools.sink(FindingRaised(step=Step.VERIFY, finding=finding))
    return Verified(report=report)


def _findings_in(made: Environment, state: State, tools: Tools) -> tuple[Finding, ...]:
    """Return what is wrong with what an environment holds now; () if the machine is not known."""
    if state.detection is None:
        return ()
    gpu = state.plan is None or state.plan.backend is not Backend.CPU
    return environment_findings(Site.ask(Path(made.python), tools.host), state.detection.machine, gpu_plan=gpu)


def draw_picture(made: Environment, plan: Plan) -> Drawn:
    """Have an environment draw a picture on its plan's device, and return that."""
    return Drawn(path=made.path, picture=verify.draw_picture(made, plan))


def write_export(state: State, tools: Tools) -> Exported:
    """Write the exported files, and return their paths; ask before files of others are replaced.

    They go to the chosen folder, else to "assistant-export" in the environment. There is no lock if what was installed
    has other versions now. Raises `WorkFailed` if the user says no, and what `export` raises.
    """
    made, report = required(state.environment), required(state.report)
    chosen, detection = state.choices.folder, required(state.detection)
    folder = Path(chosen).expanduser().absolute() if chosen else Path(made.path) / "assistant-export"
    tools.sink(Progress(step=Step.EXPORT, text=_("Writing the files")))
    try:
        there = Site.ask(Path(made.python), tools.host).versions
    except BadInput:
        there = made.packages
    # Pip is a tool of the environment, and no part of what is rebuilt elsewhere.
    environment = replace(made, packages={name: version for name, version in there.items() if name != "pip"})
    lock = state.preview.resolution if state.preview else Resolution(lock="", packages=())
    locked = [package for package in lock.packages if package.name != "pip"]
    if any(environment.packages.get(package.name) != package.version for package in locked):
        lock, locked = Resolution(lock="", packages=()), []
    question = _("{folder} holds files that the assistant did not write: {names}. Replace them?")
    setup = Setup(
        machine=detection.machine,
        findings=detection.findings,
        plan=required(state.plan),
        environment=environment,
        report=report,
        lock=lock.lock,
        hashes={package.name: package.sha256 for package in locked if package.sha256},
    )
    written = export(
        setup,
        folder,
        state.choices.formats,
        purpose=state.choices.purpose,
        known=private_names_here(),
        overwrite=lambda paths: (
            state.choices.overwrite
            or tools.ask(question.format(folder=folder, names=", ".join(path.name for path in paths)))
        ),
    )
    return Exported(files=tuple(str(path) for path in written))
