"""The install step: `prepare` says what an installation would do, `run` does it in one transaction."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from assistant.host.base import Host
from assistant.host.lock import Lock
from assistant.i18n import _
from assistant.install.conflicts import conflicts, undone_by_project
from assistant.install.constraints import guards, protect
from assistant.install.inspect_env import Site, installed_files, interpreter, still
from assistant.install.installer import Installer
from assistant.install.kernel import display_name, kernel_file, kernel_name, note_kernel, register_kernel
from assistant.install.resolution import Package, Resolution, resolve
from assistant.install.sources import Tools, index_findings
from assistant.install.swap import Change, change_for, check_movable, set_aside
from assistant.install.target import (
    OWN_FILES,
    check_disk,
    check_target,
    is_ours,
    place_findings,
    read_marker,
    target_for,
    write_marker,
)
from assistant.install.transaction import Transaction, make_whole, transaction
from assistant.install.wheels import places, to_download, unpack
from assistant.model.finding import Finding
from assistant.model.plan import Plan
from assistant.model.record import Record
from assistant.model.report import Environment

Verify = Callable[[Environment, Lock], None]  # processes that it starts hold the lock too


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


def install(  # noqa: PLR0913, PLR0917 - what, where, with what, and what the launcher shows
    plan: Plan,
    resolution: Resolution,
    target: Path,
    site: Site | None,
    host: Host,
    installer: Installer,
    verify: Verify,
    card: str = "",
) -> Environment:
    """Install a resolution into a new environment, or into the one that stands there (`site`), and register its kernel.

    Everything is downloaded before anything changes. A new environment is built and verified aside, then put in place
    by one rename; where one stands, all is unpacked beside it, old files step aside and new ones step in, by renames
    alone. `verify` may refuse the result by raising. Raises `BadInput` or `WorkFailed` before anything is touched when
    the target cannot be used, and `WorkFailed` or `Cancelled` with everything as it was, file for file, when the work
    stops midway.
    """
    packages = resolution.changes(site.versions if site else {})
    check_target(target, site)
    check_disk(host, target, sum(package.size or 0 for package in packages))
    python = Path(site.python) if site else interpreter(target)
    name = kernel_name(plan, python)
    made = Environment(
        path=str(target),
        python=str(python),
        kernel=name,
        packages=resolution.versions,
        display_name=display_name(plan, python, target.name, card),
    )
    with transaction(target, stands=site is not None) as work:
        folder = unpack(packages, site, installer, work, plan, host)
        protect(target, made.packages, folder)
        if not site or is_ours(target):
            write_marker(folder, plan, made)
        installer.cancel.check()
        if site:
            _swap(site, packages, work)
        work.settle_ahead()
        build = work.layout.build
        built = Environment(path=str(build), python=str(interpreter(build)), kernel=name, packages=made.packages)
        verify(made if site else built, work.lock)
        installer.registers()
        work.settle(installer.cancel.check)
        if not site and work.layout.top is None:
            work.change(Change(comes=tuple(sorted(path.name for path in build.iterdir()))))
        work.commit(note_kernel(name, python), lambda: register_kernel(plan, made))
    for path in work.kept:
        installer.report(set_aside(path))
    return made


def writes(plan: Plan, target: Path, site: Site | None, packages: list[Package]) -> tuple[str, ...]:
    """List the files, and the folders ("/" at the end), that an installation writes."""
    python = Path(site.python) if site else interpreter(target)
    inside = [f"{site.purelib}{os.sep}", *map(str, guards(target))] if site else [f"{target}{os.sep}"]
    downloads = places(to_download(packages)).values()
    return (*map(str, downloads), *inside, str(kernel_file(kernel_name(plan, python))))


def _swap(site: Site, packages: Sequence[Package], work: Transaction) -> None:
    """Replace what the environment holds by what was unpacked."""
    old = installed_files(site, [package.name for package in packages])
    change = change_for(work.target, work.layout.staged, old, OWN_FILES)
    check_movable(work.target, (*change.goes, *change.comes))
    work.change(change)
