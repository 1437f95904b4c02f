"""Makes a bundle: plans, fetches, writes the locks, the start scripts and the page; what is there already stays."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from assistant.bundle.folder import Folder
from assistant.bundle.kinds import Kinds, Own, Report, Resolved, Wanted, kinds_of, own_packages
from assistant.bundle.lock import lock_text
from assistant.bundle.manifest import LOCKS, OWN, UVS, WHEELS, Bundle, File, Kind, read_bundle, write_bundle
from assistant.bundle.own_wheel import own_wheel
from assistant.bundle.page import bundle_page
from assistant.bundle.platforms import platform_of
from assistant.bundle.pythons import archives
from assistant.export import PAGE, Setup, kit_name
from assistant.host.download import Fetch, Patience, file_name
from assistant.i18n import _, render
from assistant.install import Package, Tools
from assistant.model.errors import BadInput, WorkFailed, unwritable
from assistant.model.record import replace
from assistant.views import plan_title

_STARTS = Path(__file__).with_name("start")
SCRIPTS = ("start.sh", "start.bat", "start.ps1")
_IN_A_HURRY = Patience(tries=2)  # a bundle without a Python is one all the same


class Made(NamedTuple):
    """A finished bundle, the bytes that had to be fetched for it, and the machines for which the work failed."""

    bundle: Bundle
    fetched: int
    failed: tuple[str, ...]


def make(folder: Path, wanted: Sequence[Wanted], tools: Tools, report: Report) -> Made:
    """Let a folder be the bundle for some machines; one that was interrupted, or is of yesterday, is gone on with.

    Raises `NothingFits`, `Cancelled`, `BadInput` for a folder with other files, and `WorkFailed` with what was fetched
    kept.
    """
    before = _begun(folder)
    try:
        found = kinds_of(wanted, tools, report)
        if not found.kinds:
            raise WorkFailed(found.without[0].why, hint=_("Check the network and the index, and start again."))
        folder.mkdir(parents=True, exist_ok=True)
        write_bundle(folder, replace(before, made=""))
        held = Folder(folder, before, tools)
        bundle = _filled(held, found, report)
        held.keep_only(bundle.files)
        write_bundle(folder, bundle)
    except OSError as error:
        raise unwritable(folder, error) from error
    return Made(bundle, held.fetched, found.failed)


def _begun(folder: Path) -> Bundle:
    """Return the bundle that stands in a folder, an empty one for an empty folder; raise `BadInput` for another."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return Bundle()
    return read_bundle(folder)


def _filled(held: Folder, found: Kinds, report: Report) -> Bundle:
    """Bring and write every file of a bundle."""
    own = own_packages(found.kinds, held.tools)
    wheels = _wheels(one for kind in (*found.kinds, *own) for one in kind.resolution.packages)
    size = sum(one.size or 0 for one in wheels) // 10**6
    report(_("Fetching {count} files of {size} MB, without those that are here", count=len(wheels), size=size))
    logins = dict.fromkeys(kind.plan.index_url for kind in found.kinds if kind.plan.index_url)
    files = {Path(one.path).name: one for one in held.bring(wheels, index_urls=tuple(logins))}
    carried, pythons = _pythons(held, found.kinds, own, report)
    kinds = _named(found.kinds)
    name, content = own_wheel()
    written = [held.write(f"{WHEELS}/{name}", content)]
    for kind, packages in zip(kinds, (one.resolution.packages for one in found.kinds), strict=True):
        written.append(held.write(kind.lock, lock_text(kind.python, packages, files).encode()))
    for one in own:
        lines = _own_lines(one, files, written[0])
        written += [held.write(f"{OWN}/{one.platform}-{one.python}.txt", lines), _uv(held, one)]
    written += [held.write(script, (_STARTS / script).read_bytes()) for script in SCRIPTS]
    bundle = Bundle(
        made=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), kinds=kinds, without=found.without, pythons=carried
    )
    every = {one.path: one for one in (*files.values(), *pythons, *written)}
    bundle = replace(bundle, files=tuple(every[path] for path in sorted(every)))
    shown = held.write(PAGE, bundle_page(bundle).encode())
    return replace(bundle, files=(*bundle.files, shown))


def _wheels(packages: Iterable[Package]) -> list[Fetch]:
    """Return every file once; raise `WorkFailed` where two have the same name and are not the same."""
    found: dict[str, Package] = {}
    for one in packages:
        name = file_name(one.url)
        if not name:
            raise BadInput(
                _("{url} does not name a file.", url=one.url), hint=_("The index is broken; choose another one.")
            )
        first = found.setdefault(name, one)
        if first.sha256 != one.sha256:
            raise WorkFailed(
                _("{one} and {other} are different files of the same name.", one=first.url, other=one.url),
                hint=_("Make a bundle for each of the machines that they are for, or name one index for both."),
            )
    return [
        Fetch(url=one.url, path=f"{WHEELS}/{name}", sha256=one.sha256, size=one.size) for name, one in found.items()
    ]


def _pythons(
    held: Folder, kinds: Sequence[Resolved], own: Sequence[Own], report: Report
) -> tuple[dict[str, tuple[str, ...]], list[File]]:
    """Bring a Python for each that is needed; one that cannot be had is told, and is no failure."""
    needed = {(platform_of(kind.machine), kind.plan.python) for kind in kinds}
    needed |= {(one.platform, one.python) for one in own}
    found = archives(needed, held.tools)
    carried: dict[str, tuple[str, ...]] = {}
    files: list[File] = []
    for platform, python in sorted(needed):
        try:
            files += held.bring([found[platform, python]], patience=_IN_A_HURRY)
        except (KeyError, WorkFailed):
            report(
                _(
                    "Python {python} for {platform} could not be fetched: those machines need one of their own.",
                    python=python,
                    platform=platform,
                )
            )
            continue
        carried[platform] = (*carried.get(platform, ()), python)
    return carried, files


def _named(kinds: Sequence[Resolved]) -> tuple[Kind, ...]:
    """Give each kind a key of its own."""
    seen: dict[str, int] = {}
    named = []
    for one in kinds:
        key = kit_name(Setup(machine=one.machine, plan=one.plan))
        seen[key] = seen.get(key, 0) + 1
        key = key if seen[key] == 1 else f"{key}-{seen[key]}"
        named.append(
            Kind(
                key=key,
                title=render(plan_title(one.plan)),
                machines=one.names,
                plan=one.plan,
                lock=f"{LOCKS}/{key}/pylock.toml",
                python=one.plan.python,
                machine=one.machine,
            )
        )
    return tuple(named)


def _own_lines(own: Own, files: dict[str, File], wheel: File) -> bytes:
    """Write what the start scripts install for the assistant itself; the first line tells one set from another."""
    lines = [
        f"{one.name}=={one.version} --hash=sha256:{files[file_name(one.url)].sha256}" for one in own.resolution.packages
    ]
    name, version = Path(wheel.path).name.split("-")[:2]
    lines.append(f"{name}=={version} --hash=sha256:{wheel.sha256}")
    return "\n".join([f"# {hashlib.sha256(repr(lines).encode()).hexdigest()[:12]}", *lines, ""]).encode()


def _uv(held: Folder, own: Own) -> File:
    """Take uv itself out of its wheel: the start scripts need it before anything is installed."""
    package = next(one for one in own.resolution.packages if one.name == "uv")
    program = "uv.exe" if own.platform.startswith("windows") else "uv"
    with zipfile.ZipFile(held.path / WHEELS / file_name(package.url)) as wheel:
        inside = next(name for name in wheel.namelist() if name.endswith(f".data/scripts/{program}"))
        return held.write(f"{UVS}/{own.platform}/{program}", wheel.read(inside), program=True)
