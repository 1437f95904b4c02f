"""Wheels of torch's names and versions with a stand-in of a few kilobytes, which makes torch's own checks.

These are which build it is, whether the machine's driver is new enough for it, and whether it holds code for the card.
What the builds hold is the catalogue's.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from assistant.catalog import Catalog, TorchWheel, number
from assistant.labs.wheels import wheel

PLATFORM = "linux_x86_64"
OLDEST = (2, 7)  # the release line from which on the indexes hold torch
CODE = Path(__file__).with_name("programs")
_SUMMARY = "A stand-in for torch in a lab: it checks build, driver and card as torch does, and computes nothing else"


def torch_files(version: str, build: str, catalog: Catalog) -> dict[str, str]:
    """Return the stand-in's files by name for a version and the build that it is, such as "cu130" or "cpu"."""
    files = {
        f"torch/{path.name}": path.read_text("utf-8") for path in sorted((CODE / "stand_in" / "torch").glob("*.py"))
    }
    known = {one.variant: one for one in catalog.wheels(PLATFORM, None) if one.version == version.partition("+")[0]}
    held = known.get(build)
    driver = catalog.driver(build) if build.startswith("cu") else None
    cuda = f"{build[2:-1]}.{build[-1]}" if driver else None
    files["torch/version.py"] = f"__version__ = {version!r}\ncuda = {cuda!r}\nhip = None\n"
    files["torch/build.py"] = (
        '"""What the build holds: the oldest driver that runs it, code for cards, and PTX for newer ones."""\n\n'
        f"LEAST_DRIVER = {driver and driver.linux!r}\nCODE = {list(held.sm) if held else []}\n"
        f"PTX = {held.ptx if held else None}\n"
    )
    return files


def torch_indexes(catalog: Catalog) -> dict[str, dict[str, bytes]]:
    """Return the wheels of PyTorch's indexes ("cpu", "cu130", …) and of PyPI ("pypi") by index and version."""
    found: dict[str, dict[str, bytes]] = {}
    for index, version, build in _builds(catalog):
        content = wheel("torch", version, torch_files(version, build, catalog), summary=_SUMMARY)
        found.setdefault(index, {})[version] = content
    return found


def _builds(catalog: Catalog) -> Iterator[tuple[str, str, str]]:
    """Yield the index, the version and the build of each wheel for the CPU and for CUDA."""
    for one in catalog.wheels(PLATFORM, None):
        if one.minor >= OLDEST and _offered(one):
            yield one.variant, f"{one.version}+{one.variant}", one.variant
    for release in catalog.releases:
        if number(release.version) >= OLDEST:
            yield "pypi", release.version, catalog.build_of(release.version, "pypi", PLATFORM)


def _offered(one: TorchWheel) -> bool:
    return one.variant == "cpu" or (one.variant.startswith("cu") and bool(one.sm))
