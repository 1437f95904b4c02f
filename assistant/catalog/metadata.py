"""What a few small files of a wheel tell: its needs, and of torch the CUDA or ROCm and the GPUs that it has code for.

Nothing of a wheel is run. What its files do not tell stays unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Literal, Protocol

from packaging.metadata import parse_email
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from assistant.model.record import Record, replace

Side = Literal["head", "tail"]


class Contents(Protocol):
    """A wheel that is read in pieces: `more` meets more `files`, from either end of its table of contents."""

    @property
    def files(self) -> tuple[str, ...]: ...  # noqa: D102 - as the class says

    @property
    def last(self) -> tuple[str, ...]: ...  # noqa: D102 - those that were met from the end

    @property
    def listed(self) -> bool: ...  # noqa: D102 - whether all files were met

    def more(self, side: Side) -> bool: ...  # noqa: D102 - False where there is no more

    def read(self, name: str) -> bytes | None: ...  # noqa: D102 - None for a file that was not met


class WheelFacts(Record, frozen=True):
    """What a wheel tells of itself.

    `requires` are the requirements of its metadata without those of extras. Of torch itself: `build` is its variant,
    such as "cu132", "" where it does not tell; `sm` and `ptx` as in `CudaCode`, `gfx` as in `RocmCode`, () where they
    are unknown.
    """

    name: str
    version: str
    requires: tuple[str, ...] = ()
    build: str = ""
    sm: tuple[int, ...] = ()
    ptx: int | None = None
    gfx: tuple[str, ...] = ()

    def bounds(self, name: str) -> str | None:
        """Return the bounds that it sets for a distribution, None where it does not require it."""
        needs = (Requirement(line) for line in self.requires)
        return next((str(need.specifier) for need in needs if canonicalize_name(need.name) == name), None)


_VERSION, _CUDA_CONFIG = "torch/version.py", "torch/include/ATen/cuda/CUDAConfig.h"
_ROCBLAS = "torch/lib/rocblas/library/"


def wheel_facts(wheel: Contents) -> WheelFacts | None:
    """Read what a wheel tells, and no more of it than that needs; None where it has no metadata."""
    path = _until(wheel, lambda name: name.count("/") == 1 and name.endswith(".dist-info/METADATA"), ("tail", "head"))
    # Metadata-Version: 2.4 / Name: torch / Version: 2.15.0 / Provides-Extra: optree / Requires-Dist: filelock …
    metadata, _rest = parse_email(wheel.read(path) or b"") if path else ({}, {})
    name, version = metadata.get("name"), metadata.get("version")
    if not (name and version):
        return None
    lines = metadata.get("requires_dist", [])
    facts = WheelFacts(name=canonicalize_name(name), version=version, requires=tuple(filter(_needed, lines)))
    return facts if facts.name != "torch" else _of_torch(wheel, facts, metadata.get("provides_extra", []))


def _needed(line: str) -> bool:
    """Return whether a Requires-Dist line can be read and is not for an extra: "torch==2.15.0; extra == 'x'" is."""
    try:
        need = Requirement(line)
    except InvalidRequirement:
        return False
    return "extra" not in str(need.marker or "")


def _of_torch(wheel: Contents, facts: WheelFacts, extras: Iterable[str]) -> WheelFacts:
    """Add what torch's own files tell of its build and its code."""
    said = _text(wheel, _until(wheel, lambda name: name == _VERSION, ("head",)))
    # __version__ = '2.15.0+cu132'   cuda: Optional[str] = '13.2'   hip: Optional[str] = None
    build = re.search(r"^__version__ = '[^'+]+\+([^']+)'", said, re.MULTILINE)
    on = {kind for kind in ("cuda", "hip") if re.search(rf"^{kind}\b[^=\n]*= '", said, re.MULTILINE)}
    facts = replace(facts, build=build[1] if build else "")
    if "hip" in on:
        gfx = {extra.removeprefix("device-") for extra in extras if re.fullmatch(r"device-gfx[0-9a-f]+", extra)}
        gfx = gfx or _rocblas_targets(wheel)
        return replace(facts, gfx=tuple(sorted(gfx, key=lambda one: (len(one), one))))
    if "cuda" in on:
        sm, ptx = _cuda_targets(_text(wheel, _until(wheel, lambda name: name == _CUDA_CONFIG, ("head",))))
        return replace(facts, sm=sm, ptx=ptx)
    return facts


# #define NVCC_FLAGS_EXTRA "-gencode;arch=compute_90,code=sm_90;-gencode;arch=compute_120,code=[sm_120,compute_120]"
def _cuda_targets(config: str) -> tuple[tuple[int, ...], int | None]:
    """Read machine code and newest PTX off the flags that torch was built with.

    Code with a letter, such as sm_90a, runs on no other card of its line and is left out.
    """
    flags = re.search(r'#define NVCC_FLAGS_EXTRA "([^"]*)"', config)
    codes = re.findall(r"code=\[?([^;\]]+)", flags[1]) if flags else []
    found = re.findall(r"\b(sm|compute)_(\d+)\b", ",".join(codes))
    ptx = [int(number) for kind, number in found if kind == "compute"]
    return tuple(sorted({int(number) for kind, number in found if kind == "sm"})), max(ptx, default=None)


def _rocblas_targets(wheel: Contents) -> set[str]:
    """Read the targets off rocBLAS's files, of which a wheel holds those for its own targets alone.

    https://github.com/pytorch/pytorch/blob/main/.ci/manywheel/build_rocm.sh (ROCBLAS_LIB_FILES). Each target has one
    index, such as torch/lib/rocblas/library/TensileLibrary_lazy_gfx1100.dat. The files of a folder stand together,
    so they are complete where the piece before them has none.
    """

    def own(names: Iterable[str]) -> set[str]:
        return {name.removeprefix(_ROCBLAS) for name in names if name.startswith(_ROCBLAS)}

    while not wheel.listed:
        before = own(wheel.last)
        if not wheel.more("tail"):
            return set()
        if before and own(wheel.last) == before == own(wheel.files):
            break
    indexes = (re.fullmatch(r"TensileLibrary_lazy_(gfx[0-9a-f]+)\.dat", name) for name in own(wheel.files))
    return {index[1] for index in indexes if index}


def _until(wheel: Contents, wanted: Callable[[str], bool], sides: tuple[Side, ...]) -> str:
    """Read on, by turns from these sides, until a file is met; "" where there is none."""
    turn = 0
    while not (found := next(filter(wanted, wheel.files), "")):
        if not wheel.more(sides[turn % len(sides)]):
            return ""
        turn += 1
    return found


def _text(wheel: Contents, name: str) -> str:
    return (wheel.read(name) or b"").decode("utf-8", "replace") if name else ""
