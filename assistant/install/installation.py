"""The install step: `prepare` computes what an installation would do, `Prepared.install` does it, or changes nothing.

`ChangeRequest.resolve_change` and `Difference.apply` do the same for packages of an existing environment. A new one,
or one that the assistant made, is built beside its target, verified there and then renamed. An environment that the
assistant did not make is changed in place: see `in_place`. What a killed run left is finished or rolled back.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from enum import StrEnum
from functools import partial
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assistant.catalog import carried_by_torch_index
from assistant.host.base import Host
from assistant.host.files import discard_folder, make_private_folder, user_state, write_temporary
from assistant.host.process import Background
from assistant.i18n import Text, _, ngettext
from assistant.install.conflicts import find_broken_requirements, find_conflicts
from assistant.install.contents import (
    PIP,
    files_on_disk,
    find_incomplete,
    find_pip,
    install_and_check,
    link_own_files,
    list_missing_large,
    wheel_path,
)
from assistant.install.environments import (
    Places,
    build_beside,
    check_disk,
    check_lengths,
    check_target,
    find_plan_target,
    onedrive_findings,
    resolve_target,
    settle_journal,
    target_or_default,
)
from assistant.install.guards import constraints_uri, guard_files, write_guards, write_variables
from assistant.install.in_place import (
    Built,
    Move,
    change_in_place,
    find_torch_index,
    in_place_notice,
    is_replaceable,
    moves_between,
    plan_for_resolving,
    resolve_versions,
    restore_packages,
)
from assistant.install.journal import Entry, delete_stale_folders, entry_for, list_entries, locked, temporary_folder
from assistant.install.kernel import (
    choose_kernel_name,
    choose_launcher_name,
    kernel_file,
    record_kernel,
    register_kernel,
)
from assistant.install.projects import project_undo_findings
from assistant.install.site import Distribution, Site, interpreter, read_marker, write_marker
from assistant.install.sources import Tools
from assistant.install.uv import LOCK, Package, Resolution, Unsolved, Uv, resolve, write_lock
from assistant.model.errors import AssistantError, BadInput, WorkFailed
from assistant.model.finding import Finding, Severity
from assistant.model.plan import Plan
from assistant.model.record import Record, replace
from assistant.model.report import Environment, Part


class Outcome(StrEnum):
    """What became of an interrupted installation."""

    TAKEN_BACK = "taken-back"
    REMOVED = "removed"  # the environment was being removed
    FAILED = "failed"  # `error` says why; nothing was removed


class Recovered(Record, frozen=True):
    """The outcome for one target; `beside` is where its environment is now if something else is at its place."""

    target: str
    outcome: Outcome
    beside: str = ""
    error: Text = ""
    hint: Text = ""

    @property
    def is_removed(self) -> bool:
        """Whether the environment is gone, as its interrupted removal intended."""
        return self.outcome is Outcome.REMOVED


def recover(tools: Tools, only: Path | None = None) -> tuple[Recovered, ...]:
    """Finish or roll back what killed installations left, at one target (`only`) or at all; return an outcome for each.

    A failure is an outcome and not raised. Temporary folders of killed processes are deleted, too.
    """
    with suppress(OSError):
        make_private_folder(user_state())
    delete_stale_folders()
    outcomes = []
    for entry in [entry_for(only)] if only else list_entries():
        target = str(only or entry.journal)
        try:
            journal = entry.read()
            target = journal.target if journal else target
            outcomes.append(_settle_entry(entry, tools))
        except AssistantError as error:
            outcomes.append(Recovered(target=target, outcome=Outcome.FAILED, error=error.message, hint=error.hint))
        except OSError as error:
            reason = f"{target}: {error.strerror or error}."
            outcomes.append(Recovered(target=target, outcome=Outcome.FAILED, error=reason))
    return tuple(filter(None, outcomes))


def settle_target(target: Path, tools: Tools) -> None:
    """Finish or roll back what a killed installation or change left in a target; do nothing if none did.

    `target` is a folder, or the Python of an environment. Raises `WorkFailed` or `BadInput` if another process is
    installing there right now, or it cannot be done.
    """
    parents = target.parents[:2] if target.name.startswith("python") else ()
    for place in (target, *parents):
        if os.path.lexists(entry_for(place).journal):
            _settle_entry(entry_for(place), tools)


def _settle_entry(entry: Entry, tools: Tools) -> Recovered | None:
    """Take an entry's lock and finish or roll back what its journal records; return the outcome, None for none.

    Raises `WorkFailed` or `BadInput` if it cannot be done, or another process holds the lock.
    """
    journal = entry.read()
    with locked(Path(journal.target) if journal else entry.journal, entry) as (_entry, lock):
        journal = entry.read()  # whoever held the lock may have settled it
        if journal is None:
            return None
        beside = ""
        if journal.before:
            with temporary_folder() as (folder, _lock):
                uv = tools.uv_of(journal.before.python).in_folder(folder, lock)
                if not restore_packages(entry, journal, tools.host, uv):
                    return None
        else:
            beside = str(settle_journal(entry, journal) or "")
        is_removed = journal.kind == "remove" and not os.path.lexists(journal.target)
        outcome = Outcome.REMOVED if is_removed else Outcome.TAKEN_BACK
        return Recovered(target=journal.target, outcome=outcome, beside=beside)


class Prepared(Record, frozen=True):
    """What an installation would do; `ready` is an environment at the target that already holds what the plan needs.

    `site` is the existing environment there, as it was when this was computed. `writes` are the files and folders that
    it writes, `download` the bytes that it downloads, as far as known, `findings` what the user should know first, and
    of them `by_project` what a project would undo. `card` is the name of the GPU for the launcher.
    """

    plan: Plan
    target: str
    resolution: Resolution
    commands: tuple[tuple[str, ...], ...] = ()
    writes: tuple[str, ...] = ()
    download: int = 0
    findings: tuple[Finding, ...] = ()
    by_project: tuple[Finding, ...] = ()
    ready: Environment | None = None
    site: Site | None = None
    card: str = ""

    @contextmanager
    def install(self, tools: Tools) -> Iterator[Built]:
        """Install what was prepared, let a block verify it, then put it in place and register its kernel.

        If the block raises, all changes are rolled back. If the environment is `ready`, there is nothing to verify.
        What a killed installation left there is finished or rolled back first. An existing environment that
        `is_replaceable` is built anew and replaced; any other is changed in place. Raises `BadInput` or `WorkFailed`
        before any change if the target cannot be used or its disk is too full; and `WorkFailed`, `Cancelled` or what
        the block raises after all changes were rolled back.
        """
        target, host, plan = Path(self.target), tools.host, self.plan
        settle_target(target, tools)
        if self.ready:
            yield Built(self.ready, self.ready)
            return
        site = self.site.ask_again(host) if self.site else None
        check_target(target, site)
        present = site.versions if site else {}
        changes = self.resolution.changes(present)  # the rest is shared by hard links
        check_disk(host, target, sum(package.size or 0 for package in changes))
        python, uv = Path(site.python) if site else interpreter(target), tools.uv(plan, site)
        environment = Environment(
            path=str(target),
            python=str(python),
            kernel=choose_kernel_name(plan, python),
            packages=self.resolution.versions,
            display_name=choose_launcher_name(plan, python, target.name, self.card),
        )
        if site and not is_replaceable(site, host):
            moves = moves_between(present, {**present, **self.resolution.versions})
            work = change_in_place(site, moves, changes, plan.index_url, environment, host, uv, plan)
        else:
            work = build_anew(plan, self.resolution.packages, plan.index_url, environment, site, host, uv)
        with work as built:
            yield built


def prepare(plan: Plan, where: str, tools: Tools, card: str = "") -> Prepared:
    """Return what installing a plan at a target would do, and change nothing; findings are sent as events, too.

    `where` is "" or "new" (a folder named after the plan), "kernel" (this Python's environment), or a path. `card` is
    the name of the plan's GPU. A killed installation there is finished or rolled back first; temporary folders of
    killed processes are deleted in the background. Raises `BadInput` or `WorkFailed` for a target that cannot be used
    and for packages that are not available.
    """
    Background(delete_stale_folders)
    settle_target(resolve_target(target_or_default(plan, where), tools.host), tools)
    target, site = find_plan_target(plan, where, tools.host)
    check_target(target, site)
    uv = tools.uv(plan, site)
    uv.progress(_("Resolving the packages"))
    changing = None if site is None or is_replaceable(site, tools.host) else site
    resolution, left_out = _resolve_with_added(plan, site, uv, tools, replaces=changing is None)
    by_project = project_undo_findings(target, plan, resolution.versions)
    if ready := find_reusable(target, site, resolution):
        return Prepared(plan=plan, target=str(target), resolution=resolution, by_project=by_project, ready=ready)
    findings = (
        *tools.sources.index_findings(plan),
        *left_out,
        *((in_place_notice(target), *find_conflicts(changing, resolution.versions)) if changing else ()),
        *by_project,
        *onedrive_findings(target),
    )
    for finding in findings:
        uv.report(finding)
    packages = resolution.changes(changing.versions) if changing else list(resolution.packages)
    python = Path(site.python) if site else interpreter(target)
    inside = [f"{site.purelib}{os.sep}", *map(str, guard_files(target))] if site else [f"{target}{os.sep}"]
    downloads = [str(wheel_path(package)) for package in list_missing_large(packages)]
    return Prepared(
        plan=plan,
        target=str(target),
        resolution=resolution,
        commands=list_commands(uv, target, changing),
        writes=(*downloads, *inside, str(kernel_file(choose_kernel_name(plan, python)))),
        download=missing_bytes(packages),
        findings=findings,
        by_project=by_project,
        site=site,
        card=card,
    )


def _resolve_with_added(
    plan: Plan, site: Site | None, uv: Uv, tools: Tools, *, replaces: bool
) -> tuple[Resolution, tuple[Finding, ...]]:
    """Resolve a plan; if it `replaces` the environment `site`, together with the packages that the user added there.

    If these do not fit, the plan alone is resolved, and a finding names what is left out. Installed versions are
    preferred. Raises as `resolve` does.
    """
    keep = {**(site.versions if site else {}), **tools.sources.keep}
    added: list[str] = []
    if site and replaces:
        marker = read_marker(Path(site.prefix))
        added = sorted(set(site.versions) - set(marker.environment.packages if marker else ()) - {PIP})
    if added:
        with suppress(Unsolved):
            whole = replace(plan, requirements=(*plan.requirements, *added))
            return resolve(whole, uv, keep, tools.sources.locked), ()
    resolution = resolve(plan, uv, keep, tools.sources.locked)
    left_out = [name for name in added if name not in resolution.versions]
    text = ngettext(
        "{names} does not go with this plan and is left out; the environment as it was stays beside the new one.",
        "{names} do not go with this plan and are left out; the environment as it was stays beside the new one.",
        len(left_out),
        names=", ".join(left_out),
    )
    return resolution, (Finding(key="added-left-out", severity=Severity.WARNING, text=text),) if left_out else ()


def find_reusable(target: Path, site: Site | None, resolution: Resolution) -> Environment | None:
    """Return the environment at a target if the assistant made it and it holds a resolution's packages; else None."""
    marker = read_marker(target) if site and not resolution.changes(site.versions) else None
    return marker.environment if marker and marker.environment.packages.items() <= resolution.versions.items() else None


def list_commands(uv: Uv, target: Path, changing: Site | None) -> tuple[tuple[str, ...], ...]:
    """Return the commands that an installation runs; `changing` is an environment that is changed in place, or None."""
    places, lock = Places(target), Path(LOCK)
    if changing:
        return (tuple(uv.install_command(Path(changing.python), lock)),)
    rename = "move" if os.name == "nt" else "mv"  # cmd knows `move`, PowerShell both; one rename on any system
    steps = (
        uv.venv_command(places.new),
        uv.install_command(interpreter(places.new), lock, exactly=True),
        *([(rename, str(target), str(places.old))] if target.exists() else []),
        (rename, str(places.new), str(target)),
    )
    return tuple(tuple(step) for step in steps)


def missing_bytes(packages: Sequence[Package]) -> int:
    """Return how many bytes of packages are not on this disk yet, as far as sizes are known."""
    on_disk = files_on_disk(packages)
    return sum(package.size or 0 for package in packages if package.name not in on_disk)


@contextmanager
def build_anew(  # noqa: PLR0913, PLR0917 - what, where, with what
    plan: Plan,
    packages: Sequence[Package],
    index_url: str | None,
    environment: Environment,
    site: Site | None,
    host: Host,
    uv: Uv,
    versions: Mapping[str, str] | None = None,
) -> Iterator[Built]:
    """Build an environment with exact packages beside its target; after a block register its kernel and rename it.

    Files of `site`, which it replaces, that belong to no package are linked into it. A new one gets pip, too.
    `versions` (by name) are for its constraints, by default the environment's packages. Raises as `build_beside` and
    `put_in_place` do, and what the block raises, after rolling all back.
    """
    target = Path(environment.path)
    with build_beside(target) as work:
        folder, python = work.folder, interpreter(work.folder)
        held = uv.in_folder(work.scratch, work.lock)
        held.create_environment(folder)
        if not site and all(package.name != PIP for package in packages):  # some packages require pip, as fastai does
            packages = [*packages, *filter(None, [find_pip(python, plan, held)])]
        lock = work.scratch / LOCK
        write_temporary(lock, write_lock(packages, files_on_disk(packages)))
        if not held.sync_from_cache(python, lock) or find_incomplete(folder, check=uv.cancel.check):
            install_and_check(python, folder, packages, index_url, held, partial(work.restart, held))
        if site:
            link_own_files(site, folder)
        discard_folder(work.scratch)
        check_lengths(host, folder, target)
        write_guards(target, environment.packages if versions is None else versions, folder)
        write_variables(folder, {"UV_CONSTRAINT": constraints_uri(target), **plan.env})
        write_marker(folder, plan, environment)
        uv.cancel.check()
        work.start_syncing()
        yield Built(environment, replace(environment, path=str(folder), python=str(python)), work.lock)
        uv.progress(_("Adding the kernel to Jupyter"), part=Part.REGISTER)
        kernel = record_kernel(environment.kernel, Path(environment.python)) if environment.kernel else None
        work.put_in_place(uv.cancel.check, kernel, partial(register_kernel, plan, environment))


class ChangeRequest(Record, frozen=True):
    """A requested change of an environment: requirements to meet, packages to remove, and packages to reinstall.

    What is reinstalled keeps its version, unless a requirement gives it another. `index_url` is where torch and its
    family come from; None for the index of the torch that is installed.
    """

    requires: tuple[str, ...] = ()
    removes: tuple[str, ...] = ()
    reinstalls: tuple[str, ...] = ()
    index_url: str | None = None

    def resolve_change(self, site: Site, tools: Tools, *, all_else: bool = True) -> Difference:
        """Resolve the change for an environment, keeping installed versions that fit; return the difference.

        Nothing is changed. With `all_else` all packages are resolved together, so that other unmet requirements are
        fixed, too; if that has no solution, only the requested ones are. Raises `BadInput` for an environment or a
        package that must not be changed this way, and `WorkFailed` if no packages fit or no index answers.
        """
        check_target(Path(site.prefix), site)
        try:
            return _resolve_change(site, self, tools, whole=all_else)
        except Unsolved as failure:
            if not all_else or failure.unreachable:
                raise
            return _resolve_change(site, self, tools, whole=False)


class Difference(Record, frozen=True):
    """What a change would do: which packages move, what is downloaded (bytes), what the user should know first.

    `site` is the environment as it was when this was computed, `after` the versions that it will hold, by name.
    `packages` are those to install; torch's come from `index_url`.
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
        """The environment as the change would leave it; a new version has no metadata but name and version."""
        before, moving = self.site, {move.name: move.after for move in self.moves}
        requires = {(package.canonical_name, package.version): package.requires for package in before.own}
        stays = [package for package in before.distributions if package.canonical_name not in moving]
        incoming = [
            Distribution(name, version, requires.get((name, version), ()), place=before.purelib)
            for name, version in moving.items()
            if version
        ]
        return replace(before, distributions=(*stays, *incoming))

    @contextmanager
    def apply(self, tools: Tools) -> Iterator[Built]:
        """Make the change, which a block may refuse by raising; it can be undone.

        An environment that `is_replaceable` is built anew and replaced; any other is changed in place. If it fails the
        environment is as it was. Raises `BadInput`, `WorkFailed`, also if packages have changed since, or `Cancelled`.
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
            index_url = self.index_url or find_torch_index(site)
            versions = {name: version for name, version in self.after.items() if name != PIP}
            packages = resolve_versions(site, versions, index_url, uv)
            before = marker.environment
            made = replace(before, packages={name: self.after[name] for name in before.packages if name in self.after})
            work = build_anew(marker.plan, packages, index_url, made, site, host, uv, self.after)
        else:
            work = change_in_place(site, self.moves, self.packages, self.index_url, environment, host, uv)
        with work as built:
            yield built


def _resolve_change(site: Site, request: ChangeRequest, tools: Tools, *, whole: bool) -> Difference:
    """Return what a change would do, resolved with the environment's other packages (`whole`), or by itself.

    Packages from folders, repositories and files, conda's, and torch's family unless the request names it, keep their
    versions, and constrain the others. Raises as `ChangeRequest.resolve_change` does.
    """
    versions, reinstalled = site.versions, set(request.reinstalls)
    removed: set[str] = {canonicalize_name(name) for name in request.removes}
    requested: set[str] = {canonicalize_name(Requirement(line).name) for line in request.requires}
    foreign = {package.canonical_name: package for package in site.own if package.is_private or package.is_condas}
    family = {name for name in versions if carried_by_torch_index(name)}
    unchangeable = (foreign.keys() - reinstalled) | (family - requested - reinstalled)
    lines = [*request.requires, *(f"{name}=={versions[name]}" for name in reinstalled - requested)]
    if whole:
        lines += [line for name, package in foreign.items() if name not in removed for line in package.requires]
        lines += sorted(versions.keys() - unchangeable - removed - requested - reinstalled - {PIP})
        lines += [f"{name}=={versions[name]}" for name in sorted(unchangeable & family)]
    is_torchs = any(carried_by_torch_index(canonicalize_name(Requirement(line).name)) for line in lines)
    index_url = tools.sources.index_url or request.index_url or find_torch_index(site) if is_torchs else None
    plan = replace(
        plan_for_resolving(site, tuple(dict.fromkeys(lines)), index_url),
        constraints=tuple(f"{name}=={versions[name]}" for name in sorted(unchangeable - removed - requested)),
    )
    uv = dataclasses.replace(tools.uv_of(site.python), also=())
    uv.progress(_("Resolving the packages"))
    keep = {name: version for name, version in versions.items() if name not in removed}
    resolution = resolve(plan, uv, keep, tools.sources.locked) if lines else Resolution(lock="", packages=())
    packages = tuple(resolution.changes({name: versions[name] for name in versions if name not in reinstalled}))
    incoming = {package.name: package.version for package in packages}
    _refuse_harmful_change(site, resolution, removed, incoming, requested | reinstalled)
    after = keep | incoming
    names = sorted({*incoming, *(removed & versions.keys())})
    return Difference(
        site=site,
        moves=tuple(Move(name=name, before=versions.get(name, ""), after=after.get(name, "")) for name in names),
        after=after,
        packages=packages,
        download=missing_bytes(packages),
        findings=(
            *(tools.sources.index_findings(plan) if packages else ()),
            *project_undo_findings(Path(site.prefix), plan, after),
        ),
        index_url=index_url,
    )


def _refuse_harmful_change(
    site: Site,
    resolution: Resolution,
    removed: Collection[str],
    incoming: Collection[str],
    requested: Collection[str],
) -> None:
    """Raise if a change breaks a package that stays, or replaces or removes one that it must not.

    `removed` and `incoming` name the packages that it removes and installs, `requested` those that the user named. A
    requirement that is unmet already does not count. `BadInput` for packages of conda, which would undo the change, so
    that conda must make it. `Unsolved` for a broken requirement, and if a package from a folder, a repository or a file
    would be replaced from an index; one from a file may be if it is requested, as it may have been downloaded by hand.
    """
    before = {(broken.package.name, broken.requirement.name) for broken in find_broken_requirements(site, {}, removed)}
    broken = [
        one
        for one in find_broken_requirements(site, resolution.versions, removed)
        if (one.package.name, one.requirement.name) not in before
    ]
    moving = [package for package in site.own if package.canonical_name in {*incoming, *removed}]
    replaced = [
        package
        for package in moving
        if package.canonical_name in incoming
        and not (package.origin == "archive_info" and package.canonical_name in requested)
    ]
    stays = [one.package for one in broken]
    if condas := _join_names(package for package in (*stays, *moving) if package.is_condas):
        raise BadInput(
            _("conda installed {names}, so conda has to change them.", names=condas),
            hint=_("Use `conda install --prefix {path}`, or set up a new environment.", path=site.prefix),
        )
    if private := _join_names(package for package in (*stays, *replaced) if package.is_private):
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


def _join_names(packages: Iterable[Distribution]) -> str:
    """Return the names of packages, each once, joined by commas; "" for none."""
    return ", ".join(dict.fromkeys(package.name for package in packages))
