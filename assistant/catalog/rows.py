"""The rows of the catalogue's tables, one record per kind; versions are text as published."""

from __future__ import annotations

from typing import Literal

from assistant.catalog.tables import DatedRow, Table
from assistant.model.record import Record


class Macos(Record, frozen=True):
    """The oldest macOS that loads a wheel, and the oldest on which its MPS backend works."""

    wheel: str
    mps: str


FAMILY = ("torchvision", "torchaudio")  # whose pairs with torch stand in the rows of its releases
CORE = frozenset({"torch", *FAMILY})


class TorchRelease(DatedRow, frozen=True, kw_only=True):
    """One release: per platform its Python tags ("312", "313t") and its variants, best first where all else is equal.

    `pythons["any"]` holds for platforms that are not named; `unconfirmed` are variants that no index has been seen
    to hold; `pypi` is the variant that plain PyPI serves; `glibc` keys are "linux", a platform, or platform/variant;
    `mb` is the size of the PyPI wheel in MB.
    """

    version: str
    date: str
    pythons: dict[str, tuple[str, ...]]
    variants: dict[str, tuple[str, ...]]
    pypi: dict[str, str]
    glibc: dict[str, str]
    macos: Macos
    unconfirmed: dict[str, tuple[str, ...]] = {}
    torchvision: tuple[str, ...] = ()
    torchaudio: tuple[str, ...] = ()
    mb: dict[str, int] = {}


class Basic(DatedRow, frozen=True, kw_only=True):
    """What every plan adds beside torch: the Python tags of its wheels per platform; `cuda` is the major it needs."""

    package: str
    pythons: dict[str, tuple[str, ...]]
    cuda: int | None = None
    requirement: str | None = None


class Download(Record, frozen=True):
    """What a variant draws in beside or instead of the wheel that PyPI serves, in MB; a variant may be a prefix.

    `note` is for whoever reads or maintains the table.
    """

    variant: str
    platform: str
    mb: int
    note: str = ""


class LaterCompanion(DatedRow, frozen=True, kw_only=True):
    """A torchvision or torchaudio that came out for no one release of torch: the builds and Pythons that it has.

    `pythons` is empty where its wheels take any Python; `pypi` is the variant that plain PyPI serves.
    """

    package: str
    version: str
    variants: dict[str, tuple[str, ...]]
    pythons: tuple[str, ...] = ()


class TorchTables(Record, frozen=True):
    """Releases of torch and what goes with them."""

    releases: Table[TorchRelease]
    basics: Table[Basic]
    downloads: Table[Download]
    later: Table[LaterCompanion] = Table(source="", as_of="", rows=())


class Driver(Record, frozen=True):
    """The oldest NVIDIA driver on which a variant runs, and the one that came with its toolkit (`full_*`)."""

    variant: str
    linux: str
    windows: str
    full_linux: str | None = None
    full_windows: str | None = None


class CudaCode(Record, frozen=True):
    """Machine code in a variant's wheels from torch `first` to `last` (minor versions); `ptx` can be compiled on."""

    variant: str
    platform: str
    first: str
    last: str
    sm: tuple[int, ...]
    ptx: int | None = None


class Branch(Record, frozen=True):
    """The first and the last driver branch that know a compute capability."""

    capability: str
    driver: str | None = None
    last: str | None = None


class Jetson(Record, frozen=True):
    """Where a Jetson board's wheels come from."""

    board: str
    capabilities: tuple[str, ...]
    wheels: str


class Family(Record, frozen=True):
    """The compute capability to assume of a card that no table lists, where its name matches.

    The first row counts; the last one, without words, is for every other name: any current build serves it.
    """

    words: str
    capability: str


class Tegra(Record, frozen=True):
    """A capability whose chips do not run the code of their desktop relatives, or only that of a newer CUDA."""

    capability: str
    desktop_code_from: str = ""


class DriverState(Record, frozen=True):
    """What NVIDIA's driver can be but ready: `words` recognise it in facts and texts; the first row that fits counts.

    `text` says what it means, `help` what to do, `wsl_help` what to do in WSL where that differs.
    """

    key: str
    words: str
    text: str
    help: str
    wsl_help: str = ""


class CudaTables(Record, frozen=True):
    """Drivers and their states, code, families and boards of NVIDIA."""

    drivers: Table[Driver]
    code: Table[CudaCode]
    branches: Table[Branch]
    families: Table[Family]
    jetson: Table[Jetson]
    tegra: Table[Tegra]
    states: Table[DriverState]


class RocmCode(Record, frozen=True):
    """GPU targets that work with a variant's Linux wheels from torch `first` to `last` (minor versions)."""

    variant: str
    first: str
    last: str
    gfx: tuple[str, ...]


class AmdTarget(Record, frozen=True):
    """A GPU target of AMD's own indexes, per operating system; `tested` where AMD runs tests on it."""

    gfx: str
    systems: tuple[Literal["linux", "windows"], ...]
    tested: tuple[Literal["linux", "windows"], ...] = ()
    nightly_only: bool = False


class AmdIndex(Record, frozen=True):
    """One of AMD's own indexes of packages; the one with the key "nightly" holds the builds of each night."""

    key: str
    url: str


class AmdRelease(DatedRow, frozen=True, kw_only=True):
    """A torch release for ROCm `rocm` on one of AMD's indexes; `adrenalin` is the Windows driver that AMD advises."""

    torch: str
    rocm: str
    index: str
    systems: tuple[Literal["linux", "windows"], ...]
    pythons: tuple[str, ...]
    glibc: str
    adrenalin: str = ""


class RocmEnd(Record, frozen=True):
    """The first ROCm that no longer has the kernels of a target."""

    gfx: str
    rocm: str


class Override(Record, frozen=True):
    """HSA_OVERRIDE_GFX_VERSION for a target that a Linux wheel lacks: it then runs the code of `as_gfx`.

    `note` is for whoever reads or maintains the table.
    """

    gfx: str
    value: str
    as_gfx: str
    state: Literal["works", "fallback", "poor"]
    note: str = ""


class RocmFamily(Record, frozen=True):
    """A family of targets: whether AMD's WSL runtime knows it, and whether a newer ROCm may still add members."""

    prefix: str
    wsl: bool
    current: bool


class RocmCaveat(Record, frozen=True):
    """What to know of an integrated GPU that works; a `slow` one is no faster than the processor beside it."""

    gfx: str
    text: str
    slow: bool = False


class RocmTables(Record, frozen=True):
    """What runs on AMD GPUs."""

    code: Table[RocmCode]
    amd_targets: Table[AmdTarget]
    amd_indexes: Table[AmdIndex]
    amd_releases: Table[AmdRelease]
    ends: Table[RocmEnd]
    overrides: Table[Override]
    families: Table[RocmFamily]
    caveats: Table[RocmCaveat]


class DirectmlRelease(Record, frozen=True):
    """A torch-directml release with the torch and torchvision that it pins."""

    version: str
    date: str
    torch: str
    torchvision: str
    pythons: tuple[str, ...]


class WindowsBuild(Record, frozen=True):
    """A Windows build that came with a DirectML of its own."""

    build: int
    name: str


class DirectmlTables(Record, frozen=True):
    """torch-directml and the Windows that it needs."""

    releases: Table[DirectmlRelease]
    windows: Table[WindowsBuild]


class SystemNeed(Record, frozen=True):
    """Something that must be on the system, by its key in needs.json; `what` is its version."""

    key: str
    what: str = ""


class Trial(Record, frozen=True):
    """Lines of Python that show that something works; `on_cpu` says whether they run without a GPU, None is unknown."""

    call: str
    on_cpu: bool | None = None


class Distribution(Record, frozen=True):
    """Linux distributions (lower-case names) and the glibc of each of their versions."""

    names: tuple[str, ...]
    versions: dict[str, str]


class Hiding(Record, frozen=True):
    """A variable that can hide every GPU of some vendors from torch."""

    variable: str
    vendors: tuple[str, ...]


class XpuFloor(Record, frozen=True):
    """The first torch whose XPU build runs on a system, and the Windows that Intel documents for it."""

    system: Literal["linux", "windows", "wsl"]
    torch: str
    documented_build: int = 0
    documented_name: str = ""


class SystemTables(Record, frozen=True):
    """Operating systems, and what they set."""

    glibc: Table[Distribution]
    hiding: Table[Hiding]
    xpu: Table[XpuFloor]


class Index(Record, frozen=True):
    """An index of torch wheels; `{variant}` in the address is filled in."""

    variant: str
    url: str


class Mirror(Record, frozen=True):
    """A mirror; a `flat` one is a list of files for --find-links, never an index.

    `state` and `caveats` are for whoever reads or maintains the table.
    """

    id: str
    name: str
    serves: Literal["torch", "pypi", "amd"]
    url: str
    flat: bool = False
    state: str = ""
    caveats: tuple[str, ...] = ()


class IndexTables(Record, frozen=True):
    """Where wheels come from."""

    indexes: Table[Index]
    mirrors: Table[Mirror]
