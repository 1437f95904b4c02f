"""The rows that code reads by field, one record per kind; versions are text as published."""

from __future__ import annotations

from typing import Literal

from assistant.model.record import Record

FAMILY = ("torchvision", "torchaudio")  # whose pairs with torch stand in the rows of its releases
CORE = frozenset({"torch", *FAMILY})


class DatedRow(Record, frozen=True):
    """A row that a refresh can bring up to date; `as_of` is the day it was read, where that is not its table's."""

    as_of: str = ""


class Macos(Record, frozen=True):
    """The oldest macOS that loads a wheel, and the oldest on which its MPS backend works."""

    wheel: str
    mps: str


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


class AmdRelease(DatedRow, frozen=True, kw_only=True):
    """A torch release for ROCm `rocm` on one of AMD's indexes; `adrenalin` is the Windows driver that AMD advises."""

    torch: str
    rocm: str
    index: str
    systems: tuple[Literal["linux", "windows"], ...]
    pythons: tuple[str, ...]
    glibc: str
    adrenalin: str = ""


class Driver(Record, frozen=True):
    """The oldest NVIDIA driver on which a variant runs, and the one that came with its toolkit (`full_*`)."""

    variant: str
    linux: str
    windows: str
    full_linux: str | None = None
    full_windows: str | None = None


class BuildCode(Record, frozen=True):
    """The code in a variant's wheels from torch `first` to `last` (minor versions).

    `sm` is the machine code of a CUDA build for a platform and `ptx` what a driver can compile on, `gfx` the targets
    that work with a ROCm build for Linux.
    """

    variant: str
    first: str
    last: str
    platform: str = ""
    sm: tuple[int, ...] = ()
    ptx: int | None = None
    gfx: tuple[str, ...] = ()


class SystemNeed(Record, frozen=True):
    """Something that must be on the system, by its key in needs.json; `what` is its version."""

    key: str
    what: str = ""


class Trial(Record, frozen=True):
    """Lines of Python that show that something works; `on_cpu` says whether they run without a GPU, None is unknown."""

    call: str
    on_cpu: bool | None = None
