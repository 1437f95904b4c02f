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
from assistant.i18n import _
from assistant.install.constraints import guards, protect
from assistant.install.contents import broken, delete_distribution, incomplete, install_whole, is_removable
from assistant.install.environments import bring_to_disk, nothing_to_undo, number_of, takes_a_rename
from assistant.install.inspect_env import Site, installed_files, is_private, look_at
from assistant.install.journal import Before, Entry, Journal, entry_of, locked, scratch
from assistant.install.kernel import note_kernel, put_kernel_back, register_kernel
from assistant.install.marker import read_marker, write_marker
from assistant.install.resolution import Package, Resolution, resolve
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


class Undoable(Record, frozen=True, kw_only=True):
    """The last change of an environment: when it was made, and what it changed; `index_url` is that of the old torch.

    `is_replacement` where the environment that was there before lies beside it as it was.
    """

    target: str
    at: str
    moves: tuple[Move, ...]
    index_url: str | None = None
    is_replacement: bool = False


def is_replaceable(site: Site, host: Host) -> bool:
    """Return whether an environment can be replaced by a new one.

    It is one of ours, holds nothing but packages of indexes, lies on one file system and can be renamed, and the
    assistant does not run in it.
    """
    prefix = Path(site.prefix)
    if read_marker(prefix) is None or prefix == Path(str(host.facts("platform").get("prefix", ""))):
        return False
    packages = Path(site.purelib)
    if os.path.lexists(packages) and packages.lstat().st_dev != prefix.stat().st_dev:  # on a disk of their own
        return False
    return takes_a_rename(prefix) and all(one.record and not is_private(one) for one in site.own)


def in_place_notice(target: Path) -> Finding:
    """Return what should be known before an environment is changed where it is."""
    text = _(
        "{path} was not made by the assistant alone, so uv changes it in place. To undo that, uv has to fetch the old "
        "versions again; files that were edited by hand are not brought back.",
        path=target,
    )
    return Finding(key="changed-in-place", severity=Severity.INFO, text=text)


def changed_in_place(
    plan: Plan, made: Environment, site: Site, resolution: Resolution, host: Host, uv: Uv, verify: Verify
) -> Environment:
    """Install a resolution into an environment that stands, and register its kernel; raises as `install` does."""
    packages = resolution.changes(site.versions)
    after = {**site.versions, **resolution.versions}
    with changing(site, made.kernel, moves_between(site.versions, after), host, uv) as change:
        replace_packages(change, packages, plan.index_url)
        uv.cancel.check()
        verify(made, change.lock)
        protect(Path(site.prefix), after, Path(site.prefix))
        guard(Path(site.prefix), after)
        uv.progress(_("Adding the kernel to Jupyter"), part=Part.REGISTER)
        register_kernel(plan, made)
    return made


class Change(NamedTuple):
    """A change of an environment that is under way: uv's programs hold `lock`, and `folder` is for their files."""

    site: Site
    uv: Uv
    folder: Path
    lock: Lock


@contextmanager
def changing(site: Site, kernel: str | None, moves: tuple[Move, ...], host: Host, uv: Uv) -> Iterator[Change]:
    """Hold an environment while its packages move; where the block fails they are put back as they were.

    Raises `WorkFailed` also where they cannot be put back.
    """
    target = Path(site.prefix)
    moved = tuple(move.name for move in moves)
    python = Path(site.python)
    before = Before(
        python=site.python,
        packages=site.versions,
        made=python.lstat().st_mtime_ns,
        moved=moved,
        incomplete=tuple(broken(target, moved).values()),
        index_url=index_of(site),
    )
    with locked(target) as (entry, lock), scratch() as (folder, _lock):
        locked_uv = uv.in_folder(folder, lock)
        note = note_kernel(kernel, python) if kernel else None
        journal = Journal(kind="change", target=str(target), goes=number_of(target), before=before, kernel=note)
        entry.write(journal)
        try:
            yield Change(site, locked_uv, folder, lock)
            bring_to_disk(target, uv.cancel.check)
        except BaseException as error:
            with uninterrupted():
                put_back(entry, journal, host, locked_uv)
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
    """Let uv install exact packages into an environment, those in `again` even where they are there, and remove some.

    Raises `BadInput` for a package that does not list its files, and `WorkFailed`.
    """
    site, uv = change.site, change.uv
    removes = [name for name in removes if name in site.versions]
    names = [one.name for one in packages]
    _refuse_links_out(site, installed_files(site, [*removes, *names]), names)
    uv.remove(Path(site.python), removes)
    if packages:
        _add(change, packages, index_url, again)


def _refuse_links_out(site: Site, files: Iterable[str], names: Iterable[str]) -> None:
    """Raise `BadInput` where packages would be removed or written through a link: what it leads to is somebody's."""
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


def _add(change: Change, packages: Sequence[Package], index_url: str | None, again: Iterable[str]) -> None:
    prefix, python, names = Path(change.site.prefix), Path(change.site.python), {one.name for one in packages}
    before = {name: version for name, version in change.site.versions.items() if name not in set(again)}
    tries = iter((again, names))

    def clear() -> None:
        _clear_half_written(prefix, names, before)

    def add(uv: Uv, lock: Path) -> None:
        uv.add(python, lock, len(packages), next(tries))

    install_whole(
        packages,
        change.uv,
        index_url,
        change.folder,
        install=add,
        find_incomplete=lambda: incomplete(prefix, names),
        clear=clear,
    )


def guard(target: Path, packages: Mapping[str, str]) -> None:
    """Write what an environment holds now into the files that guard it, and into its marker, where it has them."""
    if guards(target)[0].is_file():
        protect(target, packages, target)
    if marker := read_marker(target):
        present = {name: packages[name] for name in marker.environment.packages if name in packages}
        write_marker(target, marker.plan, replace(marker.environment, packages=present))


def put_back(entry: Entry, journal: Journal, host: Host, uv: Uv) -> bool:
    """Let an environment hold again what it held before a change, and return True; False where it is gone.

    Raises `WorkFailed` where that cannot be done.
    """
    target = Path(journal.target)
    if journal.before is None or _is_gone(target, journal.goes, journal.before):
        entry.forget()
        return False
    before = journal.before
    uv = with_changes(uv, cancel=CancelToken(), python=before.python)  # who stopped the change wants it undone
    try:
        spare = {name: before.packages[name] for name in before.incomplete if name in before.packages}
        _clear_half_written(target, before.moved, spare)
        site = look_at(Path(before.python), host)
        moved = {name: before.packages[name] for name in before.moved if name in before.packages}
        versions = {name: version for name, version in before.packages.items() if name not in site.versions} | moved
        comes = (set(before.moved) - before.packages.keys()) & site.versions.keys()
        _restore_versions(site, versions, comes, before.index_url, uv, spare)
    except (WorkFailed, BadInput, OSError) as error:
        raise WorkFailed(
            _("{path} could not be put back as it was: {reason}", path=target, reason=getattr(error, "message", error)),
            hint=_("`assistant recover` tries again; the network and the index must be reachable."),
        ) from error
    if journal.kernel:
        put_kernel_back(journal.kernel)
    entry.forget()
    return True


def _is_gone(target: Path, number: int, before: Before) -> bool:
    """Return whether an environment was deleted since, and nothing or another one stands in its place."""
    try:
        made = Path(before.python).lstat().st_mtime_ns
    except OSError:
        return True
    return (number != 0 and number_of(target) != number) or made != before.made


def _clear_half_written(prefix: Path, names: Container[str], spare: Mapping[str, str]) -> None:
    """Delete distributions that uv began to write or to remove, and that it cannot remove any more.

    Those of the versions in `spare` stay, as they were so before.
    """
    for info, name in broken(prefix, names).items():
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
    """Install the old versions of packages that have other ones now or lack files, and remove what came.

    Files that those in `spare` lack were not there before.
    """
    again = {name for name in broken(Path(site.prefix), versions).values() if name not in spare}
    moved = {name: version for name, version in versions.items() if name in again or site.versions.get(name) != version}
    pins = tuple(f"{name}=={version}" for name, version in moved.items())
    bare = with_changes(uv, also=())
    packages = resolve(plan_for(site, pins, index_url), bare, needs=False).packages if pins else ()
    with scratch() as (folder, lock):
        change = Change(site, uv, folder, uv.lock or lock)
        replace_packages(change, packages, index_url, removes=removes, again=again)
    if packages or removes:
        with suppress(OSError):  # before a journal is forgotten that would bring them back after a power cut
            settle_all(Path(site.prefix))
    held = {name: version for name, version in site.versions.items() if name not in removes}
    guard(Path(site.prefix), {**held, **versions})


def plan_for(site: Site, requirements: tuple[str, ...], index_url: str | None) -> Plan:
    """Put requirements into the form that is resolved; the plan's other fields mean nothing here."""
    return Plan(
        backend=Backend.CPU, variant="", torch="", python=site.minor, index_url=index_url, requirements=requirements
    )


def index_of(site: Site) -> str | None:
    """Return the index that the torch of an environment comes from; None for the default index."""
    marker = read_marker(Path(site.prefix))
    build = site.versions.get("torch", "").partition("+")[2]  # 2.13.0+cpu is on the index of "cpu"
    return marker.plan.index_url if marker else load_catalog().index_url(build) if build else None


def moves_between(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Move, ...]:
    """List what happens to the packages between two states of an environment."""
    names = sorted({*before, *after})
    moved = (Move(name=name, before=before.get(name, ""), after=after.get(name, "")) for name in names)
    return tuple(move for move in moved if move.before != move.after)


def _undo_file(entry: Entry) -> Path:
    return entry.journal.with_suffix(".undo")


def _save_undo(entry: Entry, target: Path, moves: tuple[Move, ...], index_url: str | None) -> None:
    """Save what it takes to undo a change, in place of the one before; that it cannot be written is no failure."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    change = Undoable(target=str(target), at=now, moves=moves, index_url=index_url)
    with suppress(OSError):
        write_whole(_undo_file(entry), to_json(change), private=True)


def last_change(target: Path) -> Undoable | None:
    """Return the last change of an environment that was made in place; None where there is none to undo."""
    file = _undo_file(entry_of(target))
    try:
        change = from_json(read_plain(file), Undoable, str(file))
    except (OSError, BadInput):
        return None
    same = os.path.realpath(change.target) == os.path.realpath(target)  # as the record's own name: see `entry_of`
    return change if same and change.moves else None


def undo_change(target: Path, host: Host, uv: Uv) -> None:
    """Let uv bring back the versions that an environment held before its last change, and remove what came with it.

    What was installed or removed since stays so. That can be undone as well. Raises `BadInput` where there is nothing
    to undo, and `WorkFailed` where the old versions cannot be had.
    """
    last = last_change(target)
    if last is None:
        raise nothing_to_undo(target)
    site = look_at(target, host)
    back = {move.name: move.before for move in last.moves if move.before}
    removes = {move.name for move in last.moves if not move.before} & site.versions.keys()
    after = {name: version for name, version in site.versions.items() if name not in removes} | back
    with changing(site, None, moves_between(site.versions, after), host, uv) as change:
        _restore_versions(site, back, removes, last.index_url, change.uv)


def forget_change(target: Path) -> None:
    """Delete what is kept for undoing the last change of an environment."""
    with suppress(OSError):
        discard(_undo_file(entry_of(target)))
