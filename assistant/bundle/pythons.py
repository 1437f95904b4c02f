"""The Pythons that a bundle carries: uv's own, as archives that uv on the machine unpacks from the folder."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from assistant.bundle.manifest import PYTHONS, Kind
from assistant.host.download import Fetch, file_name
from assistant.host.process import stream
from assistant.install import Tools, find_uv

_ARCH = {"arm64": "aarch64"}  # as uv names it


def archives(wanted: Iterable[tuple[str, str]], tools: Tools) -> dict[tuple[str, str], Fetch]:
    """Return the newest archive for each platform and Python ("3.12"); what uv has none for is left out.

    It lies as uv looks for it below `UV_PYTHON_INSTALL_MIRROR`, and uv knows its hash by itself:
    https://docs.astral.sh/uv/reference/environment/#uv_python_install_mirror
    """
    pairs = set(wanted)
    if not pairs or tools.sources.offline:
        return {}
    words = [
        find_uv(),
        "python",
        "list",
        "--all-platforms",
        "--all-arches",
        "--only-downloads",
        "--output-format",
        "json",
    ]
    listed: list[str] = []
    if stream([*words, "--no-config"], listed.append, cancel=tools.cancel):
        return {}
    rows = [row for line in listed if line.startswith("[") for row in json.loads(line)]
    found: dict[tuple[str, str], Fetch] = {}
    for platform, python in sorted(pairs):
        system, _dash, arch = platform.partition("-")
        fits = (system, _ARCH.get(arch, arch), "gnu" if system == "linux" else "none", "cpython", "default")
        row = next((row for row in rows if _kind(row) == fits and row["version"].startswith(f"{python}.")), None)
        if row:
            found[platform, python] = Fetch(url=row["url"], path=f"{PYTHONS}/{platform}/{_place(row['url'])}")
    return found


def unpack_python(folder: Path, kind: Kind) -> None:
    """Let this machine have the Python of a kind, where the bundle carries it; uv finds it later by itself.

    Whether there is one now, the installation tells.
    """
    place = folder / PYTHONS / kind.platform
    if place.is_dir():
        words = [find_uv(), "python", "install", "--no-config", "--quiet", kind.python]
        known = {"UV_PYTHON_INSTALL_MIRROR": place.as_uri(), "UV_PYTHON_INSTALL_BIN": "0"}
        stream(words, lambda _line: None, environment={**known, "UV_PYTHON_INSTALL_REGISTRY": "0"})


def _kind(row: dict[str, str]) -> tuple[str, ...]:
    return tuple(row[name] for name in ("os", "arch", "libc", "implementation", "variant"))


def _place(url: str) -> str:
    """Return the last two parts of an address: the release and the file."""
    return f"{url.split('/')[-2]}/{file_name(url)}"
