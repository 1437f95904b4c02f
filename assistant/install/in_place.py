"""Changes an environment of somebody else's where it is: conda's, a project's, the one that the assistant runs in.

It cannot be built anew, as nobody but its maker knows how. So this way is weaker than the other: uv replaces packages
in place, and what was there before is brought back by uv, from its cache or the index, when a change fails, was
interrupted, or is undone. The list of what was there lies in the user's private state.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace as with_changes
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from assistant.catalog import load_catalog
from assistant.host.base import Host
from assistant.host.files import discard, fsync_path, read_regular, sync_file_system, write_atomically
from assistant.host.lock import Lock
from assistant.host.process import CancelToken, defer_signals
from assistant.i18n import Text, _
from assistant.install.contents import delete_half_written, find_incomplete, install_and_check, name_of_info
from assistant.install.environments import (
    can_be_renamed_to,
    flush_to_disk,
    nothing_to_undo_error,
    owned_inode,
    unwritten_error,
)
from assistant.install.guards import guard_files, write_guards
from assistant.install.journal import Before, Entry, Journal, entry_for, locked, temporary_folder
from assistant.install.kernel import record_kernel, register_kernel, restore_kernel
from assistant.install.site import Site, read_marker, write_marker
from assistant.install.uv import Package, Uv, resolve
from assistant.model.errors import BadInput, Cancelled, WorkFailed
from assistant.model.finding import Finding, Severity
from assistant.model.plan import Backend, Plan
from assistant.model.record import Record, from_json, replace, to_json
from assistant.model.report import Environment, Part


class Built(NamedTuple):
    """An environment that can still be refused: as it will be, and, at `now`, with the paths that it has before that.

    Programs that look at it hold the lock, too; without one it was there before.
    """

    environment: Environment
    now: Environment
    lock: Lock | None = None


class Move(Record, frozen=True):
    """What happens to one package: its version before ("" if it is added) and after ("" if it is removed).

    If both are the same it is installed again.
    """

    name: str
    before: str = ""
    after: str = ""

    @property
    def words(self) -> Text:
        """What happens to the package: it is removed, added, installed again or changed to another version."""
        words = {"name": self.name, "before": self.before, "after": self.after}
        if not self.after:
            return _("{name} {before} is removed", **words)
        if not self.before:
            return _("{name} {after} is added", **words)
        if self.before == self.after:
            return _("{name} {after} is installed again", **words)
        return _("{name} {before} → {after}", **words)


class LastChange(Record, frozen=True, kw_only=True):
    """The last change of an environment: its time (`at`, ISO 8601), its moves, and the index of the earlier torch.

    With `is_replacement` the earlier environment lies beside it, unchanged.
    """

    target: str
    at: str
    moves: tuple[Move, ...]
    index_url: str | None = None
    is_replacement: bool = False


def is_replaceable(site: Site, host: Host) -> bool:
    """Return whether a new environment can be built beside this one and replace it, instead of a change in place.

    True if the assistant made it and does not run in it, all its packages come from indexes and list their files, it
    lies on one file system, and it can be renamed.
    """
    prefix, packages = Path(site.prefix), Path(site.purelib)
    if read_marker(prefix) is None or prefix == Path(str(host.facts("platform").get("prefix", ""))):
        return False
    if os.path.lexists(packages) and packages.lstat().st_dev != prefix.stat().st_dev:  # on a disk of their own
        return False
    return can_be_renamed_to(prefix) and all(package.record and not package.is_private for package in site.own)


def in_place_notice(target: Path) -> Finding:
    """Return a note that an environment is changed in place, with what that means for undoing it."""
    text = _(
        "{path} was not made by the assistant alone, so uv changes it in place. To undo that, uv has to fetch the old "
        "versions again; files that were edited by hand are not brought back.",
        path=target,
    )
    return Finding(key="changed-in-place", severity=Severity.INFO, text=text)


@contextmanager
def change_in_place(  # noqa: PLR0913, PLR0917 - where, what, with what
    site: Site,
    moves: tuple[Move, ...],
    packages: Sequence[Package],
    index_url: str | None,
    environment: Environment,
    host: Host,
    uv: Uv,
    plan: Plan | None = None,
) -> Iterator[Built]:
    """Install `packages` in an existing environment and remove those that `moves` remove; a block may refuse that.

    A move to the same version installs it anew. Afterwards the environment's constraints and marker are updated, if it
    has them; with `plan` it gets constraints in any case, and its kernel is registered. If anything fails, the old
    packages return. Raises as `restore_on_failure`.
    """
    prefix = Path(site.prefix)
    going = [move.name for move in moves if not move.after]
    after = {name: version for name, version in site.versions.items() if name not in going}
    after |= {move.name: move.after for move in moves if move.after}
    with restore_on_failure(site, environment.kernel, moves, host, uv) as (held, lock):
        _replace_packages(
            site, packages, index_url, held, going, [one.name for one in moves if one.before == one.after]
        )
        uv.cancel.check()
        yield Built(environment, environment, lock)
        _update_constraints_and_marker(prefix, after, is_new=plan is not None)
        if plan:
            uv.progress(_("Adding the kernel to Jupyter"), part=Part.REGISTER)
            register_kernel(plan, environment)


@contextmanager
def restore_on_failure(
    site: Site, kernel: str | None, moves: tuple[Move, ...], host: Host, uv: Uv
) -> Iterator[tuple[Uv, Lock]]:
    """Lock an environment while a block changes its packages; restore them if it raises, else write an undo record.

    The kernelspec named `kernel`, if any, is restored with them. Yields uv with a temporary folder, and the lock for
    its programs to hold; writes a journal before, and flushes the disk after the block. Raises what the block raises,
    but `WorkFailed` for an `OSError`, if another process holds the lock, the journal cannot be written, or the packages
    cannot be restored.
    """
    target, python = Path(site.prefix), Path(site.python)
    moved = tuple(move.name for move in moves)
    before = Before(
        python=site.python,
        packages=site.versions,
        made=python.lstat().st_mtime_ns,
        moved=moved,
        incomplete=tuple(map(name_of_info, find_incomplete(target, moved))),
        index_url=find_torch_index(site),
    )
    with locked(target) as (entry, lock), temporary_folder() as (folder, _lock):
        held = uv.in_folder(folder, lock)
        note = record_kernel(kernel, python) if kernel else None
        journal = Journal(kind="change", target=str(target), goes=owned_inode(target), before=before, kernel=note)
        entry.write(journal)
        try:
            yield held, lock
            flush_to_disk(target, uv.cancel.check)
        except BaseException as error:
            with defer_signals():
                restore_packages(entry, journal, host, held)
            if isinstance(error, Cancelled):
                text = _("The packages in {path} are as they were before. Start the step again when you are ready.")
                error.hint = text.format(path=target)
            if isinstance(error, OSError):
                raise unwritten_error(error) from error
            raise
        with defer_signals():
            now = datetime.now(UTC).isoformat(timespec="seconds")
            change = LastChange(target=str(target), at=now, moves=moves, index_url=before.index_url)
            with suppress(OSError):
                write_atomically(entry.undo, to_json(change), private=True)
            entry.delete_journal()
            with suppress(OSError):  # else a power cut would bring the journal back, and the old packages with it
                fsync_path(entry.journal.parent)


def _replace_packages(
    site: Site,
    packages: Sequence[Package],
    index_url: str | None,
    uv: Uv,
    removes: Collection[str],
    reinstall: Collection[str],
) -> None:
    """Remove packages (`removes`) and install exact `packages`; those in `reinstall` even if they are there already.

    If files are damaged they are installed once more with a new cache. Raises `BadInput` for a package that does not
    list its files, or whose folder leads out of the environment, and `WorkFailed` if uv fails.
    """
    prefix, names = Path(site.prefix), {package.name for package in packages}
    removes = [name for name in removes if name in site.versions]
    _refuse_links_out(site, [*removes, *names])
    uv.remove(Path(site.python), removes)
    if packages:
        before = {name: version for name, version in site.versions.items() if name not in reinstall}
        clear = partial(delete_half_written, prefix, names, before)
        install_and_check(Path(site.python), prefix, packages, index_url, uv, clear, reinstall)


def _refuse_links_out(site: Site, names: Collection[str]) -> None:
    """Raise `BadInput` if a folder that the packages use or would use is, by links, outside of the environment."""
    root = os.path.realpath(site.prefix)
    folders = {os.path.dirname(f"{site.prefix}/{file}") for file in site.installed_files(names)}  # noqa: PTH120 - 20,000
    for name in names:
        folders |= {site.purelib, f"{site.purelib}/{name.replace('-', '_')}"}
    for folder in sorted(folders):
        real = os.path.realpath(folder)
        if not Path(real).is_relative_to(root):
            text = _("{path} leads out of the environment to {real}; nothing is changed through it.")
            raise BadInput(
                text.format(path=folder, real=real),
                hint=_("Choose another environment, or a new one.", option="--target"),
            )


def _update_constraints_and_marker(target: Path, packages: Mapping[str, str], *, is_new: bool = False) -> None:
    """Write the installed versions (`packages`, by name) into an environment's constraints and marker, if it has them.

    With `is_new` it gets constraints in any case.
    """
    if is_new or guard_files(target)[0].is_file():
        write_guards(target, packages, target)
    if marker := read_marker(target):
        present = {name: packages[name] for name in marker.environment.packages if name in packages}
        write_marker(target, marker.plan, replace(marker.environment, packages=present))


def restore_packages(entry: Entry, journal: Journal, host: Host, uv: Uv) -> bool:
    """Restore the packages and kernel that an environment had by its journal, and delete the journal.

    Returns False if the environment is gone or another one is in its place: then only the journal is deleted. `uv` must
    have a temporary folder. A request to stop is ignored. Raises `WorkFailed` if it fails; the journal stays then.
    """
    target, before = Path(journal.target), journal.before
    is_same = journal.goes in {0, owned_inode(target)}
    try:
        is_same &= before is not None and Path(before.python).lstat().st_mtime_ns == before.made
    except OSError:
        is_same = False
    if before is None or not is_same:
        entry.delete_journal()
        return False
    uv = with_changes(uv, cancel=CancelToken(), python=before.python)  # who stopped the change wants it undone
    try:
        incomplete = {name: before.packages[name] for name in before.incomplete if name in before.packages}
        delete_half_written(target, before.moved, incomplete)
        site = Site.ask(Path(before.python), host)
        moved = {name: before.packages[name] for name in before.moved if name in before.packages}
        versions = {name: version for name, version in before.packages.items() if name not in site.versions} | moved
        added = (set(before.moved) - before.packages.keys()) & site.versions.keys()
        _restore_versions(site, versions, added, before.index_url, uv, incomplete)
    except (WorkFailed, BadInput, OSError) as error:
        raise WorkFailed(
            _("{path} could not be put back as it was: {reason}", path=target, reason=getattr(error, "message", error)),
            hint=_("`assistant recover` tries again; the network and the index must be reachable."),
        ) from error
    if journal.kernel:
        restore_kernel(journal.kernel)
    entry.delete_journal()
    return True


def _restore_versions(
    site: Site,
    versions: Mapping[str, str],
    removes: Collection[str],
    index_url: str | None,
    uv: Uv,
    incomplete: Container[str] = (),
) -> None:
    """Install those of `versions` (by name) that differ or lack files now; remove the packages in `removes`.

    Packages in `incomplete` may lack files, as they did before the change. Constraints and marker are updated.
    """
    prefix = Path(site.prefix)
    damaged = {name for name in map(name_of_info, find_incomplete(prefix, versions)) if name not in incomplete}
    changed = (name for name, version in versions.items() if name in damaged or site.versions.get(name) != version)
    moved = {name: versions[name] for name in changed}
    packages = resolve_versions(site, moved, index_url, uv) if moved else ()
    _replace_packages(site, packages, index_url, uv, removes, damaged)
    if packages or removes:
        with suppress(OSError):  # before a journal is forgotten that would bring them back after a power cut
            sync_file_system(prefix)
    others = {name: version for name, version in site.versions.items() if name not in removes}
    _update_constraints_and_marker(prefix, {**others, **versions})


def resolve_versions(site: Site, versions: Mapping[str, str], index_url: str | None, uv: Uv) -> tuple[Package, ...]:
    """Return exact versions (by name) as packages for an environment, without dependencies; raise as `resolve` does."""
    plan = plan_for_resolving(site, tuple(f"{name}=={version}" for name, version in versions.items()), index_url)
    return resolve(plan, with_changes(uv, also=()), dependencies=False).packages


def plan_for_resolving(site: Site, requirements: tuple[str, ...], index_url: str | None) -> Plan:
    """Return a plan of requirements, an index and the environment's Python, to be resolved; other fields are blank."""
    return Plan(
        backend=Backend.CPU, variant="", torch="", python=site.minor, index_url=index_url, requirements=requirements
    )


def find_torch_index(site: Site) -> str | None:
    """Return the index of a site's torch, by marker or torch's version; None for the default one and without torch."""
    marker = read_marker(Path(site.prefix))
    return marker.plan.index_url if marker else index_of_build(site.versions.get("torch", ""))


def index_of_build(version: str) -> str | None:
    """Return the index of torch's builds that bears a version, such as 2.13.0+cpu; None for one without a build."""
    number, _sign, build = version.partition("+")
    variant = f"nightly/{build}" if ".dev" in number else build
    return load_catalog().index_url(variant) if build else None


def moves_between(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Move, ...]:
    """Return a move for each package whose versions differ between two states (versions by name), sorted by name."""
    names = sorted({*before, *after})
    moved = (Move(name=name, before=before.get(name, ""), after=after.get(name, "")) for name in names)
    return tuple(move for move in moved if move.before != move.after)


def read_last_change(target: Path) -> LastChange | None:
    """Return the record of an environment's last change in place; None if none can be read, or it has no moves."""
    file = entry_for(target).undo
    try:
        change = from_json(read_regular(file), LastChange, str(file))
    except (OSError, BadInput):
        return None
    is_of_target = os.path.realpath(change.target) == os.path.realpath(target)  # as the file's own name: `entry_for`
    return change if is_of_target and change.moves else None


def undo_change(target: Path, host: Host, uv: Uv) -> None:
    """Install the versions that an environment held before its last change in place, and remove what that added.

    Other packages that were installed or removed since stay so. The undoing can be undone, too. Raises `BadInput` if
    there is nothing to undo, `WorkFailed` if the old versions are not available, and as `restore_on_failure` does.
    """
    last = read_last_change(target)
    if last is None:
        raise nothing_to_undo_error(target)
    site = Site.ask(target, host)
    back = {move.name: move.before for move in last.moves if move.before}
    removes = {move.name for move in last.moves if not move.before} & site.versions.keys()
    after = {name: version for name, version in site.versions.items() if name not in removes} | back
    with restore_on_failure(site, None, moves_between(site.versions, after), host, uv) as (held, _lock):
        _restore_versions(site, back, removes, last.index_url, held)


def delete_undo_record(target: Path) -> None:
    """Delete the undo record of an environment's last change in place; ignore that it cannot be deleted."""
    with suppress(OSError):
        discard(entry_for(target).undo)
