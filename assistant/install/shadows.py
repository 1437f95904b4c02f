"""Names that several indexes hold with different files: whose the installer takes, told before it is installed.

Installers take the best version of all indexes, so whoever may publish a name in one of them can stand in for another's
package of that name ("dependency confusion"). A mirror holds the same files and is no rival; nor is one that lags
behind, which cannot be told from an index that copied old files and added a new one of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from packaging.version import Version

from assistant.host.download import file_name
from assistant.host.index import Found, Network, list_each, wheel_version
from assistant.i18n import Message, Text, _, ngettext
from assistant.install.packages import Package
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.plan import Wheel, of_torch_family
from assistant.model.record import Record
from assistant.privacy import Policy, redact

SECONDS = 10.0

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
    """What a look at all indexes gave: shadowed names, and the indexes that could not be asked, with the reason."""

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
    told = (_shadow(package, index_urls, both, own) for package in packages if package.name in rivals)
    silent = {one.source: one.reason for found in both.values() for one in found.asked if one.status == "unreachable"}
    return Shadows(found=tuple(filter(None, told)), silent=silent)


def findings(found: Shadows) -> tuple[Finding, ...]:
    """Say which names stand in several indexes, and which indexes could not be asked."""
    told = [_shadowed(one) for one in found.found]
    if found.silent:
        text = _(
            "Whether another index holds the same names is not known: {reasons}.",
            reasons=tuple(
                Message("{source}: {reason}").format(source=source, reason=reason)
                for source, reason in sorted(found.silent.items())
            ),
        )
        out = Remedy(text=_("Restore the index, or take it out of pip's and uv's settings."))
        told.append(Finding(key="index-not-asked", severity=Severity.WARNING, text=text, remedies=(out,)))
    return tuple(told)


def without_hash(packages: Iterable[Package]) -> tuple[Finding, ...]:
    """Name the packages whose index tells no hash: what arrives cannot be compared with what was meant."""
    names = [package.name for package in packages if not package.sha256 and "://" in package.url]
    if not names:
        return ()
    text = ngettext(
        "The index gives no hash for {names}, so its file cannot be checked.",
        "The index gives no hash for {names}, so their files cannot be checked.",
        len(names),
        names=", ".join(names),
    )
    return (Finding(key="no-hash", severity=Severity.WARNING, text=text),)


def _shadow(package: Package, index_urls: Sequence[str], listing: Listing, own: str | None) -> Shadow | None:
    held = {url: listing[package.name, url].wheels for url in index_urls if listing[package.name, url].wheels}
    taken = _taken(package, held)
    if taken is None and package.url.startswith("file:"):
        return None  # from a folder of wheels that the user named
    if len(held) < 2 or (taken == own and own is not None and of_torch_family(package.name)):  # noqa: PLR2004 - as above
        return None
    alike = {taken} if taken is None else _alike(taken, held)
    others = {
        _named(url): str(_newest(wheels))
        for url, wheels in held.items()
        if url not in alike and not any(_same(one, package) for one in wheels)
    }
    named = redact(package.url, Policy.USABLE) if taken is None else _named(taken)
    return Shadow(name=package.name, version=package.version, taken=named, others=others) if others else None


def _taken(package: Package, held: Mapping[str, Sequence[Wheel]]) -> str | None:
    """Find the index that a file comes from: by its address, else by its content, else by its name."""
    tests: tuple[Callable[[Wheel, Package], bool], ...] = (_same_address, _same, _same_name)
    told = (url for test in tests for url, wheels in held.items() if any(test(one, package) for one in wheels))
    return next(told, None)


def _same_address(wheel: Wheel, package: Package) -> bool:
    return wheel.url == package.url


def _same(wheel: Wheel, package: Package) -> bool:
    return bool(package.sha256) and (wheel.filename, wheel.sha256) == (file_name(package.url), package.sha256)


def _same_name(wheel: Wheel, package: Package) -> bool:
    return wheel.filename == file_name(package.url) and not (wheel.sha256 and package.sha256)


def _alike(taken: str, held: Mapping[str, Sequence[Wheel]]) -> set[str]:
    """Name the indexes that hold the same package as the one that is taken: its mirrors, and theirs.

    Two mirrors that each hold a part have no file in common; the whole index beside them tells that they belong to it.
    """
    found, more = {taken}, {taken}
    while more:
        more = {url for url in held if url not in found and any(_mirrors(held[one], held[url]) for one in more)}
        found |= more
    return found


def _mirrors(wheels: Sequence[Wheel], others: Sequence[Wheel]) -> bool:
    """Tell whether two indexes hold the same package: files in common, and none of one name with another content."""
    known = {one.filename: one.sha256 for one in wheels}
    common = [one for one in others if one.filename in known]
    return bool(common) and all(one.sha256 and one.sha256 == known[one.filename] for one in common)


def _newest(wheels: Sequence[Wheel]) -> Version:
    return max(map(wheel_version, wheels))


def _named(url: str) -> str:
    return redact(url, Policy.USABLE) or "PyPI"


def _shadowed(one: Shadow) -> Finding:
    others = ", ".join(f"{url} ({version})" for url, version in one.others.items())
    text = _(
        "{name} {version} would be taken from {taken}; other files under the same name are in {others}.",
        name=one.name,
        version=one.version,
        taken=one.taken,
        others=others,
    )
    remedies = [
        Remedy(
            text=_(
                "If it is to come from {index}, ask for its version: --pin {name}=={version}.",
                index=url,
                name=one.name,
                version=version,
            )
        )
        for url, version in one.others.items()
    ]
    out = Remedy(text=_("Or take the index out of pip's and uv's settings that this name is not to come from."))
    return Finding(key="name-in-several-indexes", severity=Severity.WARNING, text=text, remedies=(*remedies, out))
