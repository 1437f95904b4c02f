"""The two halves of the install step: `prepare` says what an installation would do, `run` does it."""

from __future__ import annotations

from pathlib import Path

from assistant.i18n import _
from assistant.install.conflicts import conflicts, undone_by_project
from assistant.install.index_findings import index_findings
from assistant.install.inspect_env import Site, still
from assistant.install.installation import Verify, install, writes
from assistant.install.packages import Resolution
from assistant.install.place import place_findings
from assistant.install.recovery import make_whole
from assistant.install.resolution import resolve
from assistant.install.target import check_target, read_marker, target_for
from assistant.install.tools import Tools
from assistant.install.wheels import to_download
from assistant.model.finding import Finding
from assistant.model.plan import Plan
from assistant.model.record import Record
from assistant.model.report import Environment


class Prepared(Record, frozen=True):
    """What an installation would do: where, by which commands, how much; `ready` when it is there already.

    `site` is the environment that stands there, as it was when this was worked out. `writes` are the files and folders
    that it writes, `download` the bytes that it fetches, as far as known, `findings` what the user should know first,
    `card` the GPU that the launcher names.
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
    card: str = ""


def prepare(plan: Plan, where: str, tools: Tools, card: str = "") -> Prepared:
    """Resolve every package of a plan for a target ("" or "new", "kernel", or a path), and change nothing.

    `card` is the GPU that the plan uses, as the launcher is to name it. Only what a killed installation left there is
    rolled back first, as it would be taken for an environment that stands. What the user should know before is reported
    as findings. Raises `BadInput` or `WorkFailed` for a target that cannot be used, packages that cannot be had, and
    where the user does not agree to what must be asked.
    """
    target, site = target_for(plan, where, tools.host)
    check_target(target, site)
    installer = tools.installer(plan, site)
    installer.progress(_("Resolving the packages"))
    keep = {**(site.versions if site else {}), **tools.sources.keep}
    resolution = resolve(plan, installer, keep, tools.sources.locked)
    if ready := reusable(target, site, resolution):
        return Prepared(plan=plan, target=str(target), resolution=resolution, ready=ready)
    findings = (
        *index_findings(plan, resolution, tools.sources),
        *(conflicts(site, resolution.versions) if site else ()),
        *undone_by_project(target, plan, resolution.versions),
        *place_findings(target),
    )
    for finding in findings:
        installer.report(finding)
    packages = resolution.changes(site.versions if site else {})
    return Prepared(
        plan=plan,
        target=str(target),
        resolution=resolution,
        commands=installer.commands(target, Path(site.python) if site else None),
        writes=writes(plan, target, site, packages),
        download=sum(package.size or 0 for package in to_download(packages)),
        findings=findings,
        site=site,
        card=card,
    )


def reusable(target: Path, site: Site | None, resolution: Resolution) -> Environment | None:
    """Return an environment of ours that was made with what the resolution names and still holds it, else None."""
    marker = read_marker(target) if site and not resolution.changes(site.versions) else None
    return marker.environment if marker and marker.environment.packages == resolution.versions else None


def run(prepared: Prepared, prove: Verify, tools: Tools) -> Environment:
    """Install what was prepared; `prove` may refuse the result by raising. What is there already is returned as it is.

    Raises as `installation.install` does, with everything as it was.
    """
    make_whole(Path(prepared.target))
    if prepared.ready:
        return prepared.ready
    site = still(prepared.site, tools.host) if prepared.site else None
    plan, installer = prepared.plan, tools.installer(prepared.plan, site)
    return install(plan, prepared.resolution, Path(prepared.target), site, tools.host, installer, prove, prepared.card)
