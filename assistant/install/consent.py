"""What the user is asked before anything is installed: builds from source."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assistant.host.index import Archive, find_archives
from assistant.host.pip_settings import pip_environment
from assistant.i18n import Message, _
from assistant.install.build import BuildContext, build_wheel, built_before, used_again
from assistant.install.installer import Installer
from assistant.install.packages import Resolution
from assistant.install.resolution import OnlySource, Unsolved, resolve
from assistant.install.sources import Sources
from assistant.install.tools import Tools
from assistant.model.errors import WorkFailed
from assistant.model.plan import Plan

Ask = Callable[[Message], bool]
MOST_BUILDS = 20  # chosen: a package whose source needs another source, and so on without end, is an attack


def resolved(plan: Plan, installer: Installer, tools: Tools, keep: Mapping[str, str] | None = None) -> Resolution:
    """Resolve a plan to wheels alone; a package that comes only as source is built where the user agrees to it by name.

    Raises as `resolve` does, `OnlySource` where nobody agreed.
    """
    built: list[Path] = []
    context, sources = BuildContext(plan=plan, keep=keep or {}, installer=installer, tools=tools), tools.sources
    while True:
        try:
            return resolve(plan, _with_built(built, installer, plan, sources), keep, sources.locked)
        except (OnlySource, Unsolved) as refusal:
            needs = _needs(refusal)
            folders = _built_before(needs, context)
            if not folders:
                context.refuse_hopeless(needs)
                found = _to_build(refusal, needs, context, tools.ask)
                folders = [build_wheel(need.name, one, context) for need, one in found.items()]
        if set(folders) <= set(built) or len(built) > MOST_BUILDS:  # built already, and it does not fit
            raise OnlySource(tuple(map(str, needs)))
        built += folders


def _needs(refusal: OnlySource | Unsolved) -> tuple[Requirement, ...]:
    if isinstance(refusal, OnlySource):
        return tuple(map(Requirement, refusal.needs))
    return (refusal.need,) if refusal.need else ()


def _built_before(needs: Sequence[Requirement], context: BuildContext) -> list[Path]:
    """Find what was built before, where the network may not be asked for the archives; [] unless it is all there."""
    consent = context.tools.sources.consent
    if not (context.installer.offline and consent.builds):
        return []
    found = [built_before(need, context) for need in needs]
    return [used_again(folder, context) for folder in found if folder] if all(found) else []


def _to_build(
    refusal: OnlySource | Unsolved, needs: Sequence[Requirement], context: BuildContext, ask: Ask
) -> dict[Requirement, Archive]:
    """Find the sources of what has no wheel, where the user agrees to the build; raise the refusal where not."""
    sources = context.tools.sources
    found = {need: archive for need in needs if (archive := _archive(need, context.plan, sources))}
    if isinstance(refusal, Unsolved) and found:
        refusal = OnlySource(tuple(map(str, needs)))
    if isinstance(refusal, Unsolved) and sources.locked:
        raise WorkFailed(
            _("The locked packages are not available as they were: {differences}.", differences=refusal.message),
            hint=_("Restore the source that they came from, or make a new plan.", option="--anew"),
        ) from refusal
    if not (found and _agreed(found, context, ask)):
        raise refusal
    return found


def _archive(need: Requirement, plan: Plan, sources: Sources) -> Archive | None:
    """Find the newest source archive that meets a requirement and the plan's own pins."""
    name = canonicalize_name(need.name)
    pins = [pin for line in plan.requirements if canonicalize_name((pin := Requirement(line)).name) == name]
    specifier = need.specifier
    for pin in pins:
        specifier &= pin.specifier
    network = sources.settings.network
    indexes, links = sources.consulted(plan), sources.links_of(plan)
    found = find_archives(name, plan.python, index_urls=indexes, find_links=links, timeout=10.0, network=network)
    fitting = set(specifier.filter(one.version for one in found))
    return next((one for one in found if one.version in fitting), None)


def _agreed(found: Mapping[Requirement, Archive], context: BuildContext, ask: Ask) -> bool:
    """Ask for each package by name and version, unless an option named it beforehand or its wheel was built before."""
    consent = context.tools.sources.consent
    if not consent.builds:
        return False
    question = _(
        "{name} {version} is available only as source; building it runs its author's code on this machine. Build it?"
    )
    return all(
        canonicalize_name(need.name) in set(map(canonicalize_name, consent.built))
        or _kept(need, archive, context)
        or ask(question.format(name=need.name, version=archive.version))
        for need, archive in found.items()
    )


def _kept(need: Requirement, archive: Archive, context: BuildContext) -> bool:
    """Return whether the wheel of an archive was built before, so that nothing of it runs."""
    this = Requirement(f"{need.name}=={archive.version}")
    return bool(archive.sha256 and built_before(this, context, archive.sha256))


def _with_built(folders: list[Path], installer: Installer, plan: Plan, sources: Sources) -> Installer:
    """Let the installer also look into the folders of wheels that were built."""
    if not folders:
        return installer
    links = [*sources.links_of(plan), *map(str, folders)]
    before = installer.environment.get("UV_FIND_LINKS") or sources.variable("UV_FIND_LINKS")
    for_uv = ",".join(filter(None, [before, *map(str, folders)]))
    environment = {**installer.environment, **pip_environment(links), "UV_FIND_LINKS": for_uv}
    return dataclasses.replace(installer, environment=environment)
