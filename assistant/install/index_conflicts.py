"""Finds package names that several indexes hold with different files, and which of them the installer would take.

Installers take the best version of all indexes, so whoever may publish a name in one of them can stand in for another's
package of that name ("dependency confusion"). A mirror holds the same files and is no rival; nor is one that lags
behind, which cannot be told from an index that copied old files and added a new one of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from assistant.catalog import carried_by_torch_index
from assistant.host.download import file_name
from assistant.host.index import Found, Network, list_each, wheel_version
from assistant.i18n import Message, Text, _, ngettext
from assistant.install.packages import Package
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.plan import Wheel
from assistant.model.record import Record
from assistant.privacy import Policy, redact

SECONDS = 10.0  # chosen: the most that a user waits for the look at all indexes

Listing = Mapping[tuple[str, str], Found]


class Shadow(Record, frozen=True):
    """A package that comes from one index while others hold other files under its name, with their newest versions.

    Indexes are named by their addresses without passwords, `taken` is that of the file where none of them lists it.
    """

    name: str
    version: str
    taken: str
    others: dict[str, str]


class Shadows(Record, frozen=True):
    """The result of a look at all indexes: shadowed names, and the indexes that did not answer, with the reason."""

    found: tuple[Shadow, ...] = ()
    silent: dict[str, Text] = {}


def shadows(
    packages: Sequence[Package], index_urls: Sequence[str], own: str | None, network: Network, seconds: float = SECONDS
) -> Shadows:
    """Compare what the indexes hold of each package; `own` is torch's index, from which its family comes on purpose.

    The index listed first is the large one as a rule, so it is only asked for names that another one holds, too.
    """
    if len(index_urls) < 2:  # noqa: PLR2004 - one index has no rival
        return Shadows()
    more = list_each(
        [package.name for package in packages], index_urls=index_urls[1:], timeout=seconds, network=network
    )
    rivals = sorted({name for (name, _url), found in more.items() if found.wheels})
    first = list_each(rivals, index_urls=index_urls[:1], timeout=seconds, network=network)
    both = {**first, **more}
    found = (_shadow(package, index_urls, both, own) for package in packages if package.name in rivals)
    silent = {one.source: one.reason for looks in both.values() for one in looks.asked if one.status == "unreachable"}
    return Shadows(found=tuple(filter(None, found)), silent=silent)


def findings(found: Shadows) -> tuple[Finding, ...]:
    """Return findings for the names that several indexes hold, and for the indexes that did not answer."""
    result = [_shadowed(one) for one in found.found]
    if found.silent:
        text = _(
            "Could not check whether another index has the same package names: {reasons}.",
            reasons=tuple(
                Message("{source}: {reason}").format(source=source, reason=reason)
                for source, reason in sorted(found.silent.items())
            ),
        )
        fix = Remedy(text=_("Restore the index, or remove it from pip's and uv's settings."))
        result.append(Finding(key="index-not-asked", severity=Severity.WARNING, text=text, remedies=(fix,)))
    return tuple(result)


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


def _shadow(package: Package, index_urls: Sequence[str], listing: Listing, own: str | None) -> Shadow | None:
    """Return the indexes with other files under a package's name; None where there are none, or on purpose."""
    held = {url: listing[package.name, url].wheels for url in index_urls if listing[package.name, url].wheels}
    taken = _taken(package, held)
    if taken is None and package.url.startswith("file:"):
        return None  # from a folder of wheels that the user named
    if len(held) < 2 or (taken == own and own is not None and carried_by_torch_index(package.name)):  # noqa: PLR2004 - as above
        return None
    alike = {taken} if taken is None else _alike(taken, held)
    others = {
        _named(url): str(max(map(wheel_version, wheels)))
        for url, wheels in held.items()
        if url not in alike and not any(_same(one, package) for one in wheels)
    }
    named = redact(package.url, Policy.USABLE) if taken is None else _named(taken)
    return Shadow(name=package.name, version=package.version, taken=named, others=others) if others else None


def _taken(package: Package, held: Mapping[str, Sequence[Wheel]]) -> str | None:
    """Find the index that a file comes from: by its address, else by its content, else by its name."""
    name = file_name(package.url)
    tests: tuple[Callable[[Wheel], bool], ...] = (
        lambda wheel: wheel.url == package.url,
        lambda wheel: _same(wheel, package),
        lambda wheel: wheel.filename == name and not (wheel.sha256 and package.sha256),
    )
    return next((url for test in tests for url, wheels in held.items() if any(map(test, wheels))), None)


def _same(wheel: Wheel, package: Package) -> bool:
    return bool(package.sha256) and (wheel.filename, wheel.sha256) == (file_name(package.url), package.sha256)


def _alike(taken: str, held: Mapping[str, Sequence[Wheel]]) -> set[str]:
    """Return the indexes that hold the same package as the one that is taken: its mirrors, and theirs.

    Two mirrors that each hold a part have no file in common; the whole index beside them tells that they belong to it.
    """
    found, more = {taken}, {taken}
    while more:
        more = {url for url in held if url not in found and any(_mirrors(held[one], held[url]) for one in more)}
        found |= more
    return found


def _mirrors(wheels: Sequence[Wheel], others: Sequence[Wheel]) -> bool:
    """Return whether two indexes hold the same package: files in common, and none of one name with another content."""
    known = {one.filename: one.sha256 for one in wheels}
    common = [one for one in others if one.filename in known]
    return bool(common) and all(one.sha256 and one.sha256 == known[one.filename] for one in common)


def _named(url: str) -> str:
    return redact(url, Policy.USABLE) or "PyPI"


def _shadowed(one: Shadow) -> Finding:
    others = ", ".join(f"{url} ({version})" for url, version in one.others.items())
    text = _(
        "{name} {version} would come from {taken}; other indexes have different files under that name: {others}.",
        name=one.name,
        version=one.version,
        taken=one.taken,
        others=others,
    )
    remedies = [
        Remedy(
            text=_(
                "If you want the one from {index}, pin its version: {pin}.",
                index=url,
                pin=f"{one.name}=={version}",
                option=f"--pin {one.name}=={version}",
            )
        )
        for url, version in one.others.items()
    ]
    fix = Remedy(text=_("Or remove the index that you do not trust from pip's and uv's settings."))
    return Finding(key="name-in-several-indexes", severity=Severity.WARNING, text=text, remedies=(*remedies, fix))
