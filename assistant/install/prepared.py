"""What an installation would do, to be agreed to, and its carrying out: the two halves of the install step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from assistant.host.base import Host
from assistant.host.process import CancelToken
from assistant.i18n import Message, _
from assistant.install.conflicts import conflicts
from assistant.install.consent import resolved, told_of_indexes
from assistant.install.installer import Installer
from assistant.install.make import Verify, aimed_at, check_site, delta, install, reusable, writes
from assistant.install.packages import Resolution
from assistant.install.project import kept_by, undone
from assistant.install.site import Site, still
from assistant.install.sources import Sources
from assistant.install.target import check_target
from assistant.install.wheels import missing
from assistant.install.work import rooms
from assistant.model.event import FindingRaised, Progress, Sink, Step
from assistant.model.finding import Finding
from assistant.model.plan import Plan
from assistant.model.record import Record
from assistant.model.report import Environment


@dataclass(frozen=True)
class Tools:
    """What a step works with: the machine at hand, its package sources, a place to tell events, a request to stop.

    `ask` puts a question to the user and waits for the answer; False where nobody is there to ask.
    """

    host: Host
    sources: Sources
    sink: Sink
    cancel: CancelToken
    ask: Callable[[Message], bool] = lambda _question: False


class Prepared(Record, frozen=True):
    """What an installation would do: where, by which commands, how much; `ready` when it is there already.

    `site` is the environment that stands there, as it was when this was worked out. `writes` are the files and folders
    that it writes, `download` the bytes that it fetches, as far as known, `findings` what is to be known before.
    """

    plan: Plan
    target: str
    resolution: Resolution
    commands: tuple[tuple[str, ...], ...] = ()
    writes: tuple[str, ...] = ()
    download: int = 0
    findings: tuple[Finding, ...] = ()
    ready: Environment | None = None
    site: Site | None = None


def prepare(plan: Plan, aim: str, tools: Tools) -> Prepared:
    """Work out every package of a plan for a target ("" or "new", "kernel", or a path), and change nothing.

    What is to be known before is told as findings. Raises `BadInput` or `WorkFailed` for a target that cannot be used,
    for packages that cannot be had, and where the user does not agree to what must be asked.
    """
    target, site = aimed_at(aim, plan, tools.host)
    check_site(site) if site else check_target(target)
    installer = _installer(plan, tools, site)
    tools.sink(Progress(step=Step.INSTALL, text=_("Working out every package that is needed")))
    keep = {**(site.versions if site else {}), **tools.sources.keep}
    resolution = resolved(plan, installer, tools.sources, tools.ask, keep)
    if ready := reusable(target, site, resolution):
        return Prepared(plan=plan, target=str(target), resolution=resolution, ready=ready)
    keeper = kept_by(target)
    findings = (
        *told_of_indexes(plan, resolution, tools.sources, tools.ask),
        *(conflicts(site, resolution.versions) if site else ()),
        *((undone(keeper, plan, resolution.versions),) if keeper else ()),
    )
    for finding in findings:
        tools.sink(FindingRaised(step=Step.INSTALL, finding=finding))
    return Prepared(
        plan=plan,
        target=str(target),
        resolution=resolution,
        commands=installer.commands(rooms(target, stands=site is not None), Path(site.python) if site else None),
        writes=writes(plan, target, site, resolution),
        download=sum(package.size or 0 for package in missing(delta(site, resolution))),
        findings=findings,
        site=site,
    )


def run(prepared: Prepared, prove: Verify, tools: Tools) -> Environment:
    """Install what was prepared; `prove` may refuse the result by raising. Answers what is there already as it is.

    Raises as `make.install` does, with everything as it was.
    """
    if prepared.ready:
        return prepared.ready
    site = still(prepared.site, tools.host) if prepared.site else None
    installer = _installer(prepared.plan, tools, site)
    return install(prepared.plan, prepared.resolution, Path(prepared.target), site, tools.host, installer, prove)


def _installer(plan: Plan, tools: Tools, site: Site | None) -> Installer:
    """Use the Python of what stands, or the one underneath the assistant when it is the plan's, else a found one."""
    facts, sources = tools.host.facts("platform"), tools.sources
    base, found = str(facts["base_executable"]), plan.python if sources.installer == "uv" else f"python{plan.python}"
    own = base if str(facts.get("python", "")).startswith(f"{plan.python}.") else found
    return Installer(
        python=site.python if site else own,
        pip=base if site and "pip" not in site.versions else "",
        program=sources.installer,
        environment=sources.environment,
        settings=sources.settings,
        uv_indexes=sources.uv_indexes,
        sink=tools.sink,
        cancel=tools.cancel,
    )
