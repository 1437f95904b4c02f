"""What a machine needs before the assistant runs on it: uv, a Python, the assistant's own packages, the scripts."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from assistant.bundle.folder import Folder
from assistant.bundle.kinds import Own, Report
from assistant.bundle.manifest import OWN, UVS, WHEELS, File
from assistant.bundle.own_wheel import own_wheel
from assistant.bundle.pythons import archives
from assistant.host.download import Patience, file_name
from assistant.i18n import LANGUAGES, _, in_language, render
from assistant.model.errors import BadInput, WorkFailed

SCRIPTS = ("start.sh", "start.bat", "start.ps1")
_IN_A_HURRY = Patience(tries=2)  # a bundle without a Python is one all the same
# What the scripts say before the assistant can; uv's own words stand above.
SAYS = {
    "machine": _(
        "This bundle holds nothing for the system or the processor of this machine; its index.html says for which "
        "machines it is."
    ),
    "folder": _(
        "The assistant's own folder cannot be written. Set XDG_DATA_HOME (on Windows LOCALAPPDATA) to a folder of "
        "yours with 2 GB free, then start again."
    ),
    "python": _(
        "There is no Python for the assistant: the bundle brings none, and this machine has none of the versions that "
        "it is for. Install one of those that its folder `assistant` names, then start again."
    ),
    "failed": _(
        "The assistant could not be made ready; uv's own words are above. Copy the bundle again, or free some space, "
        "then start again."
    ),
}


class Starts(NamedTuple):
    """What each platform needs to start, and the Pythons that are carried for it."""

    files: dict[str, list[File]]
    pythons: dict[str, tuple[str, ...]]


def bring_starts(
    held: Folder, own: Sequence[Own], needed: Iterable[tuple[str, str]], files: Mapping[str, File], report: Report
) -> Starts:
    """Write or bring all that starts the assistant on every platform; `needed` are the Pythons of the plans.

    `files` are the wheels that are there, by name. A Python that cannot be had is told, and is no failure. Raises
    `OSError`.
    """
    every = [held.write(script, _script(script)) for script in SCRIPTS]
    every += [held.write(f"{OWN}/says/{name}.txt", _said(name).encode()) for name in SAYS]
    name, content = own_wheel()
    wheel = held.write(f"{WHEELS}/{name}", content)
    found: dict[str, list[File]] = {}
    for one in own:
        name, lines = _list(one, files, wheel)
        of = found.setdefault(one.platform, [*every, wheel])
        of += [held.write(f"{OWN}/{name}.txt", lines), _uv(held, one)]
        of += [files[file_name(package.url)] for package in one.resolution.packages]
    pythons: dict[str, tuple[str, ...]] = {}
    wanted = sorted({*needed, *((one.platform, one.python) for one in own)})
    known = archives(wanted, held.tools)
    for platform, python in wanted:
        try:
            found[platform] += held.bring([known[platform, python]], patience=_IN_A_HURRY)
            pythons[platform] = (*pythons.get(platform, ()), python)
        except (KeyError, WorkFailed, BadInput):
            text = _("Python {python} for {platform} could not be fetched: those machines need one of their own.")
            report(text.format(python=python, platform=platform))
    return Starts(found, pythons)


_STARTS = Path(__file__).with_name("start")


def _script(name: str) -> bytes:
    """Return a start script; cmd misses labels in a file whose lines do not end as Windows has them."""
    content = _STARTS.joinpath(name).read_bytes()
    return content if name.endswith(".sh") else content.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def _said(name: str) -> str:
    """Write a sentence in every language, English first."""
    lines = []
    for code in LANGUAGES:
        with in_language(code):
            lines.append(render(SAYS[name]))
    return "\n".join([*lines, ""])


def _list(own: Own, files: Mapping[str, File], wheel: File) -> tuple[str, bytes]:
    """Return what the start scripts install for the assistant itself, and a name that tells one set from another."""
    lines = [
        f"{one.name}=={one.version} --hash=sha256:{files[file_name(one.url)].sha256}" for one in own.resolution.packages
    ]
    name, version = Path(wheel.path).name.split("-")[:2]
    lines.append(f"{name}=={version} --hash=sha256:{wheel.sha256}")
    content = "\n".join([*lines, ""]).encode()
    return f"{own.platform}-{own.python}-{hashlib.sha256(content).hexdigest()[:12]}", content


def _uv(held: Folder, own: Own) -> File:
    """Take uv itself out of its wheel: the start scripts need it before anything is installed."""
    package = next(one for one in own.resolution.packages if one.name == "uv")
    program = "uv.exe" if own.platform.startswith("windows") else "uv"
    with zipfile.ZipFile(held.path / WHEELS / file_name(package.url)) as wheel:
        inside = next(name for name in wheel.namelist() if name.endswith(f".data/scripts/{program}"))
        return held.write(f"{UVS}/{own.platform}/{program}", wheel.read(inside), program=True)
