"""Mends an environment by changing its packages: from what is wrong to the change, and from the change to its proof."""

from __future__ import annotations

import re
from pathlib import Path

from packaging.utils import canonicalize_name

from assistant.host.lock import Lock
from assistant.i18n import _, first_line
from assistant.install import (
    Difference,
    Site,
    Tools,
    carry_out,
    forget,
    look_at,
    remove_environment,
    set_aside,
    undo,
    work_out,
)
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.event import Event, FindingRaised, Progress, Step
from assistant.model.finding import Finding
from assistant.model.machine import Machine
from assistant.model.plan import Backend
from assistant.model.record import replace
from assistant.model.report import Environment, Report
from assistant.session.environments import looked_into, machine_here
from assistant.session.judgement import judged_after
from assistant.session.state import State, Surveyed, known
from assistant.session.survey import Repair, Survey
from assistant.session.wanted import mendable, wanted_for
from assistant.verify import verify

_GROUND = re.compile(r"torch(vision|audio)?$|numpy$|onnxruntime")


def compared(state: State, tools: Tools) -> Surveyed:
    """Work out the change that mends the environment that the user chose, and what it leaves; nothing is changed."""
    machine, before = machine_here(state, tools.host), state.survey or Survey()
    environment, site = looked_into(state.picked, tools.host, machine, before.of(state.picked))
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
    repair, machine = known(state.repair), machine_here(state, tools.host)
    before = state.survey or Survey()

    def prove(made: Environment, lock: Lock) -> None:
        _prove(repair, made, machine, lock, tools)

    _made, kept = carry_out(repair.difference, prove, tools)
    after, _site = looked_into(repair.path, tools.host, machine, before.of(repair.path))
    return Surveyed(survey=replace(before.with_known(after), notes=tuple(map(set_aside, kept))))


def undone(state: State, tools: Tools) -> Surveyed:
    """Put back what the environment held before its last change."""
    before = state.survey or Survey()
    tools.sink(Progress(step=Step.INSTALL, text=_("Putting the packages back as they were")))
    kept = undo(Path(state.picked), tools.host, tools.cancel)
    after, _site = looked_into(state.picked, tools.host, machine_here(state, tools.host), before.of(state.picked))
    return Surveyed(survey=replace(before.with_known(after), notes=tuple(map(set_aside, kept))))


def forgotten(state: State, _tools: Tools) -> Surveyed:
    """Delete what is kept for undoing the last change of an environment: the change is for good."""
    before = state.survey or Survey()
    environment = before.of(state.picked)
    forget(Path(state.picked))
    return Surveyed(survey=before.with_known(replace(environment, undo=None)) if environment else before)


def removed(state: State, tools: Tools) -> Surveyed:
    """Remove an environment that the assistant made."""
    tools.sink(Progress(step=Step.INSTALL, text=_("Removing {path}", path=state.picked)))
    remove_environment(state.picked)
    return Surveyed(survey=(state.survey or Survey()).without(state.picked))


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
