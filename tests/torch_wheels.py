"""Small wheels with the names of torch's, and wheels whose files are changed."""

from __future__ import annotations

import zipfile
from pathlib import Path

from loopback import LoopbackIndex

LINUX, ARM, WINDOWS = "manylinux_2_28_x86_64", "manylinux_2_28_aarch64", "win_amd64"


def add_torch(
    index: LoopbackIndex,
    version: str,
    build: str = "",
    *,
    python: str = "312",
    platform: str = LINUX,
    requires: tuple[str, ...] = (),
) -> Path:
    """Put a wheel of torch on an index."""
    local = f"{version}+{build}" if build else version
    return index.add("torch", local, f"cp{python}-cp{python}-{platform}", requires)


def rewrite(wheel: Path, change: object) -> None:
    """Write a wheel's files anew, as `change` returns them by name."""
    with zipfile.ZipFile(wheel) as read:
        files = {name: read.read(name) for name in read.namelist()}
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as written:
        for name, content in change(files).items():  # type: ignore[operator] # a function of those files
            written.writestr(name, content)
