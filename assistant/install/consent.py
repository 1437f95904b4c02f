"""What is refused or asked before anything is installed: packages without a wheel, indexes that are not known."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assistant.catalog import load_catalog
from assistant.catalog.indexes import known_index, mirrors_pypi
from assistant.host.index import has_source
from assistant.i18n import Message, _
from assistant.install.index_conflicts import Shadow, findings, shadows, without_hash
from assistant.install.installer import Installer
from assistant.install.packages import Resolution
from assistant.install.resolution import OnlySource, Unsolved, resolve
from assistant.install.sources import Sources
from assistant.model.errors import WorkFailed
from assistant.model.finding import Finding
from assistant.model.plan import Plan

Ask = Callable[[Message], bool]


def resolved(plan: Plan, installer: Installer, sources: Sources, keep: Mapping[str, str] | None = None) -> Resolution:
    """Resolve a plan to wheels alone, and say where what is missing comes only as source.

    Raises as `resolve` does.
    """
    try:
        return resolve(plan, installer, keep, sources.locked)
    except Unsolved as refusal:
        if refusal.need and _comes_as_source(refusal.need, plan, sources):
            raise OnlySource((str(refusal.need),)) from refusal
        if sources.locked:
            raise WorkFailed(
                _("The locked packages are not available as they were: {differences}.", differences=refusal.message),
                hint=_("Restore the source that they came from, or make a new plan.", option="--anew"),
            ) from refusal
        raise


def index_findings(plan: Plan, resolution: Resolution, sources: Sources, ask: Ask) -> tuple[Finding, ...]:
    """Find names that several indexes hold, and files without a hash.

    Raises `WorkFailed` where an index that neither the catalogue nor the user names is among them and the user does not
    agree.
    """
    own, catalog = plan.index_url, load_catalog()
    found = shadows(resolution.packages, sources.consulted(plan), own, sources.settings.network)

    def well_known(url: str) -> bool:
        return url == "PyPI" or mirrors_pypi(url, catalog) or known_index(url, catalog)

    trusted = {url.rstrip("/") for url in sources.consent.indexes}
    doubtful = [
        one
        for one in found.found
        if not one.taken.startswith("file:")  # on this disk already, as a folder of wheels would be
        and one.taken.rstrip("/") not in trusted
        and not all(map(well_known, (one.taken, *one.others)))
    ]
    if doubtful and sources.consent.asks and not ask(_question(doubtful)):
        one = doubtful[0]
        raise WorkFailed(
            _(
                "{name} {version} would come from {taken}, but {others} has different files under that name.",
                name=one.name,
                version=one.version,
                taken=one.taken,
                others=", ".join(one.others),
            ),
            hint=_(
                "If that is what you want, trust {taken}; if not, pin the other index's version: {pins}.",
                taken=one.taken,
                pins=", ".join(f"{one.name}=={version}" for version in one.others.values()),
                option=f"--trust-index {one.taken}, --pin",
            ),
        )
    return (*findings(found), *without_hash(resolution.packages))


def _question(found: list[Shadow]) -> Message:
    names = tuple(
        _(
            "{name} {version} from {taken} (not from {others})",
            name=one.name,
            version=one.version,
            taken=one.taken,
            others=", ".join(one.others),
        )
        for one in found
    )
    return _("Several indexes have different files under the same name. Install {names}?", names=names)


def _comes_as_source(need: Requirement, plan: Plan, sources: Sources) -> bool:
    """Return whether a source archive meets a requirement and the plan's own pins."""
    name = canonicalize_name(need.name)
    specifier = need.specifier
    for pin in map(Requirement, plan.requirements):
        if canonicalize_name(pin.name) == name:
            specifier &= pin.specifier
    return has_source(
        name,
        plan.python,
        specifier,
        index_urls=sources.consulted(plan),
        find_links=sources.links_of(plan),
        timeout=10.0,
        network=sources.settings.network,
    )
