"""What a machine needs before the assistant runs on it: uv, a Python, the assistant's own packages, the scripts."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import distribution
from pathlib import Path
from typing import NamedTuple

import assistant
from assistant.api import LANGUAGES, NAME, BadInput, WorkFailed, _, in_language, render, stream
from assistant.api.steps import Fetch, Patience, Tools, file_name, find_uv
from assistant_addons.classroom.folder import OWN, PYTHONS, UVS, WHEELS, File, Folder, Kind
from assistant_addons.classroom.kinds import Own, Report

_DATE = (1980, 1, 1, 0, 0, 0)  # the same assistant gives the same wheel; earlier dates no zip can hold
_ANSWERS = "labs/library/*/ways.toml"  # as pyproject.toml leaves them out
_WHEEL = f"Wheel-Version: 1.0\nGenerator: {NAME}\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
_KEPT = ("METADATA", "entry_points.txt")


def own_wheel() -> tuple[str, bytes]:
    """Return the file name and the content of a wheel of this assistant, however it was installed.

    It is packed from the files that run, so that neither a network nor a build is needed.
    """
    package = Path(assistant.__file__).parent
    module = f"{NAME.replace('-', '_')}"
    stem = f"{module}-{assistant.__version__}"
    sources = [path for path in sorted(package.rglob("*")) if _belongs(path)]
    files = {f"{package.name}/{path.relative_to(package).as_posix()}": path.read_bytes() for path in sources}
    files[f"{module}.py"] = (package.parent / f"{module}.py").read_bytes()
    info, own = f"{stem}.dist-info", distribution(NAME)
    files |= {f"{info}/{name}": (own.read_text(name) or "").encode() for name in _KEPT}
    files[f"{info}/WHEEL"] = _WHEEL.encode()
    rows = [f"{path},sha256={_digest(content)},{len(content)}\n" for path, content in files.items()]
    files[f"{info}/RECORD"] = "".join([*rows, f"{info}/RECORD,,\n"]).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path, _DATE)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            wheel.writestr(entry, content)
    return f"{stem}-py3-none-any.whl", packed.getvalue()


def _belongs(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts and not path.match(_ANSWERS)


def _digest(content: bytes) -> str:
    """Return a SHA-256 as a wheel's RECORD writes it (PEP 376, PEP 427)."""
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


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
    """What is needed to start, and the Pythons that are carried for each platform."""

    files: list[File]
    pythons: dict[str, tuple[str, ...]]


def bring_starts(
    held: Folder, own: Sequence[Own], needed: Iterable[tuple[str, str]], files: Mapping[str, File], report: Report
) -> Starts:
    """Write or bring all that starts the assistant on every platform; `needed` are the Pythons of the plans.

    `files` are the wheels that are there, by name. A Python that cannot be had is told, and is no failure. Raises
    `OSError`.
    """
    found = [held.write(script, _script(script)) for script in SCRIPTS]
    found += [held.write(f"{OWN}/says/{name}.txt", _said(name).encode()) for name in SAYS]
    name, content = own_wheel()
    wheel = held.write(f"{WHEELS}/{name}", content)
    found.append(wheel)
    for one in own:
        name, lines = _list(one, files, wheel)
        found += [held.write(f"{OWN}/{name}.txt", lines), _uv(held, one)]
    pythons: dict[str, tuple[str, ...]] = {}
    wanted = sorted({*needed, *((one.platform, one.python) for one in own)})
    known = archives(wanted, held.tools)
    for platform, python in wanted:
        try:
            found += held.bring([known[platform, python]], patience=_IN_A_HURRY)
            pythons[platform] = (*pythons.get(platform, ()), python)
        except (KeyError, WorkFailed, BadInput):
            text = _("Python {python} for {platform} could not be fetched: those machines need one of their own.")
            report(text.format(python=python, platform=platform))
    return Starts(found, pythons)


_SCRIPTS = Path(__file__).with_name("start")


def _script(name: str) -> bytes:
    """Return a start script; cmd misses labels in a file whose lines do not end as Windows has them."""
    content = _SCRIPTS.joinpath(name).read_bytes()
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
