"""What a change of packages would do to an existing environment, and how it is carried out in one transaction."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assistant.catalog import carried_by_torch_index
from assistant.host.lock import Lock
from assistant.i18n import _
from assistant.install.conflicts import broken_requirements, undone_by_project
from assistant.install.contents import PIP
from assistant.install.in_place import (
    Move,
    change_in_place,
    is_replaceable,
    plan_of_lines,
    resolve_versions,
    torch_index_of,
)
from assistant.install.installation import build_anew, bytes_to_download
from assistant.install.recovery import settle_target
from assistant.install.resolution import Package, Resolution, Unsolved, resolve
from assistant.install.site import Distribution, Site, read_marker
from assistant.install.sources import Tools, index_findings
from assistant.install.target import check_disk, check_target
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.finding import Finding
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
        before, moving = self.site, {move.name: move.after for move in self.moves}
        requires = {(package.canonical_name, package.version): package.requires for package in before.own}
        stays = [package for package in before.distributions if package.canonical_name not in moving]
        comes = [
            Distribution(name, version, requires.get((name, version), ()), place=before.purelib)
            for name, version in moving.items()
            if version
        ]
        return replace(before, distributions=(*stays, *comes))

    def make(self, prove: Callable[[Environment, Lock], None], tools: Tools) -> Environment:
        """Carry the change out and return the environment; `prove` may refuse the result by raising. It can be undone.

        One of ours is built anew beside the old one; any other is changed in place. It ends with all of the change, or
        with the environment as it was. Raises `BadInput`, `WorkFailed` or `Cancelled`.
        """
        target, host = Path(self.site.prefix), tools.host
        settle_target(target, tools)
        site = self.site.ask_again(host)
        if site.versions != self.site.versions:
            raise WorkFailed(
                _("{path} has changed since you were shown what would change.", path=target),
                hint=_("Look again at what would change."),
            )
        check_target(target, site)
        check_disk(host, target, sum(package.size or 0 for package in self.packages))
        uv = dataclasses.replace(tools.uv_of(site.python), also=())
        environment = Environment(path=str(target), python=site.python, packages=self.after)
        marker = read_marker(target)
        if marker and is_replaceable(site, host):
            index_url = self.index_url or torch_index_of(site)
            versions = {name: version for name, version in self.after.items() if name != PIP}
            packages = resolve_versions(site, versions, index_url, uv)
            before = marker.environment
            made = replace(before, packages={name: self.after[name] for name in before.packages if name in self.after})
            build_anew(marker.plan, packages, index_url, made, site, host, uv, prove, self.after)
        else:
            change_in_place(site, self.moves, self.packages, self.index_url, environment, host, uv, prove)
        return environment


def _work_out(site: Site, request: ChangeRequest, tools: Tools, *, whole: bool) -> Difference:
    """Return what a change would do, resolved with all else that an index can replace (`whole`), or alone.

    Packages from folders, repositories and files, conda's, and torch's family unless the change is about it, keep their
    versions, and bound the others. Raises as `ChangeRequest.work_out` does.
    """
    versions, again = site.versions, set(request.again)
    removed: set[str] = {canonicalize_name(name) for name in request.removes}
    requested: set[str] = {canonicalize_name(Requirement(line).name) for line in request.requires}
    foreign = {package.canonical_name: package for package in site.own if package.is_private or package.is_condas}
    family = {name for name in versions if carried_by_torch_index(name)}
    unchangeable = (foreign.keys() - again) | (family - requested - again)
    lines = [*request.requires, *(f"{name}=={versions[name]}" for name in again - requested)]
    if whole:
        lines += [line for name, package in foreign.items() if name not in removed for line in package.requires]
        lines += sorted(versions.keys() - unchangeable - removed - requested - again - {PIP})
        lines += [f"{name}=={versions[name]}" for name in sorted(unchangeable & family)]
    is_torchs = any(carried_by_torch_index(canonicalize_name(Requirement(line).name)) for line in lines)
    index_url = tools.sources.index_url or request.index_url or torch_index_of(site) if is_torchs else None
    plan = replace(
        plan_of_lines(site, tuple(dict.fromkeys(lines)), index_url),
        constraints=tuple(f"{name}=={versions[name]}" for name in sorted(unchangeable - removed - requested)),
    )
    uv = dataclasses.replace(tools.uv_of(site.python), also=())
    uv.progress(_("Resolving the packages"))
    keep = {name: version for name, version in versions.items() if name not in removed}
    resolution = resolve(plan, uv, keep, tools.sources.locked) if lines else Resolution(lock="", packages=())
    packages = tuple(resolution.changes({name: versions[name] for name in versions if name not in again}))
    comes = {package.name: package.version for package in packages}
    _refuse_unfit(site, resolution, removed, comes, requested | again)
    after = keep | comes
    names = sorted({*comes, *(removed & versions.keys())})
    return Difference(
        site=site,
        moves=tuple(Move(name=name, before=versions.get(name, ""), after=after.get(name, "")) for name in names),
        after=after,
        packages=packages,
        download=bytes_to_download(packages),
        findings=(
            *(index_findings(plan, tools.sources) if packages else ()),
            *undone_by_project(Path(site.prefix), plan, after),
        ),
        index_url=index_url,
    )


def _refuse_unfit(
    site: Site, resolution: Resolution, removed: Collection[str], comes: Collection[str], requested: Collection[str]
) -> None:
    """Raise if a change breaks a package that stays, or replaces one that is not to be replaced.

    A requirement that is not met now does not count. A package of conda's is conda's to change (`BadInput`): it would
    not know of the change, and undo it. One from a folder, a repository or a file must not be replaced from an index
    (`Unsolved`); from a file it is if it was `requested`, as it may well have been downloaded by hand.
    """
    before = {(broken.package.name, broken.requirement.name) for broken in broken_requirements(site, {}, removed)}
    broken = [
        one
        for one in broken_requirements(site, resolution.versions, removed)
        if (one.package.name, one.requirement.name) not in before
    ]
    moving = [package for package in site.own if package.canonical_name in {*comes, *removed}]
    replaced = [
        package
        for package in moving
        if package.canonical_name in comes
        and not (package.origin == "archive_info" and package.canonical_name in requested)
    ]
    stays = [one.package for one in broken]
    if condas := _names(package for package in (*stays, *moving) if package.is_condas):
        raise BadInput(
            _("conda installed {names}, so conda has to change them.", names=condas),
            hint=_("Use `conda install --prefix {path}`, or set up a new environment.", path=site.prefix),
        )
    if private := _names(package for package in (*stays, *replaced) if package.is_private):
        raise Unsolved(
            _(
                "{names}: installed from a folder, a repository or a file, "
                "which a package of the same name from an index would replace.",
                names=private,
            ),
            hint=_("Update it from there, or set up a new environment."),
        )
    if broken:
        text = _("{package} requires {need}", package=broken[0].package.name, need=broken[0].requirement)
        raise Unsolved(
            _("No combination of packages fits: {reason}"),
            reason=str(text),
            hint=_("Set up a new environment instead."),
        )


def _names(packages: Iterable[Distribution]) -> str:
    """Return the names of packages in one text, each once."""
    return ", ".join(dict.fromkeys(package.name for package in packages))
