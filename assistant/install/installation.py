"""The install step: `prepare` says what an installation would do, `Prepared.install` does it or leaves all as it was.

A new environment, or one that the assistant made, is built aside, verified there and put in place by a rename. An
environment of somebody else's is changed where it is: see `in_place`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from assistant.host.base import Host
from assistant.host.files import discard_folder, write_temporary
from assistant.host.lock import Lock
from assistant.i18n import _, ngettext
from assistant.install.conflicts import find_conflicts, undone_by_project
from assistant.install.constraints import guard_files, write_guards
from assistant.install.contents import PIP, find_pip, incomplete_files, install_whole, link_own_files
from assistant.install.downloads import files_on_disk, list_missing, wheel_path
from assistant.install.environments import Building, building, new_folder
from assistant.install.in_place import in_place_notice, install_in_place, is_replaceable
from assistant.install.kernel import choose_kernel_name, choose_launcher_name, kernel_file, note_kernel, register_kernel
from assistant.install.recovery import settle_target
from assistant.install.resolution import Package, Resolution, Unsolved, resolve, write_lock
from assistant.install.site import Site, interpreter, read_marker, write_marker
from assistant.install.sources import Tools, index_findings
from assistant.install.target import (
    check_disk,
    check_lengths,
    check_target,
    find_plan_target,
    named_target,
    onedrive_findings,
    target_or_default,
)
from assistant.install.uv import LOCK, Uv
from assistant.model.event import Part
from assistant.model.finding import Finding, Severity
from assistant.model.plan import Plan
from assistant.model.record import Record, replace
from assistant.model.report import Environment

Verify = Callable[[Environment, Lock], None]  # processes that it starts hold the lock too


class Prepared(Record, frozen=True):
    """What an installation would do: where, with which commands, how much; `ready` is an environment that fits already.

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

    def install(self, prove: Verify, tools: Tools) -> Environment:
        """Install what was prepared and return the environment; one that is ready already is returned as it is.

        `prove` may refuse the result by raising. Raises as `install` does, with everything as it was.
        """
        settle_target(Path(self.target), tools)
        if self.ready:
            return self.ready
        site = self.site.ask_again(tools.host) if self.site else None
        uv = tools.uv(self.plan, site)
        return install(self.plan, self.resolution, Path(self.target), site, tools.host, uv, prove, self.card)


def prepare(plan: Plan, where: str, tools: Tools, card: str = "") -> Prepared:
    """Return what installing a plan would do to a target ("" or "new", "kernel", or a path), and change nothing.

    `card` is the GPU that the plan uses, as the launcher is to name it. Only what a killed installation left there is
    rolled back first, as it would be taken for an environment that stands. What the user should know before is reported
    as findings. Raises `BadInput` or `WorkFailed` for a target that cannot be used, packages that cannot be had, and
    if the user does not agree to what must be asked.
    """
    settle_target(named_target(target_or_default(plan, where), tools.host), tools)
    target, site = find_plan_target(plan, where, tools.host)
    check_target(target, site)
    uv = tools.uv(plan, site)
    uv.progress(_("Resolving the packages"))
    changing = None if site is None or is_replaceable(site, tools.host) else site
    resolution, left_out = _resolve_with_added(plan, site, uv, tools, replaces=changing is None)
    if ready := find_reusable(target, site, resolution):
        return Prepared(plan=plan, target=str(target), resolution=resolution, ready=ready)
    findings = (
        *index_findings(plan, tools.sources),
        *left_out,
        *((in_place_notice(target), *find_conflicts(changing, resolution.versions)) if changing else ()),
        *undone_by_project(target, plan, resolution.versions),
        *onedrive_findings(target),
    )
    for finding in findings:
        uv.report(finding)
    packages = resolution.changes(changing.versions) if changing else list(resolution.packages)
    return Prepared(
        plan=plan,
        target=str(target),
        resolution=resolution,
        commands=list_commands(uv, target, changing),
        writes=list_writes(plan, target, site, packages),
        download=bytes_to_download(packages),
        findings=findings,
        site=site,
        card=card,
    )


def _resolve_with_added(
    plan: Plan, site: Site | None, uv: Uv, tools: Tools, *, replaces: bool
) -> tuple[Resolution, tuple[Finding, ...]]:
    """Return a plan resolved with what the user added to the replaced environment; a finding tells what is left out."""
    keep = {**(site.versions if site else {}), **tools.sources.keep}
    added = _user_added(site) if site and replaces else ()
    if added:
        whole = replace(plan, requirements=(*plan.requirements, *added))
        with suppress(Unsolved):
            return resolve(whole, uv, keep, tools.sources.locked), ()
    resolution = resolve(plan, uv, keep, tools.sources.locked)
    left_out = [name for name in added if name not in resolution.versions]
    return resolution, (_left_out_finding(left_out),) if left_out else ()


def _user_added(site: Site) -> tuple[str, ...]:
    """Return the names of the packages that the user added to an environment of ours, sorted."""
    marker = read_marker(Path(site.prefix))
    original = marker.environment.packages if marker else {}
    return tuple(sorted(set(site.versions) - set(original) - {PIP}))


def _left_out_finding(names: Sequence[str]) -> Finding:
    """Return a warning that packages which the user added do not go with a plan."""
    text = ngettext(
        "{names} does not go with this plan and is left out; the environment as it was stays beside the new one.",
        "{names} do not go with this plan and are left out; the environment as it was stays beside the new one.",
        len(names),
        names=", ".join(names),
    )
    return Finding(key="added-left-out", severity=Severity.WARNING, text=text)


def find_reusable(target: Path, site: Site | None, resolution: Resolution) -> Environment | None:
    """Return the environment at a target if the assistant made it and it holds what a resolution lists; else None."""
    marker = read_marker(target) if site and not resolution.changes(site.versions) else None
    return marker.environment if marker and marker.environment.packages.items() <= resolution.versions.items() else None


def list_commands(uv: Uv, target: Path, changing: Site | None) -> tuple[tuple[str, ...], ...]:
    """Return the commands that an installation runs; `changing` is an environment that is changed in place, or None."""
    folder = new_folder(target)
    if changing:
        return (tuple(uv.install_command(Path(changing.python), Path(LOCK))),)
    rename = "move" if os.name == "nt" else "mv"  # cmd knows `move`, PowerShell both; one rename on any system
    steps = [
        uv.venv_command(folder),
        uv.sync_command(interpreter(folder), Path(LOCK)),
        [rename, str(folder), str(target)],
    ]
    return tuple(tuple(step) for step in steps)


def list_writes(plan: Plan, target: Path, site: Site | None, packages: list[Package]) -> tuple[str, ...]:
    """Return the paths of the files, and of the folders ("/" at the end), that an installation writes."""
    python = Path(site.python) if site else interpreter(target)
    inside = [f"{site.purelib}{os.sep}", *map(str, guard_files(target))] if site else [f"{target}{os.sep}"]
    downloads = [str(wheel_path(package)) for package in list_missing(packages)]
    return (*downloads, *inside, str(kernel_file(choose_kernel_name(plan, python))))


def bytes_to_download(packages: Sequence[Package]) -> int:
    """Return how many bytes of packages are not on this disk yet, as far as sizes are known."""
    on_disk = files_on_disk(packages)
    return sum(package.size or 0 for package in packages if package.name not in on_disk)


def install(  # noqa: PLR0913, PLR0917 - what, where, with what, and what the launcher shows
    plan: Plan,
    resolution: Resolution,
    target: Path,
    site: Site | None,
    host: Host,
    uv: Uv,
    verify: Verify,
    card: str = "",
) -> Environment:
    """Install a resolution into a new environment, or into `site` at the target, and register its kernel; return it.

    `verify` may refuse the result by raising. Raises `BadInput` or `WorkFailed` before anything is touched when the
    target cannot be used, and `WorkFailed` or `Cancelled` with everything as it was when the work stops midway.
    """
    check_target(target, site)
    changes = resolution.changes(site.versions if site else {})  # the rest is shared by hard links
    check_disk(host, target, sum(package.size or 0 for package in changes))
    python = Path(site.python) if site else interpreter(target)
    environment = Environment(
        path=str(target),
        python=str(python),
        kernel=choose_kernel_name(plan, python),
        packages=resolution.versions,
        display_name=choose_launcher_name(plan, python, target.name, card),
    )
    if site and not is_replaceable(site, host):
        return install_in_place(plan, environment, site, resolution, host, uv, verify)
    with building(target) as work:
        build_environment(plan, resolution.packages, site, host, uv, work)
        write_guards(target, environment.packages, work.folder)
        write_marker(work.folder, plan, environment)
        verify_and_place(plan, environment, uv, verify, work)
    return environment


def build_environment(
    plan: Plan, packages: Sequence[Package], site: Site | None, host: Host, uv: Uv, work: Building
) -> None:
    """Install packages into the folder of a building, and link there what `site`, which it replaces, holds besides."""
    uv = uv.in_folder(work.scratch, work.lock)
    uv.make(work.folder)
    if not site and all(package.name != PIP for package in packages):  # some packages require pip, as fastai does
        packages = [*packages, *filter(None, [find_pip(interpreter(work.folder), plan, uv)])]
    fill_environment(work, packages, uv, plan.index_url)
    if site:
        link_own_files(site, work.folder)
    discard_folder(work.scratch)
    check_lengths(host, work.folder, work.target)


def fill_environment(work: Building, packages: Sequence[Package], uv: Uv, index_url: str | None) -> None:
    """Install exact packages into an empty environment, from the cache alone if that has all of them whole."""
    lock, python = work.scratch / LOCK, interpreter(work.folder)
    write_temporary(lock, write_lock(packages, files_on_disk(packages)))
    if uv.is_synced_from_cache(python, lock) and not incomplete_files(work.folder):
        return

    def make_anew() -> None:
        """Empty the folder, and make an empty environment in it."""
        work.restart()
        uv.make(work.folder)

    install_whole(
        packages,
        uv,
        index_url,
        work.scratch,
        install=lambda uv, lock: uv.fill(python, lock, len(packages)),
        find_incomplete=lambda: incomplete_files(work.folder),
        clear=make_anew,
    )


def verify_and_place(plan: Plan, environment: Environment, uv: Uv, verify: Verify, work: Building) -> None:
    """Verify an environment in the folder where it was built, rename it to its target, and register its kernel.

    Raises as `verify` and `Building.put_in_place` do.
    """
    uv.cancel.check()
    work.start_syncing()
    folder, python = work.folder, interpreter(work.folder)
    verify(
        Environment(path=str(folder), python=str(python), kernel=environment.kernel, packages=environment.packages),
        work.lock,
    )
    uv.progress(_("Adding the kernel to Jupyter"), part=Part.REGISTER)
    kernel = note_kernel(environment.kernel, Path(environment.python)) if environment.kernel else None
    work.put_in_place(uv.cancel.check, kernel, (lambda: register_kernel(plan, environment)) if kernel else lambda: None)
