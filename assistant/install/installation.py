"""The install step: `prepare` says what an installation would do, `Prepared.install` does it or leaves all as it was.

A new environment, or one that the assistant made, is built aside, verified there and put in place by a rename. An
environment of somebody else's is changed where it is: see `in_place`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from assistant.host.base import Host
from assistant.host.files import discard_folder, write_temporary
from assistant.i18n import _, ngettext
from assistant.install.conflicts import find_conflicts, undone_by_project
from assistant.install.constraints import guard_files, write_guards
from assistant.install.contents import PIP, find_incomplete, find_pip, install_whole, link_own_files
from assistant.install.downloads import files_on_disk, list_missing, wheel_path
from assistant.install.environments import Building, building, new_folder
from assistant.install.in_place import Verify, change_in_place, in_place_notice, is_replaceable, moves_between
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
    python = Path(site.python) if site else interpreter(target)
    inside = [f"{site.purelib}{os.sep}", *map(str, guard_files(target))] if site else [f"{target}{os.sep}"]
    downloads = [str(wheel_path(package)) for package in list_missing(packages)]
    return Prepared(
        plan=plan,
        target=str(target),
        resolution=resolution,
        commands=list_commands(uv, target, changing),
        writes=(*downloads, *inside, str(kernel_file(choose_kernel_name(plan, python)))),
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
    added: list[str] = []
    if site and replaces:
        marker = read_marker(Path(site.prefix))
        added = sorted(set(site.versions) - set(marker.environment.packages if marker else ()) - {PIP})
    if added:
        with suppress(Unsolved):
            whole = replace(plan, requirements=(*plan.requirements, *added))
            return resolve(whole, uv, keep, tools.sources.locked), ()
    resolution = resolve(plan, uv, keep, tools.sources.locked)
    left_out = [name for name in added if name not in resolution.versions]
    text = ngettext(
        "{names} does not go with this plan and is left out; the environment as it was stays beside the new one.",
        "{names} do not go with this plan and are left out; the environment as it was stays beside the new one.",
        len(left_out),
        names=", ".join(left_out),
    )
    return resolution, (Finding(key="added-left-out", severity=Severity.WARNING, text=text),) if left_out else ()


def find_reusable(target: Path, site: Site | None, resolution: Resolution) -> Environment | None:
    """Return the environment at a target if the assistant made it and it holds what a resolution lists; else None."""
    marker = read_marker(target) if site and not resolution.changes(site.versions) else None
    return marker.environment if marker and marker.environment.packages.items() <= resolution.versions.items() else None


def list_commands(uv: Uv, target: Path, changing: Site | None) -> tuple[tuple[str, ...], ...]:
    """Return the commands that an installation runs; `changing` is an environment that is changed in place, or None."""
    folder, lock = new_folder(target), Path(LOCK)
    if changing:
        return (tuple(uv.install_command(Path(changing.python), lock)),)
    rename = "move" if os.name == "nt" else "mv"  # cmd knows `move`, PowerShell both; one rename on any system
    steps = (
        uv.venv_command(folder),
        uv.sync_command(interpreter(folder), lock),
        (rename, str(folder), str(target)),
    )
    return tuple(tuple(step) for step in steps)


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
    present = site.versions if site else {}
    changes = resolution.changes(present)  # the rest is shared by hard links
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
        moves = moves_between(present, {**present, **resolution.versions})
        change_in_place(site, moves, changes, plan.index_url, environment, host, uv, verify, plan)
    else:
        build_anew(plan, resolution.packages, plan.index_url, environment, site, host, uv, verify)
    return environment


def build_anew(  # noqa: PLR0913, PLR0917 - what, where, with what
    plan: Plan,
    packages: Sequence[Package],
    index_url: str | None,
    environment: Environment,
    site: Site | None,
    host: Host,
    uv: Uv,
    verify: Verify,
    versions: Mapping[str, str] | None = None,
) -> None:
    """Build an environment aside with exact packages and what `site`, which it replaces, holds besides, and place it.

    Before that it is verified; then its kernel is registered. `versions` are those for its constraints, by default
    those of the environment. Raises as `building` and `verify` do.
    """
    target = Path(environment.path)
    with building(target) as work:
        folder, python = work.folder, interpreter(work.folder)
        held = uv.in_folder(work.scratch, work.lock)
        held.make(folder)
        if not site and all(package.name != PIP for package in packages):  # some packages require pip, as fastai does
            packages = [*packages, *filter(None, [find_pip(python, plan, held)])]
        _fill(work, packages, held, index_url)
        if site:
            link_own_files(site, folder)
        discard_folder(work.scratch)
        check_lengths(host, folder, target)
        write_guards(target, environment.packages if versions is None else versions, folder)
        write_marker(folder, plan, environment)
        uv.cancel.check()
        work.start_syncing()
        verify(replace(environment, path=str(folder), python=str(python)), work.lock)
        uv.progress(_("Adding the kernel to Jupyter"), part=Part.REGISTER)
        kernel = note_kernel(environment.kernel, Path(environment.python)) if environment.kernel else None
        register = (lambda: register_kernel(plan, environment)) if kernel else lambda: None
        work.put_in_place(uv.cancel.check, kernel, register)


def _fill(work: Building, packages: Sequence[Package], uv: Uv, index_url: str | None) -> None:
    """Install exact packages into an empty environment, from the cache alone if that has all of them whole."""
    lock, python = work.scratch / LOCK, interpreter(work.folder)
    write_temporary(lock, write_lock(packages, files_on_disk(packages)))
    if uv.is_synced_from_cache(python, lock) and not find_incomplete(work.folder):
        return

    def make_anew() -> None:
        """Empty the folder, and make an empty environment in it."""
        work.restart()
        uv.make(work.folder)

    install_whole(
        packages,
        uv,
        index_url,
        install=lambda uv, lock: uv.fill(python, lock, len(packages)),
        find_wrong=lambda: find_incomplete(work.folder),
        clear=make_anew,
    )
