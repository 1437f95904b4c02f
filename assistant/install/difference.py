"""What a change of packages would do to an existing environment, and how it is carried out in one transaction."""

from __future__ import annotations

import csv
import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from assistant.catalog import carried_by_torch_index, load_catalog
from assistant.host.lock import Lock
from assistant.i18n import _
from assistant.install.conflicts import Broken, broken_requirements, undone_by_project
from assistant.install.constraints import guards, protect
from assistant.install.inspect_env import Distribution, Site, installed_files, still
from assistant.install.installer import Installer
from assistant.install.resolution import OnlySource, Package, Resolution, Unsolved, resolve
from assistant.install.sources import Tools, index_findings
from assistant.install.swap import change_for, check_movable
from assistant.install.target import OWN_FILES, check_disk, check_target, read_marker, write_marker
from assistant.install.transaction import Transaction, transaction
from assistant.install.undo import Move, keep
from assistant.install.wheels import to_download, unpack
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.finding import Finding
from assistant.model.plan import Backend, Plan
from assistant.model.record import Record, replace
from assistant.model.report import Environment
from assistant.model.requirement import name_of

ROUNDS = 6  # chosen: each mends what the one before broke; real environments need one or two


class Wanted(Record, frozen=True):
    """A change that is wanted: requirements to meet, packages to remove, packages to install again.

    What comes again keeps its version, unless a requirement names it, too. `index_url` is where torch and its family
    come from, None for the default index.
    """

    requires: tuple[str, ...] = ()
    removes: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    index_url: str | None = None


class Difference(Record, frozen=True):
    """What a change would do: which packages move, which files are fetched for it (`download` bytes), what to know.

    `site` is the environment as it was then, `after` the versions that it will hold.
    """

    site: Site
    moves: tuple[Move, ...] = ()
    after: dict[str, str] = {}
    packages: tuple[Package, ...] = ()
    download: int = 0
    findings: tuple[Finding, ...] = ()
    index_url: str | None = None


def work_out(site: Site, wanted: Wanted, tools: Tools, *, all_else: bool = True) -> Difference:
    """Work out a change of an environment with as few moves as possible, and change nothing.

    What else is broken there is mended as well where possible, first by moving what is required, then by updating
    what requires it; else, or without `all_else`, it stays as it is. Raises `BadInput` for an environment, or a
    package, that is not to be changed this way, and `WorkFailed` where no packages fit.
    """
    check_target(Path(site.prefix), site)
    failure: WorkFailed | None = None
    for mend in (_move_needed, _update_needing, _leave) if all_else else (_leave,):
        try:
            return _worked_out(site, wanted, tools, mend)
        except (Unsolved, OnlySource) as error:
            failure = failure or error
            if isinstance(error, Unsolved) and error.unreachable:
                break
    raise failure or WorkFailed(_("No combination of packages fits."))


Mend = Callable[[Site, Broken, bool], str]  # returns a requirement that would mend it, "" for none


def _move_needed(site: Site, broken: Broken, _old: bool) -> str:  # noqa: FBT001 - see `Mend`
    """Move what is required, unless that is torch or one of its family, for which all else should fit."""
    if carried_by_torch_index(canonicalize_name(broken.need.name)):
        return _update_needing(site, broken, _old)
    return f"{broken.need.name}{broken.need.specifier}"


def _update_needing(_site: Site, broken: Broken, old: bool) -> str:  # noqa: FBT001 - see `Mend`
    if not _is_private(broken.package):
        return broken.package.name
    if old:
        return ""
    raise _private([broken.package.name])


def _leave(site: Site, broken: Broken, old: bool) -> str:  # noqa: FBT001 - see `Mend`
    """Leave alone what was broken before."""
    return "" if old else _move_needed(site, broken, old)


def _worked_out(site: Site, wanted: Wanted, tools: Tools, mend: Mend) -> Difference:
    versions, again = site.versions, set(wanted.again)
    gone: set[str] = {canonicalize_name(name) for name in wanted.removes}
    before = {(one.package.name, one.need.name) for one in broken_requirements(site, {}, gone)}
    wished: set[str] = {canonicalize_name(Requirement(line).name) for line in wanted.requires} | again
    lines = dict.fromkeys(wanted.requires)
    lines |= {
        f"{name}=={versions[name]}": None for name in wanted.again if not any(name_of(line) == name for line in lines)
    }
    installer = tools.installer(plan_for(site, (), None), site)
    installer = dataclasses.replace(installer, also=())
    installer.progress(_("Resolving the packages"))
    for _round in range(ROUNDS):
        plan = plan_for(site, tuple(lines), _index(site, wanted, lines, tools))
        resolution = _resolved(plan, installer, {name: versions[name] for name in versions if name not in gone}, tools)
        coming = resolution.versions
        broken = list(broken_requirements(site, coming, gone))
        more = [mend(site, one, (one.package.name, one.need.name) in before) for one in broken]
        more += [f"{name}=={versions[name]}" for name in _displaced(site, coming, wished | gone)]
        if not (new := [line for line in more if line and line not in lines]):
            difference = _difference(site, plan, resolution, gone, again, tools)
            _refuse_private(difference, wished)
            return difference
        lines |= dict.fromkeys(new)
    raise Unsolved(_("No combination of packages fits."), hint=_("Set up a new environment instead."))


def plan_for(site: Site, requirements: tuple[str, ...], index_url: str | None) -> Plan:
    """Put requirements into the form that is resolved; the plan's other fields mean nothing here."""
    return Plan(
        backend=Backend.CPU, variant="", torch="", python=site.minor, index_url=index_url, requirements=requirements
    )


def _resolved(plan: Plan, installer: Installer, keep: Mapping[str, str], tools: Tools) -> Resolution:
    if not plan.requirements:
        return Resolution(lock="", packages=())
    return resolve(plan, installer, keep, tools.sources.locked)


def _displaced(site: Site, coming: Mapping[str, str], wished: set[str]) -> Iterator[str]:
    """Name the packages of torch's family that would change their build unasked."""
    for name, version in site.versions.items():
        if carried_by_torch_index(name) and name not in wished and coming.get(name, version) != version:
            yield name


def _index(site: Site, wanted: Wanted, lines: Iterable[str], tools: Tools) -> str | None:
    """Return the index of the build of torch that is there, where anything of its family is resolved."""
    if not any(carried_by_torch_index(canonicalize_name(Requirement(line).name)) for line in lines):
        return None
    marker = read_marker(Path(site.prefix))
    build = site.versions.get("torch", "").partition("+")[2]  # 2.13.0+cpu is on the index of "cpu"
    own = marker.plan.index_url if marker else load_catalog().index_url(build) if build else None
    return tools.sources.index_url or wanted.index_url or own


def _difference(
    site: Site, plan: Plan, resolution: Resolution, gone: set[str], again: set[str], tools: Tools
) -> Difference:
    """Compare what is there with what was resolved."""
    versions = site.versions
    packages = tuple(resolution.changes({name: versions[name] for name in versions if name not in again}))
    coming = {package.name: package.version for package in packages}
    after = {name: version for name, version in versions.items() if name not in gone} | coming
    names = sorted({*coming, *(gone & versions.keys())})
    moves = tuple(Move(name=name, before=versions.get(name, ""), after=after.get(name, "")) for name in names)
    _refuse_conda([one for one in site.own if canonicalize_name(one.name) in names], site)
    only = replace(resolution, packages=packages)
    return Difference(
        site=site,
        moves=moves,
        after=after,
        packages=packages,
        download=sum(package.size or 0 for package in to_download(packages)),
        findings=(
            *(index_findings(plan, only, tools.sources) if packages else ()),
            *undone_by_project(Path(site.prefix), plan, after),
        ),
        index_url=plan.index_url,
    )


def _is_private(one: Distribution) -> bool:
    """Return whether an index need not know a package, and may hold another one of its name; conda's are conda's."""
    known = one.origin == "archive_info" and carried_by_torch_index(canonicalize_name(one.name))
    return one.origin != "" and one.installer != "conda" and not known


def _refuse_private(difference: Difference, wished: set[str]) -> None:
    """Raise `Unsolved` where something from an index would take the place of what came from somewhere else.

    The file of a package that the change itself is about is not meant: it may well have been downloaded by hand.
    """
    coming = {package.name for package in difference.packages}
    private = [one for one in difference.site.own if _is_private(one) and canonicalize_name(one.name) in coming]
    free = {one.name for one in private if one.origin == "archive_info" and canonicalize_name(one.name) in wished}
    if names := [one.name for one in private if one.name not in free]:
        raise _private(names)


def _private(names: Iterable[str]) -> Unsolved:
    return Unsolved(
        _(
            "{names}: installed from a folder, a repository or a file, "
            "which a package of the same name from an index would replace.",
            names=", ".join(names),
        ),
        hint=_("Update it from there, or set up a new environment."),
    )


def _refuse_conda(moving: Iterable[Distribution], site: Site) -> None:
    """Raise `BadInput` where conda installed what would move: conda would not know of it, and undo it some day."""
    if owned := [one.name for one in moving if one.installer == "conda"]:
        raise BadInput(
            _("conda installed {names}, so conda has to change them.", names=", ".join(owned)),
            hint=_("Use `conda install --prefix {path}`, or set up a new environment.", path=site.prefix),
        )


def version_in_place(site: Site, name: str) -> str:
    """Return which of several installed versions of a package the files are mostly of, by their sizes in its RECORD."""
    found = [one for one in site.own if canonicalize_name(one.name) == name]
    return max(found, key=lambda one: (_share_in_place(one), _number(one.version))).version


# torch/version.py,sha256=pYk0m2qGqv…,270
def _share_in_place(one: Distribution) -> float:
    try:
        rows = list(csv.reader(Path(one.record).read_text(encoding="utf-8").splitlines()))
    except OSError:
        return 0.0
    sized = [(Path(one.place, row[0]), row[2]) for row in rows if len(row) > 2 and row[2].isdecimal()]  # noqa: PLR2004
    there = sum(path.is_file() and path.stat().st_size == int(size) for path, size in sized)
    return there / len(sized) if sized else 0.0


def _number(text: str) -> Version:
    try:
        return Version(text)
    except InvalidVersion:
        return Version("0")


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
        # A Path for each of 20,000 files would cost seconds.
        there = (name for name in old if name not in others or os.path.lexists(f"{staged}/{name}"))
        change = change_for(target, staged, there, OWN_FILES)
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
