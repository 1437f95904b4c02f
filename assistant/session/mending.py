"""Mends an environment by changing its packages: from what is wrong to the change, and from the change to its proof."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assistant.catalog import carried_by_torch_index, load_catalog
from assistant.catalog.needs import sharing
from assistant.catalog.onnxruntimes import runtime_plugins
from assistant.catalog.rows import FAMILY
from assistant.host.lock import Lock
from assistant.i18n import _, first_line
from assistant.install import (
    Difference,
    Site,
    Tools,
    Wanted,
    carry_out,
    forget,
    guards,
    look_at,
    read_marker,
    remove_environment,
    undo,
    version_in_place,
    work_out,
)
from assistant.model.errors import AssistantError, BadInput, WorkFailed
from assistant.model.event import Event, FindingRaised, Progress, Step
from assistant.model.finding import Finding
from assistant.model.machine import Machine
from assistant.model.plan import Backend, Plan, Request
from assistant.model.record import replace
from assistant.model.report import Environment, Report
from assistant.plan import make_plans
from assistant.session.environments import judged_after, looked_into, machine_here
from assistant.session.state import State, Surveyed, required
from assistant.session.survey import Known, Repair, Survey
from assistant.verify import verify


def mendable(environment: Known) -> bool:
    """Return whether anything that is wrong with an environment can be mended by changing its packages."""
    closed = environment.own or environment.others or environment.unread
    return not closed and any(one.key in _WAYS for one in environment.findings)


def wanted_for(site: Site, findings: Iterable[Finding], machine: Machine) -> Wanted:
    """Return the change that would mend what is wrong with an environment, as far as changing packages can."""
    requires: dict[str, str] = {}
    wanted = Wanted()
    order = list(_WAYS)
    for finding in sorted((one for one in findings if one.key in _WAYS), key=lambda one: order.index(one.key)):
        more = _WAYS[finding.key](site, finding, machine)
        for line in more.requires:  # of two ways that name a package the first counts
            requires.setdefault(canonicalize_name(Requirement(line).name), line)
        wanted = Wanted(
            removes=(*wanted.removes, *more.removes),
            again=(*wanted.again, *more.again),
            index_url=wanted.index_url or more.index_url,
        )
    removes = tuple(name for name in dict.fromkeys(wanted.removes) if name not in requires)
    again = tuple(name for name in dict.fromkeys(wanted.again) if name not in removes)
    return replace(wanted, requires=tuple(requires.values()), removes=removes, again=again)


def _one_runtime(site: Site, finding: Finding, machine: Machine) -> Wanted:
    """Keep the flavour of ONNX Runtime that a plan for this machine takes, else the plain one, and install it again.

    What plugs into it in the plan comes along: the provider of the flavour that goes may be a plug-in by now.
    """
    flavours = [canonicalize_name(str(line).partition("==")[0]) for line in finding.evidence]
    plan = _best_plan(site, machine)
    planned = {canonicalize_name(Requirement(line).name) for line in plan.requirements} if plan else set()
    stays = next((name for name in flavours if name in planned), None)
    stays = stays or next((name for name in flavours if name == "onnxruntime"), flavours[0])
    plugins = tuple(sorted(planned & {*runtime_plugins()})) if stays in planned else ()
    return Wanted(removes=tuple(name for name in flavours if name != stays), again=(stays,), requires=plugins)


def _one_version(site: Site, finding: Finding, _machine: Machine) -> Wanted:
    """Install again the version that has most of its files in place; that removes the files of the others."""
    name = str(finding.evidence[0]).partition("==")[0]
    return Wanted(requires=(f"{name}=={version_in_place(site, name)}",), again=(name,))


def _one_index(site: Site, _finding: Finding, _machine: Machine) -> Wanted:
    """Take what belongs to torch from torch's own index."""
    versions = site.versions
    beside = [name for name in FAMILY if name in versions]
    return Wanted(requires=(f"torch=={versions['torch']}", *beside))


def _for_this_gpu(site: Site, _finding: Finding, machine: Machine) -> Wanted:
    """Take the build that a plan for this machine takes; none where the plan needs variables beside the packages."""
    plan = _best_plan(site, machine)
    if plan is None or plan.env:
        return Wanted()
    lines = [line for line in plan.requirements if carried_by_torch_index(canonicalize_name(Requirement(line).name))]
    named = {canonicalize_name(Requirement(line).name) for line in lines}
    beside = [name for name in FAMILY if name in site.versions and name not in named]
    return Wanted(requires=(*lines, *beside), index_url=plan.index_url)


def _no_directml(site: Site, finding: Finding, _machine: Machine) -> Wanted:
    """Remove what cannot load here; ONNX Runtime comes in its plain flavour where none other is there."""
    names = tuple(canonicalize_name(str(line).partition("==")[0]) for line in finding.evidence)
    alone = sharing("onnxruntime-packages-conflict", site.versions) == ("onnxruntime-directml",)
    return Wanted(removes=names, requires=("onnxruntime",) if alone else ())


def _original(site: Site, _finding: Finding, _machine: Machine) -> Wanted:
    """Bring back the versions that the environment's constraints name."""
    prefix, versions = Path(site.prefix), site.versions
    lines = guards(prefix)[0].read_text(encoding="utf-8", errors="replace").splitlines()  # its comments may be edited
    pins = (line.strip() for line in lines if "==" in line and not line.startswith("#"))
    others = tuple(pin for pin in pins if versions.get(pin.partition("==")[0]) != pin.partition("==")[2])
    marker = read_marker(prefix)
    return Wanted(requires=others, index_url=marker.plan.index_url if marker else None)


def _what_is_required(_site: Site, _finding: Finding, _machine: Machine) -> Wanted:
    """Ask for nothing: what is required and does not fit is mended by every change (see `work_out`)."""
    return Wanted()


Way = Callable[[Site, Finding, Machine], Wanted]
_WAYS: dict[str, Way] = {  # in order: where two name the same package, the first counts
    "wrong-backend-build-for-gpu": _for_this_gpu,
    "torch-cpu-build-installed": _for_this_gpu,
    "build-replaced": _original,
    "package-installed-twice": _one_version,
    "directml-on-native-linux": _no_directml,
    "onnxruntime-packages-conflict": _one_runtime,
    "torch-torchvision-mismatch": _one_index,
    "numpy2-abi": lambda _site, _finding, _machine: Wanted(requires=("numpy<2",)),
    "requirement-broken": _what_is_required,
    "torch-pinned": _what_is_required,
}


def _best_plan(site: Site, machine: Machine) -> Plan | None:
    """Return what would be installed into a new environment of the same Python."""
    try:
        return make_plans(machine, load_catalog(), Request(python=site.minor)).choice
    except AssistantError:
        return None


_GROUND = re.compile(r"torch(vision|audio)?$|numpy$|onnxruntime")


def compared(state: State, tools: Tools) -> Surveyed:
    """Work out the change that mends the environment that the user chose, and what it leaves; nothing is changed."""
    machine, before = machine_here(state, tools.host), state.environments.survey or Survey()
    picked = state.environments.picked
    environment, site = looked_into(picked, tools.host, machine, before.of(picked))
    now = before.with_known(environment)
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
    difference = work_out(site, wanted_for(site, environment.findings, machine), tools)
    if not difference.moves:
        raise BadInput(
            _("No change of packages that would mend {path} was found.", path=environment.path),
            hint=_("Set up a new environment instead."),
        )
    remains = judged_after(difference, tools.host, machine)
    kept = {_identity(one) for one in remains}
    mends = tuple(one for one in environment.findings if _identity(one) not in kept)
    return Surveyed(
        survey=now, repair=Repair(path=environment.path, difference=difference, mends=mends, remains=remains)
    )


def repaired(state: State, tools: Tools) -> Surveyed:
    """Carry out the change that was shown; it counts only once all packages import and what it mends is gone."""
    repair, machine = required(state.environments.repair), machine_here(state, tools.host)
    before = state.environments.survey or Survey()

    def prove(made: Environment, lock: Lock) -> None:
        _prove(repair, made, machine, lock, tools)

    carry_out(repair.difference, prove, tools)
    after, _site = looked_into(repair.path, tools.host, machine, before.of(repair.path))
    return Surveyed(survey=before.with_known(after))


def undone(state: State, tools: Tools) -> Surveyed:
    """Put back what the environment held before its last change."""
    before = state.environments.survey or Survey()
    tools.sink(Progress(step=Step.INSTALL, text=_("Putting the packages back as they were")))
    picked = state.environments.picked
    undo(Path(picked), tools)
    after, _site = looked_into(picked, tools.host, machine_here(state, tools.host), before.of(picked))
    return Surveyed(survey=before.with_known(after))


def forgotten(state: State, _tools: Tools) -> Surveyed:
    """Delete what is kept for undoing the last change of an environment: the change is for good."""
    before = state.environments.survey or Survey()
    environment = before.of(state.environments.picked)
    forget(Path(state.environments.picked))
    return Surveyed(survey=before.with_known(replace(environment, undo=None)) if environment else before)


def removed(state: State, tools: Tools) -> Surveyed:
    """Remove an environment that the assistant made."""
    tools.sink(Progress(step=Step.INSTALL, text=_("Removing {path}", path=state.environments.picked)))
    remove_environment(state.environments.picked)
    return Surveyed(survey=(state.environments.survey or Survey()).without(state.environments.picked))


def _identity(finding: Finding) -> tuple[str, str]:
    return finding.key, str(finding.text)


def _prove(repair: Repair, made: Environment, machine: Machine, lock: Lock, tools: Tools) -> None:
    """Raise `WorkFailed` unless the environment holds what it should, imports it, and what was to be mended is gone."""
    site = look_at(Path(made.python), tools.host)
    differs = [name for name in {*site.versions, *made.packages} if site.versions.get(name) != made.packages.get(name)]
    if differs:
        raise _refused(_("{names} would not have the versions that were shown", names=", ".join(sorted(differs))))
    left = {_identity(one) for one in judged_after(repair.difference, tools.host, machine, site)}
    if stays := [one for one in repair.mends if _identity(one) in left]:
        raise _refused(stays[0].text)
    for check in _imported(repair.difference, site, lock, tools).wrong:
        raise _refused(first_line(check.detail))


def _imported(difference: Difference, site: Site, lock: Lock, tools: Tools) -> Report:
    """Import the packages that moved, and of those that require one of them what everything else rests on."""
    moved = {move.name for move in difference.moves}
    needing = {canonicalize_name(one.name) for one in site.own if moved.intersection(map(_name_of, one.requires))}
    names = [name for name in site.versions if name in moved or (name in needing and _GROUND.match(name))]

    def told(event: Event) -> None:
        if not isinstance(event, FindingRaised):  # a change that is refused leaves nothing to be told of
            tools.sink(event)

    return verify(
        site.python,
        Backend.CPU.value,
        told,
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
