"""What a change of packages would do to an existing environment, and how it is carried out in one transaction."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Callable, Iterable
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from assistant.catalog import carried_by_torch_index
from assistant.host.lock import Lock
from assistant.i18n import _
from assistant.install.conflicts import broken_requirements, undone_by_project
from assistant.install.constraints import protect
from assistant.install.contents import PIP
from assistant.install.environments import building
from assistant.install.in_place import Move, changing, guard, index_of, is_replaceable, plan_for, replace_packages
from assistant.install.inspect_env import Distribution, Site, current_site, is_private
from assistant.install.installation import build, download_size, put_in_place
from assistant.install.marker import Marker, read_marker, write_marker
from assistant.install.resolution import OnlySource, Package, Resolution, Unsolved, resolve
from assistant.install.sources import Tools, index_findings
from assistant.install.target import check_disk, check_target
from assistant.install.undo import settle_target
from assistant.install.uv import Uv
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.finding import Finding
from assistant.model.plan import Plan
from assistant.model.record import Record, replace
from assistant.model.report import Environment


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


def work_out(site: Site, request: Wanted, tools: Tools, *, all_else: bool = True) -> Difference:
    """Work out a change of an environment with as few moves as uv finds, and change nothing.

    What else is broken there is mended as well where possible; else, or without `all_else`, it stays as it is. Raises
    `BadInput` for an environment, or a package, that is not to be changed this way, and `WorkFailed` where no packages
    fit.
    """
    check_target(Path(site.prefix), site)
    try:
        return _worked_out(site, request, tools, whole=all_else)
    except (Unsolved, OnlySource) as failure:
        if not all_else or (isinstance(failure, Unsolved) and failure.unreachable):
            raise
        return _worked_out(site, request, tools, whole=False)


def _worked_out(site: Site, request: Wanted, tools: Tools, *, whole: bool) -> Difference:
    """Resolve what is wanted, with all else that an index can replace (`whole`) or alone.

    What stays as it is bounds the rest: packages of the user's own, conda's, and torch's family unless it is wanted.
    """
    versions, again = site.versions, set(request.again)
    gone: set[str] = {canonicalize_name(name) for name in request.removes}
    named: set[str] = {canonicalize_name(Requirement(line).name) for line in request.requires}
    foreign = [one for one in site.own if is_private(one) or one.installer == "conda"]
    unchangeable: set[str] = {canonicalize_name(one.name) for one in foreign}
    unchangeable -= again
    unchangeable |= {name for name in versions if carried_by_torch_index(name)} - named - again
    lines = [*request.requires, *(f"{name}=={versions[name]}" for name in again - named)]
    if whole:
        needs = (line for one in foreign if canonicalize_name(one.name) not in gone for line in one.requires)
        lines += [*needs, *sorted(versions.keys() - unchangeable - gone - named - again - {PIP})]
        lines += [f"{name}=={versions[name]}" for name in sorted(unchangeable) if carried_by_torch_index(name)]
    plan = replace(
        plan_for(site, tuple(dict.fromkeys(lines)), _index(site, request, lines, tools)),
        constraints=tuple(f"{name}=={versions[name]}" for name in sorted(unchangeable - gone - named)),
    )
    uv = dataclasses.replace(tools.uv(plan, site), also=())
    uv.progress(_("Resolving the packages"))
    keep = {name: versions[name] for name in versions if name not in gone}
    resolution = resolve(plan, uv, keep, tools.sources.locked) if lines else Resolution(lock="", packages=())
    _refuse_breaking(site, resolution, gone)
    difference = _difference(site, plan, resolution, gone, again, tools)
    _refuse_private(difference, named | again)
    return difference


def _refuse_breaking(site: Site, resolution: Resolution, gone: set[str]) -> None:
    """Raise `Unsolved` where a change would break what a package that stays requires, and it was not broken before."""
    before = {(one.package.name, one.need.name) for one in broken_requirements(site, {}, gone)}
    for one in broken_requirements(site, resolution.versions, gone):
        if (one.package.name, one.need.name) not in before:
            _refuse_conda([one.package], site)
            if is_private(one.package):
                raise _private([one.package.name])
            text = _("{package} requires {need}", package=one.package.name, need=one.need)
            raise Unsolved(
                _("No combination of packages fits: {reason}"),
                reason=str(text),
                hint=_("Set up a new environment instead."),
            )


def _index(site: Site, request: Wanted, lines: Iterable[str], tools: Tools) -> str | None:
    """Return the index of the build of torch that is there, where anything of its family is resolved."""
    if not any(carried_by_torch_index(canonicalize_name(Requirement(line).name)) for line in lines):
        return None
    return tools.sources.index_url or request.index_url or index_of(site)


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
    return Difference(
        site=site,
        moves=moves,
        after=after,
        packages=packages,
        download=download_size(packages),
        findings=(
            *(index_findings(plan, tools.sources) if packages else ()),
            *undone_by_project(Path(site.prefix), plan, after),
        ),
        index_url=plan.index_url,
    )


def _refuse_private(difference: Difference, wished: set[str]) -> None:
    """Raise `Unsolved` where something from an index would take the place of what came from somewhere else.

    The file of a package that the change itself is about is not meant: it may well have been downloaded by hand.
    """
    coming = {package.name for package in difference.packages}
    private = [one for one in difference.site.own if is_private(one) and canonicalize_name(one.name) in coming]
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


def carry_out(difference: Difference, prove: Callable[[Environment, Lock], None], tools: Tools) -> Environment:
    """Carry a change out; `prove` may refuse the result by raising. It can be undone afterwards.

    One of ours is built anew beside the old one; any other is changed where it is. It ends with all of the change, or
    with the environment as it was. Raises `BadInput`, `WorkFailed` or `Cancelled`.
    """
    settle_target(Path(difference.site.prefix), tools)
    site = current_site(difference.site, tools.host)
    target = Path(site.prefix)
    if site.versions != difference.site.versions:
        raise WorkFailed(
            _("{path} has changed since you were shown what would change.", path=target),
            hint=_("Look again at what would change."),
        )
    check_target(target, site)
    check_disk(tools.host, target, sum(package.size or 0 for package in difference.packages))
    uv = dataclasses.replace(tools.uv(plan_for(site, (), difference.index_url), site), also=())
    made = Environment(path=str(target), python=site.python, packages=difference.after)
    marker = read_marker(target)
    if marker and is_replaceable(site, tools.host):
        _build_anew(difference, site, marker, prove, tools, uv)
    else:
        _change(difference, site, made, prove, tools, uv)
    return made


def _build_anew(
    difference: Difference,
    site: Site,
    marker: Marker,
    prove: Callable[[Environment, Lock], None],
    tools: Tools,
    uv: Uv,
) -> None:
    pins = tuple(f"{name}=={version}" for name, version in difference.after.items() if name != PIP)
    plan = plan_for(site, pins, difference.index_url or index_of(site))
    packages = resolve(plan, uv, needs=False).packages
    target, before = Path(site.prefix), marker.environment
    versions = {name: difference.after[name] for name in before.packages if name in difference.after}
    environment = replace(before, packages=versions)
    with building(target) as work:
        build(plan, packages, site, tools.host, uv, work)
        protect(target, difference.after, work.folder)
        write_marker(work.folder, marker.plan, environment)
        put_in_place(marker.plan, environment, uv, prove, work)


def _change(
    difference: Difference,
    site: Site,
    made: Environment,
    prove: Callable[[Environment, Lock], None],
    tools: Tools,
    uv: Uv,
) -> None:
    removes = [move.name for move in difference.moves if not move.after]
    again = [move.name for move in difference.moves if move.before == move.after]
    with changing(site, None, difference.moves, tools.host, uv) as change:
        replace_packages(change, difference.packages, difference.index_url, removes=removes, again=again)
        uv.cancel.check()
        prove(made, change.lock)
        guard(Path(site.prefix), difference.after)
