"""Fill an environment, new or standing, in one transaction: it ends with all of the plan, or as it was before."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from assistant.host.base import Host
from assistant.host.lock import Lock
from assistant.install.constraints import guards, protect
from assistant.install.inspect_env import Site, installed_files, interpreter
from assistant.install.installer import Installer
from assistant.install.kernel import display_name, kernel_file, kernel_name, note_kernel, register_kernel
from assistant.install.packages import Package, Resolution
from assistant.install.swap import Change, change_for, check_movable, set_aside
from assistant.install.target import OWN_FILES, check_disk, check_target, is_ours, write_marker
from assistant.install.transaction import Transaction, transaction
from assistant.install.unpack import unpack
from assistant.install.wheels import places, to_download
from assistant.model.plan import Plan
from assistant.model.report import Environment

Verify = Callable[[Environment, Lock], None]  # processes that it starts hold the lock too


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
