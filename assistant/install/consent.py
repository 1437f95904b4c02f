"""What is refused before anything is installed: packages without a wheel."""

from __future__ import annotations

from collections.abc import Mapping

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assistant.host.index import has_source
from assistant.i18n import _
from assistant.install.installer import Installer
from assistant.install.packages import Resolution
from assistant.install.resolution import OnlySource, Unsolved, resolve
from assistant.install.sources import Sources
from assistant.model.errors import WorkFailed
from assistant.model.plan import Plan


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
