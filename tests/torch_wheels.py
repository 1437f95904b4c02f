"""Small wheels of torch that carry what real ones tell of themselves: versions, flags of nvcc, files of rocBLAS."""

from __future__ import annotations

import zipfile
from pathlib import Path

from loopback import LoopbackIndex

LINUX, ARM, WINDOWS = "manylinux_2_28_x86_64", "manylinux_2_28_aarch64", "win_amd64"


def add_torch(  # noqa: PLR0913 - what a wheel may tell
    index: LoopbackIndex,
    version: str,
    build: str = "",
    *,
    python: str = "312",
    platform: str = LINUX,
    sm: tuple[int, ...] = (),
    ptx: int | None = None,
    gfx: tuple[str, ...] = (),
    requires: tuple[str, ...] = (),
    of: str = "",
    more: int = 0,
) -> Path:
    """Put a wheel on an index: `of` is the build of one without a local version, `more` the number of idle files."""
    local = f"{version}+{build}" if build else version
    wheel = index.add("torch", local, f"cp{python}-cp{python}-{platform}", requires)
    told = build or of
    cuda, hip = f"'{told[2:4]}.{told[4:]}'" if told.startswith("cu") else "None", told.startswith("rocm")
    files = {
        "torch/version.py": f"__version__ = '{version}{'+' * bool(told)}{told}'\ncuda: Optional[str] = {cuda}\n"
        f"hip: Optional[str] = {repr(told[4:]) if hip else None}\n"
    }
    if sm:
        flags = [f"arch=compute_{one},code=sm_{one}" for one in sm] + [f"arch=compute_{ptx},code=compute_{ptx}"] * bool(
            ptx
        )
        text = "".join(f";-gencode;{flag}" for flag in flags).removeprefix(";")
        files["torch/include/ATen/cuda/CUDAConfig.h"] = f'#define NVCC_FLAGS_EXTRA "{text}"\n'
    for target in gfx:
        files[f"torch/lib/rocblas/library/TensileLibrary_lazy_{target}.dat"] = ""
        files[f"torch/lib/rocblas/library/Kernels.so-000-{target}.hsaco"] = ""
    files |= {f"torch/include/ATen/ops/{'_' * 40}op_{number:05}_native.h": "" for number in range(more)}
    rewrite(wheel, lambda old: dict(sorted({**files, **old}.items(), key=lambda one: (".dist-info/" in one[0], one))))
    return wheel


def rewrite(wheel: Path, change: object) -> None:
    """Write a wheel's files anew, as `change` returns them by name."""
    with zipfile.ZipFile(wheel) as read:
        files = {name: read.read(name) for name in read.namelist()}
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as written:
        for name, content in change(files).items():  # type: ignore[operator] # a function of those files
            written.writestr(name, content)
