"""The catalogue: every table that planning rests on, and the few questions that are asked of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, cached_property, lru_cache
from typing import NamedTuple

from assistant.catalog.rows import (
    AmdRelease,
    AmdTarget,
    Branch,
    Companion,
    CudaTables,
    DirectmlTables,
    IndexTables,
    Mirror,
    Override,
    RocmTables,
    SystemTables,
    Tegra,
    TorchRelease,
    TorchTables,
)
from assistant.catalog.tables import read_tables
from assistant.catalog.user import InForce, torch_tables
from assistant.i18n import Text
from assistant.model.record import from_json

Number = tuple[int, ...]
AMD_INDEX = "amd-index"
_DIGITS = re.compile(r"\d+")


@lru_cache(maxsize=4096)
def number(version: str | None) -> Number:
    """Turn "580.95.05" or "2.14.1+cu126" into comparable numbers; () for None or text without any."""
    return tuple(map(int, _DIGITS.findall((version or "").partition("+")[0])))


def python_range(tags: Iterable[str]) -> str:
    """Write the Python versions of wheel tags as a range: "3.8–3.12"; free-threaded builds are left out."""
    versions = sorted({(int(tag[0]), int(tag[1:])) for tag in tags if tag.isdigit()})
    return f"{_dotted(versions[0])}–{_dotted(versions[-1])}" if versions else ""


def _dotted(version: Number) -> str:
    return ".".join(map(str, version))


class TorchWheel(NamedTuple):
    """One published build: a release for a variant on a platform."""

    release: TorchRelease
    number: Number
    variant: str
    platform: str
    glibc: Number
    confirmed: bool

    @property
    def version(self) -> str:
        """The release, such as "2.14.1"."""
        return self.release.version

    @property
    def minor(self) -> Number:
        """The release line, such as (2, 14)."""
        return self.number[:2]

    @property
    def pythons(self) -> tuple[str, ...]:
        """The tags of the Pythons that the build exists for, such as "312"."""
        return self.release.pythons.get(self.platform, self.release.pythons["any"])


class DriverFloor(NamedTuple):
    """The oldest driver that runs a variant, and the one that came with its toolkit (() where none did)."""

    least: Number
    own: Number


class Catalog:
    """What is known of wheels, drivers and systems; read once, asked often.

    `remark` is one sentence where the user's refreshed torch tables had to be passed over, "" else.
    """

    def __init__(
        self,
        torch: TorchTables,
        cuda: CudaTables,
        rocm: RocmTables,
        directml: DirectmlTables,
        systems: SystemTables,
        remark: Text = "",
    ) -> None:
        self.torch, self.cuda, self.rocm, self.directml, self.systems = torch, cuda, rocm, directml, systems
        self.remark = remark
        self._wheels: dict[tuple[str, str | None, str], tuple[TorchWheel, ...]] = {}
        self._pythons: dict[str, frozenset[str]] = {}
        self._sm: dict[tuple[str, str, Number], tuple[tuple[int, ...], int | None]] = {}
        self._gfx: dict[tuple[str, Number], tuple[str, ...]] = {}

    @cached_property
    def releases(self) -> tuple[TorchRelease, ...]:
        """Every torch release, newest first."""
        return tuple(sorted(self.torch.releases.rows, key=lambda row: number(row.version), reverse=True))

    @property
    def newest_torch(self) -> str:
        """The newest torch release that the catalogue knows."""
        return self.releases[0].version

    @cached_property
    def packages(self) -> frozenset[str]:
        """Name every package that a plan of these tables can ask for, and the kernel that each environment gets."""
        companions = {row.package for row in self.torch.companions.rows}
        return frozenset(companions | {"torch", "torchvision", "torchaudio", "torch-directml", "ipykernel"})

    def release(self, version: str) -> TorchRelease | None:
        """Find a release by its public version."""
        return next((row for row in self.releases if number(row.version) == number(version)), None)

    def wheels(self, platform: str, python: str | None, family: str = "") -> tuple[TorchWheel, ...]:
        """List the builds of a variant family for a platform and Python tag, newest first.

        Platforms are named like "linux_x86_64", tags like "312" (None: any), families by the variants' first letters.
        """
        key = (platform, python, family)
        if key not in self._wheels:
            self._wheels[key] = tuple(
                _wheel(row, platform, variant)
                for row in self.releases
                if python is None or python in row.pythons.get(platform, row.pythons["any"])
                for variant in row.variants.get(platform, ())
                if variant.startswith(family)
            )
        return self._wheels[key]

    def pythons(self, platform: str) -> frozenset[str]:
        """Every Python tag for which the platform has some build."""
        if platform not in self._pythons:
            self._pythons[platform] = frozenset(
                tag
                for row in self.releases
                if row.variants.get(platform)
                for tag in row.pythons.get(platform, row.pythons["any"])
            )
        return self._pythons[platform]

    def pythons_of(self, variant: str) -> frozenset[str]:
        """Every Python tag for which some platform has a build of a variant."""
        return frozenset(
            tag
            for row in self.releases
            for platform, variants in row.variants.items()
            if variant in variants
            for tag in row.pythons.get(platform, row.pythons["any"])
        )

    def sm(self, wheel: TorchWheel) -> tuple[tuple[int, ...], int | None]:
        """Answer the machine code of a CUDA build and the PTX that a driver can compile on (90 for 9.0)."""
        key = (wheel.variant, wheel.platform, wheel.minor)
        if key not in self._sm:
            row = next(
                (
                    row
                    for row in self.cuda.code.rows
                    if (row.variant, row.platform) == key[:2] and number(row.first) <= wheel.minor <= number(row.last)
                ),
                None,
            )
            self._sm[key] = (row.sm, row.ptx) if row else ((), None)
        return self._sm[key]

    def gfx(self, wheel: TorchWheel) -> tuple[str, ...]:
        """Answer the GPU targets that work with a ROCm build."""
        key = (wheel.variant, wheel.minor)
        if key not in self._gfx:
            row = next(
                (
                    row
                    for row in self.rocm.code.rows
                    if row.variant == wheel.variant and number(row.first) <= wheel.minor <= number(row.last)
                ),
                None,
            )
            self._gfx[key] = row.gfx if row else ()
        return self._gfx[key]

    @cached_property
    def drivers(self) -> dict[tuple[str, bool], DriverFloor]:
        """Driver floors by variant and by whether the driver is Windows's."""
        rows = self.cuda.drivers.rows
        return {
            **{(row.variant, False): DriverFloor(number(row.linux), number(row.full_linux)) for row in rows},
            **{(row.variant, True): DriverFloor(number(row.windows), number(row.full_windows)) for row in rows},
        }

    @cached_property
    def branches(self) -> dict[Number, Branch]:
        """First and last driver branch by compute capability."""
        return {number(row.capability): row for row in self.cuda.branches.rows}

    @cached_property
    def oldest_driver(self) -> Number:
        """The oldest driver branch that runs some CUDA build of the newest torch release that has one."""
        for release in self.releases:
            builds = {build for builds in release.variants.values() for build in builds}
            floors = [floor.least[:1] for (build, _on), floor in self.drivers.items() if build in builds]
            if floors:
                return min(floors)
        return ()

    @cached_property
    def tegra(self) -> dict[Number, Tegra]:
        """Chips that do not run the code of their desktop relatives, by compute capability."""
        return {number(row.capability): row for row in self.cuda.tegra.rows}

    @cached_property
    def amd_targets(self) -> dict[str, AmdTarget]:
        """AMD's own index by GPU target."""
        return {row.gfx: row for row in self.rocm.amd_index.rows}

    @cached_property
    def amd_releases(self) -> tuple[AmdRelease, ...]:
        """Torch releases of AMD's own index, newest first."""
        return tuple(sorted(self.rocm.amd_releases.rows, key=lambda row: number(row.torch), reverse=True))

    @cached_property
    def overrides(self) -> dict[str, Override]:
        """HSA_OVERRIDE_GFX_VERSION by GPU target."""
        return {row.gfx: row for row in self.rocm.overrides.rows}

    @cached_property
    def companions(self) -> dict[tuple[str, int | None], Companion]:
        """Packages beside torch by name and CUDA major."""
        return {(row.package, row.cuda): row for row in self.torch.companions.rows}

    def index_url(self, variant: str) -> str | None:
        """Answer the index that a variant's torch comes from; None is the installer's default, PyPI."""
        if variant in {"pypi", "directml"}:
            return None
        kind = "amd-index" if variant == AMD_INDEX else "nightly/…" if variant.startswith("nightly/") else ""
        rows = _indexes().indexes.rows
        return next(row.url for row in rows if row.variant == kind or not kind).format(variant=variant)

    @property
    def mirrors(self) -> tuple[Mirror, ...]:
        """Mirrors of PyPI and of torch's index."""
        return _indexes().mirrors.rows


def _wheel(row: TorchRelease, platform: str, variant: str) -> TorchWheel:
    glibc = row.glibc.get(f"{platform}/{variant}") or row.glibc.get(platform) or row.glibc.get("linux")
    confirmed = variant not in row.unconfirmed.get(platform, ())
    return TorchWheel(row, number(row.version), variant, platform, number(glibc), confirmed)


@cache
def _indexes() -> IndexTables:
    return read_tables("indexes", IndexTables)


@cache
def load_catalog(torch: str | None = None) -> Catalog:
    """Read the catalogue once, its torch tables as the user refreshed them; JSON text `torch` stands in for those."""
    own = InForce(from_json(torch, TorchTables, "The refreshed torch table")) if torch else torch_tables()
    return Catalog(
        own.tables,
        read_tables("cuda", CudaTables),
        read_tables("rocm", RocmTables),
        read_tables("directml", DirectmlTables),
        read_tables("systems", SystemTables),
        own.remark,
    )
