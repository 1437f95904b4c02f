"""What the user pins: a range of torch, a variant, companions from torch's family, other packages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from functools import lru_cache
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from assistant.catalog import Catalog, TorchWheel, number
from assistant.catalog.rows import CORE, TorchRelease
from assistant.i18n import _
from assistant.model.errors import BadInput, NothingFits


class Pins(NamedTuple):
    """Pins by package: `torch` and `local` (a tag such as cu124) restrict the build, `family` and `others` go along.

    `releases` are the versions of torch that they allow, worked out once; None where that has not been done.
    """

    torch: SpecifierSet
    local: str | None
    family: tuple[Requirement, ...]
    others: tuple[Requirement, ...]
    releases: frozenset[str] | None = None

    def allow(self, wheel: TorchWheel) -> bool:
        """Return whether a build satisfies the pins."""
        if self.local and wheel.variant not in (self.local, "pypi"):
            return False
        return self.allow_release(wheel.release)

    def allow_release(self, release: TorchRelease) -> bool:
        """Return whether a release satisfies the pins on torch and on its companions."""
        if self.releases is not None:
            return release.version in self.releases
        if not (self.torch or self.family):
            return True
        return _within(self.torch, release.version) and all(companion(pin, release) for pin in self.family)

    def unpinned(self) -> Pins:
        """Return the pins without those that restrict torch."""
        return self._replace(torch=SpecifierSet(), local=None, family=(), releases=None)

    @property
    def text(self) -> str:
        """The pins that restrict torch, as the user may read them."""
        if not (self.torch or self.local or self.family):
            return ""
        torch = f"torch{self.torch}" + (f"+{self.local}" if self.local else "") if self.torch or self.local else ""
        return ", ".join(filter(None, (torch, *map(str, self.family))))


@lru_cache(maxsize=1024)  # a fleet's machines share their pins, and each is compared with every release
def _within(specifiers: SpecifierSet, version: str) -> bool:
    return specifiers.contains(version, prereleases=True)


def companion(pin: Requirement, release: TorchRelease) -> str | None:
    """Return the newest torchvision or torchaudio that goes with a release and satisfies its pin."""
    return next(iter(companions(pin, release)), None)


def companions(pin: Requirement, release: TorchRelease) -> list[str]:
    """Return the versions of torchvision or torchaudio that go with a release and satisfy its pin, the newest first."""
    paired: tuple[str, ...] = getattr(release, canonicalize_name(pin.name))
    return sorted((one for one in paired if _within(pin.specifier, one)), key=number, reverse=True)


def read_pins(pins: Iterable[str], catalog: Catalog, environment: Mapping[str, str]) -> Pins:
    """Split the pins into those on torch, its build, its family and others, with the releases that they allow.

    One whose marker is false in the target's `environment` counts for nothing; `releases` is None where all are.
    Raises `BadInput` for one that cannot be read, `NothingFits` for pins on torch and its family that contradict each
    other or ask for what was never released.
    """
    torch, local = SpecifierSet(), None
    family: list[Requirement] = []
    others: list[Requirement] = []
    for pin in needed(pins, environment):
        name = canonicalize_name(pin.name)
        if name not in CORE:
            others.append(pin)
            continue
        public = SpecifierSet()
        for item in pin.specifier:  # the local part of ==2.6.0+cu124 names the variant
            version, plus, tag = item.version.partition("+")
            if plus and local not in {None, tag.lower()}:
                raise NothingFits(
                    _("{pin} names another build than {build}.", pin=pin, build=local),
                    hint=_("torch and its family must be of one build."),
                )
            local = tag.lower() if plus else local
            public &= SpecifierSet(f"{item.operator}{version}")
        if name == "torch":
            torch &= public
        else:
            pin = copy(pin)  # noqa: PLW2901 - what is read is shared
            pin.specifier = public
            family.append(pin)
    found = Pins(torch, local, tuple(family), tuple(others))
    exact = next((item.version for item in torch if item.operator == "==" and "*" not in item.version), "")
    own = catalog.release(exact) if exact else None
    releases = (own,) if own else catalog.releases
    if allowed := frozenset(release.version for release in releases if found.allow_release(release)):
        return found._replace(releases=allowed if found.text else None)
    for pin in family if any(_within(torch, release.version) for release in catalog.releases) else ():
        alone = found._replace(torch=SpecifierSet(), family=(pin,))
        if torch and any(alone.allow_release(release) for release in catalog.releases):
            raise NothingFits(
                _("{pin} needs a torch version that torch{torch} excludes.", pin=pin, torch=torch),
                hint=_("Drop one of the two pins; each {name} goes with one torch.", name=pin.name),
            )
    hint = _("Loosen or leave out one of these bounds.")
    if not torch.is_unsatisfiable():
        hint = _(
            "The newest release in this catalogue is {version}; for anything newer, choose nightly builds.",
            version=catalog.newest_torch,
            option="--nightly",
        )
    raise NothingFits(_("No release of torch satisfies {pins}.", pins=found.text), hint=hint)


def needed(lines: Iterable[str], environment: Mapping[str, str]) -> list[Requirement]:
    """Read requirements, without markers, as far as they apply where markers have the values of `environment`.

    They are read once and shared: change a copy. Raises `BadInput` for one that cannot be read, and for a torch that is
    named by its file.
    """
    values = tuple(environment.items())
    return [pin for line in lines if (pin := _applied(line, values))]


@lru_cache(maxsize=4096)  # a search reads the same pins once for each release
def _applied(line: str, environment: tuple[tuple[str, str], ...]) -> Requirement | None:
    """Read a requirement, without its marker; None where that is false."""
    try:
        pin = Requirement(line)
    except InvalidRequirement as error:
        raise BadInput(
            _('"{pin}" is not a requirement.', pin=line), hint=_("Write it like torch==2.6.0 or torch<2.7.")
        ) from error
    if pin.url and canonicalize_name(pin.name) in CORE:
        raise BadInput(
            _('"{pin}" names a file; the planner chooses among published releases.', pin=line),
            hint=_("Leave it out here and install that file afterwards."),
        )
    if pin.marker and not pin.marker.evaluate({**dict(environment), "extra": ""}):
        return None
    pin.marker = None
    return pin
