"""What a change of packages would do to an existing environment, and how it is carried out in one transaction."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assistant.catalog import carried_by_torch_index
from assistant.host.lock import Lock
from assistant.i18n import _
from assistant.install.conflicts import broken_requirements, undone_by_project
from assistant.install.constraints import write_guards
from assistant.install.contents import PIP
from assistant.install.environments import building
from assistant.install.in_place import (
    Move,
    changing,
    is_replaceable,
    plan_of_lines,
    replace_packages,
    torch_index_of,
    update_guards,
)
from assistant.install.installation import build_environment, bytes_to_download, verify_and_place
from assistant.install.recovery import settle_target
from assistant.install.resolution import Package, Resolution, Unsolved, resolve
from assistant.install.site import Distribution, Marker, Site, read_marker, write_marker
from assistant.install.sources import Tools, index_findings
from assistant.install.target import check_disk, check_target
from assistant.install.uv import Uv
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.finding import Finding
from assistant.model.plan import Plan
from assistant.model.record import Record, replace
from assistant.model.report import Environment


class ChangeRequest(Record, frozen=True):
    """A requested change of an environment: requirements to meet, packages to remove, packages to install again.

    What comes `again` keeps its version, unless a requirement gives it another. `index_url` is where torch and its
    family come from, None for the default index.
    """

    requires: tuple[str, ...] = ()
    removes: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    index_url: str | None = None

    def work_out(self, site: Site, tools: Tools, *, all_else: bool = True) -> Difference:
        """Return what the change would do to an environment, with as few moves as uv finds; change nothing.

        With `all_else`, other broken packages are mended as well if that is possible. Raises `BadInput` for an
        environment, or a package, that is not to be changed this way, and `WorkFailed` if no packages fit.
        """
        check_target(Path(site.prefix), site)
        try:
            return _work_out(site, self, tools, whole=all_else)
        except Unsolved as failure:
            if not all_else or failure.unreachable:
                raise
            return _work_out(site, self, tools, whole=False)


class Difference(Record, frozen=True):
    """What a change would do: which packages move, what is downloaded (bytes), what the user should know first.

    `site` is the environment as it was then, `after` the versions that it will hold.
    """

    site: Site
    moves: tuple[Move, ...] = ()
    after: dict[str, str] = {}
    packages: tuple[Package, ...] = ()
    download: int = 0
    findings: tuple[Finding, ...] = ()
    index_url: str | None = None

    @property
    def site_after(self) -> Site:
        """The environment as the change would leave it; of a version that comes nothing is known but its name."""
        before, moving = self.site, {move.name: move for move in self.moves}
        requires = {(package.canonical_name, package.version): package.requires for package in before.own}
        stays = [package for package in before.distributions if package.canonical_name not in moving]
        comes = [
            Distribution(
                name=name, version=move.after, place=before.purelib, requires=requires.get((name, move.after), ())
            )
            for name, move in moving.items()
            if move.after
        ]
        return replace(before, distributions=(*stays, *comes))

    def make(self, prove: Callable[[Environment, Lock], None], tools: Tools) -> Environment:
        """Carry a change out and return the environment; `prove` may refuse the result by raising. It can be undone.

        One of ours is built anew beside the old one; any other is changed in place. It ends with all of the change, or
        with the environment as it was. Raises `BadInput`, `WorkFailed` or `Cancelled`.
        """
        settle_target(Path(self.site.prefix), tools)
        site = self.site.ask_again(tools.host)
        target = Path(site.prefix)
        if site.versions != self.site.versions:
            raise WorkFailed(
                _("{path} has changed since you were shown what would change.", path=target),
                hint=_("Look again at what would change."),
            )
        check_target(target, site)
        check_disk(tools.host, target, sum(package.size or 0 for package in self.packages))
        uv = dataclasses.replace(tools.uv(plan_of_lines(site, (), self.index_url), site), also=())
        environment = Environment(path=str(target), python=site.python, packages=self.after)
        marker = read_marker(target)
        if marker and is_replaceable(site, tools.host):
            _build_anew(self, site, marker, prove, tools, uv)
        else:
            _change_in_place(self, site, environment, prove, tools, uv)
        return environment


def _work_out(site: Site, request: ChangeRequest, tools: Tools, *, whole: bool) -> Difference:
    """Return what a change would do, resolved with all else that an index can replace (`whole`), or alone.

    Packages from folders, repositories and files, conda's, and torch's family unless the change is about it, keep their
    versions, and bound the others. Raises as `ChangeRequest.work_out` does.
    """
    versions, again = site.versions, set(request.again)
    removed: set[str] = {canonicalize_name(name) for name in request.removes}
    in_request: set[str] = {canonicalize_name(Requirement(line).name) for line in request.requires}
    foreign = [package for package in site.own if package.is_private or package.installer == "conda"]
    unchangeable: set[str] = {package.canonical_name for package in foreign}
    unchangeable -= again
    unchangeable |= {name for name in versions if carried_by_torch_index(name)} - in_request - again
    lines = [*request.requires, *(f"{name}=={versions[name]}" for name in again - in_request)]
    if whole:
        foreign_requirements = (
            line for package in foreign if package.canonical_name not in removed for line in package.requires
        )
        lines += [*foreign_requirements, *sorted(versions.keys() - unchangeable - removed - in_request - again - {PIP})]
        lines += [f"{name}=={versions[name]}" for name in sorted(unchangeable) if carried_by_torch_index(name)]
    plan = replace(
        plan_of_lines(site, tuple(dict.fromkeys(lines)), _index_for(site, request, lines, tools)),
        constraints=tuple(f"{name}=={versions[name]}" for name in sorted(unchangeable - removed - in_request)),
    )
    uv = dataclasses.replace(tools.uv(plan, site), also=())
    uv.progress(_("Resolving the packages"))
    keep = {name: versions[name] for name in versions if name not in removed}
    resolution = resolve(plan, uv, keep, tools.sources.locked) if lines else Resolution(lock="", packages=())
    _refuse_breaking(site, resolution, removed)
    difference = _compare(site, plan, resolution, removed, again, tools)
    _refuse_private(difference, in_request | again)
    return difference


def _refuse_breaking(site: Site, resolution: Resolution, removed: set[str]) -> None:
    """Raise `Unsolved` or `BadInput` if a resolution breaks a requirement, met until now, of a package that stays."""
    before = {(broken.package.name, broken.requirement.name) for broken in broken_requirements(site, {}, removed)}
    for broken in broken_requirements(site, resolution.versions, removed):
        if (broken.package.name, broken.requirement.name) not in before:
            _refuse_conda([broken.package], site)
            if broken.package.is_private:
                raise _private_error([broken.package.name])
            text = _("{package} requires {need}", package=broken.package.name, need=broken.requirement)
            raise Unsolved(
                _("No combination of packages fits: {reason}"),
                reason=str(text),
                hint=_("Set up a new environment instead."),
            )


def _index_for(site: Site, request: ChangeRequest, lines: Iterable[str], tools: Tools) -> str | None:
    """Return the index for torch: of the options, the change or what is installed; None if no line is of its family."""
    if not any(carried_by_torch_index(canonicalize_name(Requirement(line).name)) for line in lines):
        return None
    return tools.sources.index_url or request.index_url or torch_index_of(site)


def _compare(
    site: Site, plan: Plan, resolution: Resolution, removed: set[str], again: set[str], tools: Tools
) -> Difference:
    """Return what a resolution changes in an environment; raise `BadInput` if conda owns any of it."""
    versions = site.versions
    packages = tuple(resolution.changes({name: versions[name] for name in versions if name not in again}))
    new_versions = {package.name: package.version for package in packages}
    after = {name: version for name, version in versions.items() if name not in removed} | new_versions
    names = sorted({*new_versions, *(removed & versions.keys())})
    moves = tuple(Move(name=name, before=versions.get(name, ""), after=after.get(name, "")) for name in names)
    _refuse_conda([package for package in site.own if package.canonical_name in names], site)
    return Difference(
        site=site,
        moves=moves,
        after=after,
        packages=packages,
        download=bytes_to_download(packages),
        findings=(
            *(index_findings(plan, tools.sources) if packages else ()),
            *undone_by_project(Path(site.prefix), plan, after),
        ),
        index_url=plan.index_url,
    )


def _refuse_private(difference: Difference, wished: set[str]) -> None:
    """Raise `Unsolved` if an index's package would replace one from a folder, a repository or a file.

    One from a file is replaced if its name is in `wished`: it may well have been downloaded by hand.
    """
    new_versions = {package.name for package in difference.packages}
    private = [
        package for package in difference.site.own if package.is_private and package.canonical_name in new_versions
    ]
    replaceable = {
        package.name for package in private if package.origin == "archive_info" and package.canonical_name in wished
    }
    if names := [package.name for package in private if package.name not in replaceable]:
        raise _private_error(names)


def _private_error(names: Iterable[str]) -> Unsolved:
    """Return the error for packages from a folder, a repository or a file, which an index must not replace."""
    return Unsolved(
        _(
            "{names}: installed from a folder, a repository or a file, "
            "which a package of the same name from an index would replace.",
            names=", ".join(names),
        ),
        hint=_("Update it from there, or set up a new environment."),
    )


def _refuse_conda(moving: Iterable[Distribution], site: Site) -> None:
    """Raise `BadInput` if conda installed any of the distributions: conda would not know of the change, and undo it."""
    if names := [package.name for package in moving if package.installer == "conda"]:
        raise BadInput(
            _("conda installed {names}, so conda has to change them.", names=", ".join(names)),
            hint=_("Use `conda install --prefix {path}`, or set up a new environment.", path=site.prefix),
        )


def _build_anew(
    difference: Difference,
    site: Site,
    marker: Marker,
    prove: Callable[[Environment, Lock], None],
    tools: Tools,
    uv: Uv,
) -> None:
    """Build an environment of ours anew with the changed versions, verify it, and put it in place of the old one."""
    pins = tuple(f"{name}=={version}" for name, version in difference.after.items() if name != PIP)
    plan = plan_of_lines(site, pins, difference.index_url or torch_index_of(site))
    packages = resolve(plan, uv, dependencies=False).packages
    target, before = Path(site.prefix), marker.environment
    versions = {name: difference.after[name] for name in before.packages if name in difference.after}
    environment = replace(before, packages=versions)
    with building(target) as work:
        build_environment(plan, packages, site, tools.host, uv, work)
        write_guards(target, difference.after, work.folder)
        write_marker(work.folder, marker.plan, environment)
        verify_and_place(marker.plan, environment, uv, prove, work)


def _change_in_place(
    difference: Difference,
    site: Site,
    environment: Environment,
    prove: Callable[[Environment, Lock], None],
    tools: Tools,
    uv: Uv,
) -> None:
    """Install and remove packages in an environment in place; restore the old ones if `prove` or the change fails."""
    removes = [move.name for move in difference.moves if not move.after]
    again = [move.name for move in difference.moves if move.before == move.after]
    with changing(site, None, difference.moves, tools.host, uv) as change:
        replace_packages(change, difference.packages, difference.index_url, removes=removes, again=again)
        uv.cancel.check()
        prove(environment, change.lock)
        update_guards(Path(site.prefix), difference.after)
