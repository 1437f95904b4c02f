"""What the user should know of the indexes that packages come from: several of them, and files without a hash."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from assistant.i18n import _, ngettext
from assistant.install.packages import Package, Resolution
from assistant.install.sources import Sources
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.plan import Plan
from assistant.privacy import Policy, redact


def index_findings(plan: Plan, resolution: Resolution, sources: Sources) -> tuple[Finding, ...]:
    """Return what should be known of the indexes of a plan and of the files that are taken from them."""
    return (*_several(sources.consulted(plan), sources), *without_hash(resolution.packages))


def _several(indexes: Sequence[str], sources: Sources) -> tuple[Finding, ...]:
    """Say which index a package comes from where several are asked: who may publish in one could take any name."""
    if len(indexes) < 2:  # noqa: PLR2004 - of one index nothing need be said
        return ()
    named = ", ".join(redact(url, Policy.USABLE) or "PyPI" for url in indexes)
    if sources.takes_first_index:
        text = _(
            "Several indexes are asked: {indexes}. uv takes each package from the first of them that has its name, so "
            "that no later one can offer another file under that name.",
            indexes=named,
        )
        return (Finding(key="several-indexes", severity=Severity.INFO, text=text),)
    text = _(
        "Several indexes are asked: {indexes}. The best version of all of them is taken, so that whoever may publish "
        "in one can offer another file under any name.",
        indexes=named,
    )
    fix = Remedy(text=_("Remove the index that you do not trust from pip's and uv's settings."))
    return (Finding(key="several-indexes", severity=Severity.WARNING, text=text, remedies=(fix,)),)


def without_hash(packages: Iterable[Package]) -> tuple[Finding, ...]:
    """Return a finding for the packages whose index gives no hash: what arrives cannot be compared with anything."""
    names = [package.name for package in packages if not package.sha256 and "://" in package.url]
    if not names:
        return ()
    text = ngettext(
        "The index gives no hash for {names}, so its file cannot be verified.",
        "The index gives no hash for {names}, so their files cannot be verified.",
        len(names),
        names=", ".join(names),
    )
    return (Finding(key="no-hash", severity=Severity.WARNING, text=text),)
