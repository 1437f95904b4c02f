"""Changes an environment of somebody else's where it is: conda's, a project's, the one that the assistant runs in.

It cannot be built anew, as nobody but its maker knows how. So this way is weaker than the other: uv replaces packages
in place, and what was there before is brought back by uv, from its cache or the index, when a change fails, was
interrupted, or is undone. The list of what was there lies in the user's private state.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace as with_changes
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from assistant.catalog import load_catalog
from assistant.host.base import Host
from assistant.host.files import discard, read_plain, settle, settle_all, write_whole
from assistant.host.lock import Lock
from assistant.host.process import CancelToken, uninterrupted
from assistant.i18n import Text, _
from assistant.install.constraints import guard_files, write_guards
from assistant.install.contents import (
    delete_distribution,
    incomplete_distributions,
    incomplete_files,
    install_whole,
    is_removable,
)
from assistant.install.environments import bring_to_disk, can_be_renamed_to, inode_of, nothing_to_undo_error
from assistant.install.journal import Before, Entry, Journal, entry_of, locked, scratch
from assistant.install.kernel import note_kernel, put_kernel_back, register_kernel
from assistant.install.resolution import Package, Resolution, resolve
from assistant.install.site import Site, read_marker, write_marker
from assistant.install.uv import Uv
from assistant.model.errors import BadInput, Cancelled, WorkFailed
from assistant.model.event import Part
from assistant.model.finding import Finding, Severity
from assistant.model.plan import Backend, Plan
from assistant.model.record import Record, from_json, replace, to_json
from assistant.model.report import Environment

Verify = Callable[[Environment, Lock], None]  # processes that it starts hold the lock too


class Move(Record, frozen=True):
    """What happens to one package: its version before ("" if it comes) and after ("" if it goes).

    Where both are the same it is installed again.
    """

    name: str
    before: str = ""
    after: str = ""

    @property
    def words(self) -> Text:
        """What happens to it, in words."""
        words = {"name": self.name, "before": self.before, "after": self.after}
        if not self.after:
            return _("{name} {before} is removed", **words)
        if not self.before:
            return _("{name} {after} is added", **words)
        if self.before == self.after:
            return _("{name} {after} is installed again", **words)
        return _("{name} {before} → {after}", **words)


class LastChange(Record, frozen=True, kw_only=True):
    """The last change of an environment: when it was made (ISO 8601), its moves, and the index of the torch before.

    With `is_replacement` the environment that was there before lies beside it as it was.
    """

    target: str
    at: str
    moves: tuple[Move, ...]
    index_url: str | None = None
    is_replacement: bool = False


def is_replaceable(site: Site, host: Host) -> bool:
    """Return whether an environment can be built anew beside itself and replaced, instead of being changed in place.

    It is one of ours, holds nothing but packages of indexes, lies on one file system and can be renamed, and the
    assistant does not run in it.
    """
    prefix = Path(site.prefix)
    if read_marker(prefix) is None or prefix == Path(str(host.facts("platform").get("prefix", ""))):
        return False
    packages = Path(site.purelib)
    if os.path.lexists(packages) and packages.lstat().st_dev != prefix.stat().st_dev:  # on a disk of their own
        return False
    return can_be_renamed_to(prefix) and all(
        distribution.record and not distribution.is_private for distribution in site.own
    )


def in_place_notice(target: Path) -> Finding:
    """Return a note that an environment is changed in place, with what that means for undoing it."""
    text = _(
        "{path} was not made by the assistant alone, so uv changes it in place. To undo that, uv has to fetch the old "
        "versions again; files that were edited by hand are not brought back.",
        path=target,
    )
    return Finding(key="changed-in-place", severity=Severity.INFO, text=text)


def install_in_place(
    plan: Plan, environment: Environment, site: Site, resolution: Resolution, host: Host, uv: Uv, verify: Verify
) -> Environment:
    """Install a resolution into an environment where it is, register its kernel, and return it; raise as `install`."""
    packages = resolution.changes(site.versions)
    after = {**site.versions, **resolution.versions}
    with changing(site, environment.kernel, moves_between(site.versions, after), host, uv) as change:
        replace_packages(change, packages, plan.index_url)
        uv.cancel.check()
        verify(environment, change.lock)
        write_guards(Path(site.prefix), after, Path(site.prefix))
        update_guards(Path(site.prefix), after)
        uv.progress(_("Adding the kernel to Jupyter"), part=Part.REGISTER)
        register_kernel(plan, environment)
    return environment


class Change(NamedTuple):
    """A change of an environment that is under way: uv's programs hold `lock`, and `folder` is for their files."""

    site: Site
    uv: Uv
    folder: Path
    lock: Lock


@contextmanager
def changing(site: Site, kernel: str | None, moves: tuple[Move, ...], host: Host, uv: Uv) -> Iterator[Change]:
    """Hold an environment while its packages are changed; restore them if the block raises, else keep what undoes it.

    Raises `WorkFailed` also if they cannot be restored.
    """
    target = Path(site.prefix)
    moved = tuple(move.name for move in moves)
    python = Path(site.python)
    before = Before(
        python=site.python,
        packages=site.versions,
        made=python.lstat().st_mtime_ns,
        moved=moved,
        incomplete=tuple(incomplete_distributions(target, moved).values()),
        index_url=torch_index_of(site),
    )
    with locked(target) as (entry, lock), scratch() as (folder, _lock):
        locked_uv = uv.in_folder(folder, lock)
        note = note_kernel(kernel, python) if kernel else None
        journal = Journal(kind="change", target=str(target), goes=inode_of(target), before=before, kernel=note)
        entry.write(journal)
        try:
            yield Change(site, locked_uv, folder, lock)
            bring_to_disk(target, uv.cancel.check)
        except BaseException as error:
            with uninterrupted():
                restore_packages(entry, journal, host, locked_uv)
            if isinstance(error, Cancelled):
                text = _("The packages in {path} are as they were before. Start the step again when you are ready.")
                error.hint = text.format(path=target)
            raise
        with uninterrupted():
            _save_undo(entry, target, moves, before.index_url)
            entry.forget()
            with suppress(OSError):  # else a power cut would bring the journal back, and the old packages with it
                settle(entry.journal.parent)


def replace_packages(
    change: Change,
    packages: Sequence[Package],
    index_url: str | None,
    *,
    removes: Iterable[str] = (),
    again: Iterable[str] = (),
) -> None:
    """Remove packages from an environment and install exact ones; those in `again` even if they are there already.

    Raises `BadInput` for a package that does not list its files, and `WorkFailed`.
    """
    site, uv = change.site, change.uv
    removes = [name for name in removes if name in site.versions]
    names = [package.name for package in packages]
    _refuse_links_out(site, site.installed_files([*removes, *names]), names)
    uv.remove(Path(site.python), removes)
    if packages:
        _install_packages(change, packages, index_url, again)


def _refuse_links_out(site: Site, files: Iterable[str], names: Iterable[str]) -> None:
    """Raise `BadInput` if a folder of the files or packages is a link that leads out of the environment."""
    root = os.path.realpath(site.prefix)
    folders = {os.path.dirname(f"{site.prefix}/{file}") for file in files}  # noqa: PTH120 - for 20,000 files
    for name in names:
        folders |= {site.purelib, f"{site.purelib}/{name.replace('-', '_')}"}
    for folder in sorted(folders):
        real = os.path.realpath(folder)
        if not Path(real).is_relative_to(root):
            raise BadInput(
                _(
                    "{path} leads out of the environment to {real}; nothing is changed through it.",
                    path=folder,
                    real=real,
                ),
                hint=_("Choose another environment, or a new one.", option="--target"),
            )


def _install_packages(change: Change, packages: Sequence[Package], index_url: str | None, again: Iterable[str]) -> None:
    """Install exact packages beside the others of an environment; once more with a new cache if files are damaged."""
    prefix, python, names = Path(change.site.prefix), Path(change.site.python), {package.name for package in packages}
    before = {name: version for name, version in change.site.versions.items() if name not in set(again)}
    packages_to_repeat = iter((again, names))

    def clear_half_written() -> None:
        """Delete what the first try left half written."""
        _clear_half_written(prefix, names, before)

    def install_from_lock(uv: Uv, lock: Path) -> None:
        """Install what a lock holds; the first time repeat `again`, the second time all packages."""
        uv.add(python, lock, len(packages), next(packages_to_repeat))

    install_whole(
        packages,
        change.uv,
        index_url,
        change.folder,
        install=install_from_lock,
        find_incomplete=lambda: incomplete_files(prefix, names),
        clear=clear_half_written,
    )


def update_guards(target: Path, packages: Mapping[str, str]) -> None:
    """Write the versions that an environment holds now into its constraints and its marker, if it has them."""
    if guard_files(target)[0].is_file():
        write_guards(target, packages, target)
    if marker := read_marker(target):
        present = {name: packages[name] for name in marker.environment.packages if name in packages}
        write_marker(target, marker.plan, replace(marker.environment, packages=present))


def restore_packages(entry: Entry, journal: Journal, host: Host, uv: Uv) -> bool:
    """Bring an environment back to what its journal says it held, and return True; False if it is gone or replaced.

    Raises `WorkFailed` if that cannot be done.
    """
    target = Path(journal.target)
    if journal.before is None or _is_gone_or_replaced(target, journal.goes, journal.before):
        entry.forget()
        return False
    before = journal.before
    uv = with_changes(uv, cancel=CancelToken(), python=before.python)  # who stopped the change wants it undone
    try:
        spare = {name: before.packages[name] for name in before.incomplete if name in before.packages}
        _clear_half_written(target, before.moved, spare)
        site = Site.ask(Path(before.python), host)
        moved = {name: before.packages[name] for name in before.moved if name in before.packages}
        versions = {name: version for name, version in before.packages.items() if name not in site.versions} | moved
        added = (set(before.moved) - before.packages.keys()) & site.versions.keys()
        _restore_versions(site, versions, added, before.index_url, uv, spare)
    except (WorkFailed, BadInput, OSError) as error:
        raise WorkFailed(
            _("{path} could not be put back as it was: {reason}", path=target, reason=getattr(error, "message", error)),
            hint=_("`assistant recover` tries again; the network and the index must be reachable."),
        ) from error
    if journal.kernel:
        put_kernel_back(journal.kernel)
    entry.forget()
    return True


def _is_gone_or_replaced(target: Path, inode: int, before: Before) -> bool:
    """Return whether the environment of a journal was deleted, or another one stands in its place."""
    try:
        created = Path(before.python).lstat().st_mtime_ns
    except OSError:
        return True
    return (inode != 0 and inode_of(target) != inode) or created != before.made


def _clear_half_written(prefix: Path, names: Container[str], spare: Mapping[str, str]) -> None:
    """Delete the named distributions that lack files and that no installer can remove any more.

    Those in `spare`, by name and version, stay: they lacked the files before the change.
    """
    for info, name in incomplete_distributions(prefix, names).items():
        is_spared = info.name == f"{info.name.partition('-')[0]}-{spare.get(name)}.dist-info"
        if not is_spared and not is_removable(info):
            delete_distribution(info, prefix)


def _restore_versions(
    site: Site,
    versions: Mapping[str, str],
    removes: Collection[str],
    index_url: str | None,
    uv: Uv,
    spare: Container[str] = (),
) -> None:
    """Install versions of packages that have another version now or lack files, and remove the packages in `removes`.

    Packages in `spare` may lack files, as they did before the change.
    """
    again = {name for name in incomplete_distributions(Path(site.prefix), versions).values() if name not in spare}
    moved = {name: version for name, version in versions.items() if name in again or site.versions.get(name) != version}
    pins = tuple(f"{name}=={version}" for name, version in moved.items())
    uv_without_kernel = with_changes(uv, also=())
    packages = (
        resolve(plan_of_lines(site, pins, index_url), uv_without_kernel, dependencies=False).packages if pins else ()
    )
    with scratch() as (folder, lock):
        change = Change(site, uv, folder, uv.lock or lock)
        replace_packages(change, packages, index_url, removes=removes, again=again)
    if packages or removes:
        with suppress(OSError):  # before a journal is forgotten that would bring them back after a power cut
            settle_all(Path(site.prefix))
    others = {name: version for name, version in site.versions.items() if name not in removes}
    update_guards(Path(site.prefix), {**others, **versions})


def plan_of_lines(site: Site, requirements: tuple[str, ...], index_url: str | None) -> Plan:
    """Return a plan with requirements and an index, for resolving alone; its other fields mean nothing."""
    return Plan(
        backend=Backend.CPU, variant="", torch="", python=site.minor, index_url=index_url, requirements=requirements
    )


def torch_index_of(site: Site) -> str | None:
    """Return the index for the build of torch in an environment; None for the default index, and without torch."""
    marker = read_marker(Path(site.prefix))
    build = site.versions.get("torch", "").partition("+")[2]  # 2.13.0+cpu is on the index of "cpu"
    return marker.plan.index_url if marker else load_catalog().index_url(build) if build else None


def moves_between(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Move, ...]:
    """Return a move for each package whose versions differ between two states of an environment, by name."""
    names = sorted({*before, *after})
    moved = (Move(name=name, before=before.get(name, ""), after=after.get(name, "")) for name in names)
    return tuple(move for move in moved if move.before != move.after)


def _undo_file(entry: Entry) -> Path:
    """Return the file that records the last change in place of a target."""
    return entry.journal.with_suffix(".undo")


def _save_undo(entry: Entry, target: Path, moves: tuple[Move, ...], index_url: str | None) -> None:
    """Write what it takes to undo a change, over the record of the one before; ignore that it cannot be written."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    change = LastChange(target=str(target), at=now, moves=moves, index_url=index_url)
    with suppress(OSError):
        write_whole(_undo_file(entry), to_json(change), private=True)


def read_last_change(target: Path) -> LastChange | None:
    """Return the recorded last change in place of an environment; None if there is none, or it cannot be read."""
    file = _undo_file(entry_of(target))
    try:
        change = from_json(read_plain(file), LastChange, str(file))
    except (OSError, BadInput):
        return None
    is_of_target = os.path.realpath(change.target) == os.path.realpath(
        target
    )  # as the record's own name: see `entry_of`
    return change if is_of_target and change.moves else None


def undo_change(target: Path, host: Host, uv: Uv) -> None:
    """Install the versions that an environment held before its last change in place, and remove what came with it.

    What was installed or removed since stays so. That can be undone as well. Raises `BadInput` if there is nothing to
    undo, and `WorkFailed` if the old versions cannot be had.
    """
    last = read_last_change(target)
    if last is None:
        raise nothing_to_undo_error(target)
    site = Site.ask(target, host)
    back = {move.name: move.before for move in last.moves if move.before}
    removes = {move.name for move in last.moves if not move.before} & site.versions.keys()
    after = {name: version for name, version in site.versions.items() if name not in removes} | back
    with changing(site, None, moves_between(site.versions, after), host, uv) as change:
        _restore_versions(site, back, removes, last.index_url, change.uv)


def forget_change(target: Path) -> None:
    """Delete the record that undoes the last change in place of an environment; ignore that it cannot be deleted."""
    with suppress(OSError):
        discard(_undo_file(entry_of(target)))
