"""What the user pins: a range of torch, a variant, companions from torch's family, other packages."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from assistant.catalog import Catalog, TorchWheel, number
from assistant.catalog.rows import TorchRelease
from assistant.i18n import _
from assistant.model.errors import BadInput, NothingFits

FAMILY = ("torchvision", "torchaudio")


class Wishes(NamedTuple):
    """Pins, sorted: `torch` and `local` (a tag such as cu124) restrict the build, `family` and `others` go along."""

    torch: SpecifierSet
    local: str | None
    family: tuple[Requirement, ...]
    others: tuple[Requirement, ...]

    def allow(self, wheel: TorchWheel) -> bool:
        """Tell whether a build satisfies the pins."""
        if self.local and wheel.variant not in (self.local, "pypi"):
            return False
        return self.allow_release(wheel.release)

    def allow_release(self, release: TorchRelease) -> bool:
        """Tell whether a release satisfies the pins on torch and on its companions."""
        if not (self.torch or self.family):
            return True
        return _within(self.torch, release.version) and all(companion(pin, release) for pin in self.family)

    def unpinned(self) -> Wishes:
        """Answer the same wishes without those that restrict torch."""
        return self._replace(torch=SpecifierSet(), local=None, family=())

    @property
    def text(self) -> str:
        """The pins that restrict torch, as the user may read them."""
        if not (self.torch or self.local or self.family):
            return ""
        torch = f"torch{self.torch}" + (f"+{self.local}" if self.local else "") if self.torch or self.local else ""
        return ", ".join(filter(None, (torch, *map(str, self.family))))


NONE = Wishes(SpecifierSet(), None, (), ())


@lru_cache(maxsize=1024)
def _within(specifiers: SpecifierSet, version: str) -> bool:
    return specifiers.contains(version, prereleases=True)


def companion(pin: Requirement, release: TorchRelease) -> str | None:
    """Find the version of torchvision or torchaudio that goes with a release and satisfies its pin."""
    paired: tuple[str, ...] = getattr(release, canonicalize_name(pin.name))
    if not paired and canonicalize_name(pin.name) == "torchaudio":
        paired = LAST_TORCHAUDIO
    fitting = [version for version in paired if _within(pin.specifier, version)]
    return max(fitting, key=number) if fitting else None


# torchaudio ended with 2.11.0, which asks for no particular torch; AMD pairs it with 2.11 to 2.14.
LAST_TORCHAUDIO = ("2.11.0",)


def wishes_of(pins: tuple[str, ...], catalog: Catalog) -> Wishes:
    """Sort the pins; raise `BadInput` or `NothingFits` naming a pin that cannot be read or met."""
    if not pins:
        return NONE
    parsed = [_parsed(pin) for pin in pins]
    torch, local = SpecifierSet(), None
    family: list[Requirement] = []
    others: list[Requirement] = []
    for pin in parsed:
        name = canonicalize_name(pin.name)
        if name == "torch":
            specifiers, local = _split_local(pin.specifier, local)
            torch &= specifiers
        else:
            (family if name in FAMILY else others).append(pin)
    wishes = Wishes(torch, local, tuple(family), tuple(others))
    _check(wishes, catalog)
    return wishes


def _parsed(pin: str) -> Requirement:
    try:
        requirement = Requirement(pin)
    except InvalidRequirement as error:
        raise BadInput(
            _('"{pin}" is not a requirement.', pin=pin), hint=_("Write it like torch==2.6.0 or torch<2.7.")
        ) from error
    if requirement.url:
        raise BadInput(
            _('"{pin}" names a file; the planner chooses among published releases.', pin=pin),
            hint=_("Leave it out here and install that file afterwards."),
        )
    if requirement.marker:
        raise BadInput(
            _('"{pin}" holds under a condition only; a plan is for one machine.', pin=pin),
            hint=_("Leave out what follows the semicolon."),
        )
    return requirement


def _split_local(specifiers: SpecifierSet, local: str | None) -> tuple[SpecifierSet, str | None]:
    """Take the local part off `==2.6.0+cu124`: it names the variant."""
    kept = []
    for item in specifiers:
        public, plus, tag = item.version.partition("+")
        local = tag.lower() if plus else local
        kept.append(f"{item.operator}{public}")
    return SpecifierSet(",".join(kept)), local


def _check(wishes: Wishes, catalog: Catalog) -> None:
    """Refuse pins that contradict each other or ask for what was never released."""
    if any(wishes.allow_release(release) for release in catalog.releases):
        return
    for pin in wishes.family:
        alone = wishes._replace(torch=SpecifierSet(), family=(pin,))
        if wishes.torch and any(alone.allow_release(release) for release in catalog.releases):
            raise NothingFits(
                _("{pin} belongs to another torch than torch{torch} allows.", pin=pin, torch=wishes.torch),
                hint=_("Drop one of the two pins; each {name} goes with one torch.", name=pin.name),
            )
    raise NothingFits(
        _("No release of torch satisfies {pins}.", pins=wishes.text),
        hint=_(
            "The newest that this catalogue knows is {version}; for what comes after it, ask for --nightly.",
            version=catalog.newest_torch,
        ),
    )
