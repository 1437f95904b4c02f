"""Changes packages of an existing environment in one transaction, and keeps what it takes to undo that."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from packaging.utils import canonicalize_name

from assistant.host.lock import Lock
from assistant.i18n import _
from assistant.install.constraints import guards, protect
from assistant.install.difference import Difference, plan_for
from assistant.install.inspect_env import Site, installed_files, still
from assistant.install.swap import change_for, check_movable
from assistant.install.target import OWN_FILES, check_disk, check_target, read_marker, write_marker
from assistant.install.tools import Tools
from assistant.install.transaction import Transaction, transaction
from assistant.install.undo import keep
from assistant.install.unpack import unpack
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.record import replace
from assistant.model.report import Environment


def carry_out(
    difference: Difference, prove: Callable[[Environment, Lock], None], tools: Tools
) -> tuple[Environment, tuple[Path, ...]]:
    """Carry a change out; `prove` may refuse the result by raising. The old files are kept, so that it can be undone.

    Returns the environment, and the folders into which files of the user's were moved. It ends with all of the change,
    or with the environment as it was, file for file. Raises `BadInput`, `WorkFailed` or `Cancelled`.
    """
    site, moves = still(difference.site, tools.host), difference.moves
    target, packages = Path(site.prefix), difference.packages
    if site.versions != difference.site.versions:
        raise WorkFailed(
            _("{path} has changed since you were shown what would change.", path=target),
            hint=_("Look again at what would change."),
        )
    plan = plan_for(site, (), difference.index_url)
    installer = tools.installer(plan, site)
    check_target(target, site)
    check_disk(tools.host, target, sum(package.size or 0 for package in packages))
    made = Environment(path=str(target), python=site.python, packages=difference.after)
    leaving = [move.name for move in moves if move.before]
    old, others = set(installed_files(site, leaving)), _of_others(site, leaving)
    with transaction(target, stands=True) as work:
        if packages:
            unpack(packages, site, installer, work, plan, tools.host)
        else:
            work.layout.staged.mkdir()
        _guard(target, difference.after, work)
        installer.cancel.check()
        staged = work.layout.staged
        change = change_for(
            target, staged, (name for name in old if name not in others or _is(staged, name)), OWN_FILES
        )
        check_movable(target, (*change.goes, *change.comes))
        came = work.change(change)
        work.settle_ahead()
        prove(made, work.lock)
        work.settle(installer.cancel.check)
        work.commit()
        keep(work, came, moves, site.versions)
    return made, work.kept


def _guard(target: Path, after: Mapping[str, str], work: Transaction) -> None:
    """Write the new versions into the files that guard an environment of ours."""
    if guards(target)[0].is_file():
        protect(target, after, work.layout.staged)
    if marker := read_marker(target):
        before = marker.environment
        packages = {name: after[name] for name in before.packages if name in after}
        write_marker(work.layout.staged, marker.plan, replace(before, packages=packages))


def _is(folder: Path, name: str) -> bool:
    return os.path.lexists(f"{folder}/{name}")  # a Path for each of 20,000 files would cost seconds


def _of_others(site: Site, leaving: Iterable[str]) -> set[str]:
    """List the files of the packages that stay; a file that a leaving package lists as well is theirs, too."""
    staying = {canonicalize_name(one.name) for one in site.own} - set(leaving)
    found: set[str] = set()
    for name in staying:
        try:
            found.update(installed_files(site, [name]))
        except (BadInput, OSError):  # it does not list its files, or has some elsewhere: none of them is known
            continue
    return found
