"""Fill an environment, new or standing, in one transaction: it ends with all of the plan, or as it was before."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Literal

from assistant.host.base import Host
from assistant.host.files import read_plain, write_whole
from assistant.host.lock import Lock
from assistant.host.parallel import Ahead
from assistant.host.process import CancelToken
from assistant.i18n import _
from assistant.install.installer import Installer, disk_obstacle
from assistant.install.journal import entry_of
from assistant.install.kernel import kernel_folder, kernel_name, note_kernel, register_kernel
from assistant.install.packages import Package, Resolution
from assistant.install.project import environment_of
from assistant.install.protect import guards, protect
from assistant.install.relocate import relocate
from assistant.install.site import Site, installed_files, interpreter, is_environment, look_at
from assistant.install.swap import Change, change_for, check_inside
from assistant.install.target import MARKER, check_disk, check_path, check_target, default_target, is_ours
from assistant.install.transaction import Transaction, transaction
from assistant.install.unpacked import contents, incomplete
from assistant.install.wheels import fetch, missing, places, requirement_lines
from assistant.install.work import refuse_unknown
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.event import FindingRaised, LogLine, Sink, Step
from assistant.model.finding import Finding, Severity
from assistant.model.plan import Plan
from assistant.model.record import Record, from_json, replace, to_json
from assistant.model.report import Environment
from assistant.privacy import Policy, redact

Verify = Callable[[Environment, Lock], None]  # processes that it starts hold the lock too


class Marker(Record, frozen=True, kw_only=True):
    """What stands in a finished environment: the plan that it was made for, and what it holds."""

    schema: Literal[1] = 1
    plan: Plan
    environment: Environment


def aimed_at(text: str, plan: Plan, host: Host) -> tuple[Path, Site | None]:
    """Read a target: "" or "new" (the plan's own folder), "kernel" (this Python's environment), or a path.

    A path may name an environment, its Python, or the project of uv or pixi that keeps it.

    Answers the folder, and what stands there when it is an environment. Raises `BadInput` for an environment of
    another Python than the plan's.
    """
    target, site = standing(str(default_target(plan)) if text in {"", "new"} else text, host)
    if site and site.minor != plan.python:
        raise BadInput(
            _(
                "The plan is for Python {plan}, and {path} has Python {version}.",
                plan=plan.python,
                path=target,
                version=site.version,
            ),
            hint=_("Plan with --python {version}.", version=site.minor),
        )
    return Path(site.prefix) if site else target, site


def standing(text: str, host: Host) -> tuple[Path, Site | None]:
    """Give the folder that a target names, and what stands there when it is an environment."""
    own = Path(str(host.facts("platform").get("executable", "")))
    target = own if text == "kernel" else Path(text).expanduser().absolute()
    check_path(target)
    target = environment_of(target)
    return target, look_at(target, host) if is_environment(target) else None


def reusable(target: Path, site: Site | None, resolution: Resolution) -> Environment | None:
    """Answer an environment of ours that was made with what the resolution names and still holds it, else None."""
    marker = read_marker(target) if site and not delta(site, resolution) else None
    return marker.environment if marker and marker.environment.packages == resolution.versions else None


def read_marker(target: Path) -> Marker | None:
    """Read what an environment of ours says of itself; None for any other folder, or one whose Python is gone."""
    try:
        marker = from_json(read_plain(target / MARKER), Marker, MARKER)
    except (OSError, BadInput):
        return None
    return marker if interpreter(target).exists() and marker.environment.path == str(target) else None


def install(
    plan: Plan,
    resolution: Resolution,
    target: Path,
    site: Site | None,
    host: Host,
    installer: Installer,
    verify: Verify,
) -> Environment:
    """Bring a resolution into a new environment, or into the one that stands there (`site`), as a kernel of JupyterLab.

    Everything is downloaded before anything changes. A new environment is built and verified aside, then put in place
    by one rename; where one stands, all is unpacked beside it, old files step aside and new ones step in, by renames
    alone. `verify` may refuse the result by raising. Raises `BadInput` or `WorkFailed` before anything is touched when
    the target cannot be used, and `WorkFailed` or `Cancelled` with everything as it was, file for file, when the work
    stops midway.
    """
    packages = delta(site, resolution)
    check_site(site) if site else check_target(target)
    check_disk(host, target, sum(package.size or 0 for package in packages))
    python = Path(site.python) if site else interpreter(target)
    name, _free = kernel_name(plan, python)
    made = Environment(path=str(target), python=str(python), kernel=name, packages=resolution.versions)
    with transaction(target, stands=site is not None) as work:
        _unpack(plan, made, packages, site, installer, work)
        installer.cancel.check()
        if site:
            _swap(site, packages, work)
        built = work.rooms.build
        settling = Ahead(work.settle)
        verify(made if site else replace(made, path=str(built), python=str(interpreter(built))), work.lock)
        _wait_for_disk(settling, installer.cancel)
        _wait_for_disk(Ahead(work.settle), installer.cancel)
        if not site and work.rooms.top is None:
            work.change(Change(comes=tuple(sorted(path.name for path in built.iterdir()))))
        work.commit(note_kernel(name, python), lambda: register_kernel(plan, python, name))
    _tell_kept(work.kept, installer.sink)
    return made


def _swap(site: Site, packages: Sequence[Package], work: Transaction) -> None:
    """Let what was unpacked take the place of what stands."""
    staged = work.rooms.staged
    ours = [path.name for path in (*guards(work.target), work.target / MARKER)]
    change = change_for(work.target, staged, installed_files(site, [package.name for package in packages]), ours)
    check_folders(work.target, (*change.goes, *change.comes))
    work.change(change)


def _tell_kept(kept: Sequence[Path], sink: Sink) -> None:
    """Tell where things are that were in the way and are not the assistant's."""
    for path in kept:
        text = _("Files that were not part of the installation have been moved to {path}.", path=path)
        sink(
            FindingRaised(step=Step.INSTALL, finding=Finding(key="files-set-aside", severity=Severity.INFO, text=text))
        )


def _wait_for_disk(settling: Ahead[None], cancel: CancelToken) -> None:
    """Wait until all is on the disk, unless a stop is asked for; raise `WorkFailed` when it cannot be written."""
    try:
        settling.result(cancel.check)
    except OSError as error:  # what was written was taken back meanwhile, or the disk fails
        raise WorkFailed(
            _("The installation cannot be written to the disk: {reason}.", reason=error.strerror or str(error)),
            hint=_("Everything was taken back. Check the disk, or choose another one with --target."),
        ) from error


def delta(site: Site | None, resolution: Resolution) -> list[Package]:
    """List the packages that an environment does not hold yet in the version that the resolution names."""
    here = site.versions if site else {}
    return [package for package in resolution.packages if here.get(package.name) != package.version]


def writes(plan: Plan, target: Path, site: Site | None, resolution: Resolution) -> tuple[str, ...]:
    """List the files, and the folders ("/" at the end), that an installation writes."""
    python = Path(site.python) if site else interpreter(target)
    packages = delta(site, resolution)
    inside = [f"{site.purelib}{os.sep}", *map(str, guards(target))] if site else [f"{target}{os.sep}"]
    return (
        *(str(file) for file in places(missing(packages)).values()),
        *inside,
        str(kernel_folder(kernel_name(plan, python)[0]) / "kernel.json"),
    )


def check_site(site: Site) -> None:
    """Refuse an environment that must not or cannot be changed, before anything is fetched."""
    check_path(Path(site.prefix))
    refuse_unknown(Path(site.prefix)) if not entry_of(Path(site.prefix)).read() else None
    if site.managed:
        raise BadInput(
            _("{python} belongs to the system, which forbids installing into it.", python=site.python),
            hint=_("Leave --target out to get a new environment."),
        )
    check_folders(Path(site.prefix), [str(Path(site.purelib).relative_to(site.prefix) / "any")])


def check_folders(prefix: Path, names: Sequence[str]) -> None:
    """Raise `WorkFailed` when a folder in which files have to move cannot be written, or no rename reaches it.

    Renames do not leave a file system, and none is made through a link that leads out of the environment.
    """
    check_inside(prefix, names)
    device = prefix.stat().st_dev
    for folder in {prefix, *((prefix / name).parent for name in names)}:
        if folder.is_dir() and not os.access(folder, os.W_OK | os.X_OK):
            raise WorkFailed(
                _("You may not write in {path}.", path=folder),
                hint=_("Leave --target out to get a new environment."),
            )
        if folder.is_dir() and folder.stat().st_dev != device:
            raise WorkFailed(
                _(
                    "{path} is on another file system than the environment, so nothing can be moved into it safely.",
                    path=folder,
                ),
                hint=_("Leave --target out to get a new environment."),
            )


def _unpack(
    plan: Plan, made: Environment, packages: list[Package], site: Site | None, installer: Installer, work: Transaction
) -> None:
    """Put what is missing into a new environment, or beside one that stands, as it will lie inside."""
    files = fetch(packages, installer, plan.index_url)
    lines = requirement_lines(packages, files)
    folder = work.rooms.staged if site else work.rooms.build
    try:
        _fill(folder, lines, files.values(), site, installer, work)
    except WorkFailed as error:
        anew = installer.with_own_cache(work.rooms.work)
        if anew is None or disk_obstacle(str(error)):
            raise
        text = _("The installer's cache may be damaged, so everything is unpacked anew, without it.")
        installer.sink(LogLine(step=Step.INSTALL, text=text))
        shutil.rmtree(folder, ignore_errors=True)
        _fill(folder, lines, files.values(), site, anew, work)
    if not site:
        relocate(folder, work.rooms.infix)
    protect(work.target, made.packages, folder)
    if not site or is_ours(work.target):
        write_whole(folder / MARKER, to_json(redact(Marker(plan=plan, environment=made), Policy.USABLE), indent=1))


def _fill(
    folder: Path, lines: str, wheels: Collection[Path], site: Site | None, installer: Installer, work: Transaction
) -> None:
    """Unpack into a folder; raise `WorkFailed` when that fails, or leaves files that are not whole."""
    if site:
        folder.mkdir()
    else:
        folder.parent.mkdir(parents=True, exist_ok=True)
        installer.make_venv(folder, work.lock, work.rooms.work)
    promised = Ahead(lambda: contents(wheels))  # the installer is another process
    if wheels:
        python, staged = (Path(site.python), folder) if site else (interpreter(folder), None)
        installer.install(lines, python, work.lock, work.rooms.work, total=len(wheels), staged=staged)
    if wrong := incomplete(folder, promised.result(installer.cancel.check)):
        raise WorkFailed(
            _("The installer unpacked files that are not whole: {names}.", names=", ".join(wrong[:3])),
            hint=_("Check the disk, clear the installer's cache and start again."),
        )
