"""Makes a contribution: records the machine and verifies an environment on it, now and really."""

from __future__ import annotations

from datetime import UTC, datetime

from assistant import __version__
from assistant.host.base import Host
from assistant.host.identity import mark_of
from assistant.i18n import _
from assistant.install import Tools
from assistant.model.checks import Level
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.machine import Machine
from assistant.model.plan import Plan
from assistant.model.record import replace, to_json
from assistant.model.report import Report, verdict
from assistant.session.contribution import FACTS, Contribution, cleaned, packages_of, plan_of
from assistant.session.environments import looked_into
from assistant.session.recordings import public_recording
from assistant.verify import verify


def contribution(target: str, host: Host, tools: Tools, level: Level) -> Contribution:
    """Record the machine, verify an environment on it now, and return both without anything private.

    Raises `BadInput` for what holds no torch, or one whose device cannot be told, `NothingFits` for a build that the
    assistant would not choose here, and `WorkFailed` where torch does not compute right.
    """
    recording, machine = public_recording(host)
    known, site = looked_into(target, tools.host, machine)
    if site is None or not known.torch:
        what = _("There is no environment with PyTorch in {path}.", path=known.path)
        raise BadInput(what, hint=_("`assistant setup` makes one."))
    backend = known.backend
    if backend is None:
        what = _("It cannot be told which device the PyTorch in {path} was built for.", path=known.path)
        raise BadInput(what, hint=_("`assistant setup` makes one that can be contributed."))
    env = plan_of(machine, backend, known.torch, site.minor).env
    report = verify(site.python, backend.value, tools.sink, tools.cancel, level=level, environment=env, traceless=True)
    if not report.usable:
        raise WorkFailed(verdict(report), hint=_("Only what works is contributed; `assistant doctor` may help."))
    plan = plan_of(machine, backend, report.facts["torch"], site.minor)
    whole = Contribution(
        schema=1,
        when=datetime.now(UTC).replace(microsecond=0),
        assistant=__version__,
        mark=mark_of(_tried(machine, plan)),
        recording=recording,
        plan=plan,
        packages={name: version for name, version in site.versions.items() if name in packages_of(plan)},
        report=_figures(report),
    )
    return cleaned(whole)


def _figures(report: Report) -> Report:
    """Return a report's figures and what torch says of itself and its device: no words of others, and no paths."""
    facts = {name: report.facts[name] for name in sorted(FACTS & {*report.facts})}
    return replace(report, checks=tuple(replace(one, detail="") for one in report.checks), facts=facts)


def _tried(machine: Machine, plan: Plan) -> str:
    """Name the build and the machine, so that another GPU in it makes it another machine."""
    return to_json([plan.backend, plan.variant, plan.torch, machine.os, machine.wsl, machine.gpus])
