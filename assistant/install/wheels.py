"""Brings the wheels of a resolution to this disk, and fills a folder with them for the place where it will lie.

An installer's cache may hold files that a power cut left empty. uv links files from its cache of unpacked wheels and
does not look at them again, so a damaged one would come into every environment from then on. The wheels themselves,
whose hashes were checked, say how large each file is.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import threading
import time
import uuid
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

from packaging.utils import parse_wheel_filename

from assistant.host.base import Host
from assistant.host.download import Fetch, download, file_name
from assistant.host.files import discard_folder, open_plain, patiently, write_whole
from assistant.host.folders import user_cache
from assistant.host.index import local_path
from assistant.host.lock import Lock
from assistant.host.parallel import Ahead
from assistant.host.process import CancelToken, stream
from assistant.i18n import _
from assistant.install.inspect_env import Site, interpreter, package_folders
from assistant.install.installer import Installer, disk_obstacle
from assistant.install.resolution import Package, resolve
from assistant.install.target import check_lengths
from assistant.install.transaction import Transaction
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.event import Part
from assistant.model.plan import Plan
from assistant.model.record import replace

REPORT_SECONDS = 0.1  # between two events of progress
SCRIPTS = "Scripts" if os.name == "nt" else "bin"
PIP = "pip"
# Where `ensurepip` finds pip's wheel (Lib/ensurepip/__init__.py); Debian's and Fedora's Python have it elsewhere, in
# WHEEL_PKG_DIR (https://docs.python.org/3/using/configure.html#cmdoption-with-wheel-pkg-dir).
_FIND = """
import glob, os, sysconfig
folders = os.path.join(sysconfig.get_path("stdlib"), "ensurepip", "_bundled"), sysconfig.get_config_var("WHEEL_PKG_DIR")
print(*[wheel for folder in folders if folder for wheel in glob.glob(os.path.join(folder, "pip-*.whl"))], sep="\\n")
"""


def cache_folder() -> Path:
    """Return the folder of downloaded wheels; each lies in a folder named after its hash."""
    return user_cache() / "wheels"


def fetch(packages: Sequence[Package], installer: Installer, index_url: str | None = None) -> dict[str, Path]:
    """Download every package that is not on this disk, and return all paths by package name.

    Size and hash are checked as files arrive, and of those that were here already: one that is not what it should be is
    set aside and downloaded again. `index_url` is torch's own index, whose password its files need too. Raises
    `WorkFailed` when one cannot be had.
    """
    wanted = places(packages)
    lock = Lock(cache_folder() / "lock")
    waiting = False
    while lock.take():  # one download at a time: two would fetch the same files twice
        if not waiting:
            installer.progress(_("Waiting for another download to finish"), part=Part.DOWNLOAD)
        waiting = True
        installer.cancel.wait(0.5)
        installer.cancel.check()
    try:
        _set_damaged_aside([one for one in packages if os.path.lexists(wanted[one.name])], wanted, installer)
        _download(to_download(packages), wanted, installer, (index_url,) if index_url else ())
    finally:
        lock.release()
    return wanted


def places(packages: Sequence[Package]) -> dict[str, Path]:
    """Return where the file of each package lies or will lie, by package name."""
    return {package.name: _place(package) for package in packages}


def to_download(packages: Sequence[Package]) -> list[Package]:
    """List the packages whose files are not on this disk yet."""
    return [package for package in packages if not _place(package).is_file()]


def requirement_lines(packages: Sequence[Package], files: dict[str, Path]) -> str:
    """Write the requirements file that uv and pip read alike: exact versions, their hashes, the folders they lie in.

    Where an index gives no hash, that of the file which was downloaded stands for it: nothing else is accepted.
    """
    folders = dict.fromkeys(file.parent.as_uri() for file in files.values())
    lines = ["--no-index", "--require-hashes", *(f"--find-links {folder}" for folder in folders)]
    digests = {package.name: package.sha256 or _digest(files[package.name]) for package in packages}
    lines += [f"{package.name}=={package.version} --hash=sha256:{digests[package.name]}" for package in packages]
    return "\n".join([*lines, ""])


def _set_damaged_aside(packages: Sequence[Package], wanted: dict[str, Path], installer: Installer) -> None:
    """Move cached files out of the way that a power cut, a full disk or anybody else has changed."""
    with ThreadPoolExecutor(max_workers=4) as pool:
        sound = list(pool.map(lambda package: _is_sound(package, wanted[package.name], installer.cancel), packages))
    for package in [package for package, good in zip(packages, sound, strict=True) if not good]:
        file = wanted[package.name]
        if package.url.startswith("file:"):
            raise WorkFailed(
                _("{file} is not the file that its index describes: its size or hash differs.", file=file),
                hint=_("Get that file again."),
            )
        patiently(partial(file.rename, file.with_name(f"{file.name}.{uuid.uuid4().hex[:8]}.damaged")))
        installer.log(_("The copy of {file} on this disk is damaged; it is downloaded again.", file=file.name))


def _is_sound(package: Package, file: Path, cancel: CancelToken) -> bool:
    """Return whether a file has the size and the hash that its index gives, as far as it gives them."""
    try:
        if package.size is not None and file.stat().st_size != package.size:
            return False
        return not package.sha256 or _digest(file, cancel) == package.sha256
    except OSError:
        return False


def _digest(file: Path, cancel: CancelToken | None = None) -> str:
    digest = hashlib.sha256()
    with open_plain(file, follow=True) as content:
        while piece := content.read(1 << 20):
            digest.update(piece)
            if cancel:
                cancel.check()
    return digest.hexdigest()


def _place(package: Package) -> Path:
    """Return where a package's file lies: where it is, for a folder of wheels, else in the cache."""
    path, name = local_path(package.url), file_name(package.url)
    if path:
        return path
    if not name:
        raise BadInput(
            _("{url} does not name a file.", url=package.url), hint=_("The index is broken; choose another one.")
        )
    return cache_folder() / (package.sha256[:20] or f"{package.name}-{package.version}") / name


def _download(
    packages: Sequence[Package], wanted: dict[str, Path], installer: Installer, index_urls: tuple[str, ...]
) -> None:
    absent = [package for package in packages if package.url.startswith("file:")]
    if absent or (packages and installer.offline):
        raise WorkFailed(
            _("{file} is not on this machine.", file=wanted[(absent or packages)[0].name].name),
            hint=_("Put it into the folder of wheels, or allow downloads."),
        )
    files = [
        Fetch(url=package.url, path=str(wanted[package.name]), sha256=package.sha256, size=package.size)
        for package in packages
    ]
    meter = _Meter(files, installer)
    if files:
        download(
            files,
            meter.update,
            installer.cancel,
            network=installer.settings.network,
            index_urls=(*index_urls, *installer.index_urls),
            patience=installer.patience,
        )


class _Meter:
    """Adds up what the workers download, and reports it ten times a second."""

    def __init__(self, files: Sequence[Fetch], installer: Installer) -> None:
        self._installer = installer
        self._total = sum(file.size or 0 for file in files) if all(file.size for file in files) else None
        self._have: dict[str, int] = {}
        self._lock = threading.Lock()
        self._began, self._reported, self._resumed = time.monotonic(), 0.0, 0

    def update(self, file: Fetch, have: int) -> None:
        """Note that `have` bytes of a file are here."""
        with self._lock:
            if file.path not in self._have:
                self._resumed += have  # of an earlier try, and no part of our speed
            self._have[file.path] = have
            now, done = time.monotonic(), sum(self._have.values())
            if now - self._reported < REPORT_SECONDS and done != self._total:
                return
            self._reported = now
        self._installer.progress(
            _("Downloading {file}", file=Path(file.path).name),
            done=done,
            total=self._total,
            unit="bytes",
            part=Part.DOWNLOAD,
            rate=(done - self._resumed) / max(now - self._began, 1e-3),
        )


def unpack(
    packages: Sequence[Package], site: Site | None, installer: Installer, work: Transaction, plan: Plan, host: Host
) -> Path:
    """Download packages and unpack them into a new environment, or beside one that stands; return that folder.

    A new environment gets pip, too.

    Raises `BadInput` where the paths would be too long for this Windows, and `WorkFailed` where a package cannot be
    downloaded, or its files do not arrive whole.
    """
    wheels = fetch(packages, installer, plan.index_url)
    folder = work.layout.staged if site else work.layout.build
    check_lengths(host, wheels.values(), (folder, work.target))
    content = [(package, wheels[package.name]) for package in packages]
    try:
        _fill(folder, content, site, installer, work, plan)
    except WorkFailed as error:
        if disk_obstacle(str(error)):
            raise
        installer.log(_("The installer's cache may be damaged, so everything is unpacked again without it."))
        with suppress(OSError):
            discard_folder(folder)
        _fill(folder, content, site, installer.with_own_cache(work.layout.work), work, plan)
    if not site:
        relocate(folder, work.layout.infix)
    return folder


def _fill(
    folder: Path,
    content: Sequence[tuple[Package, Path]],
    site: Site | None,
    installer: Installer,
    work: Transaction,
    plan: Plan,
) -> None:
    """Unpack into a folder; raise `WorkFailed` when that fails, or leaves files that are not whole."""
    if site:
        folder.mkdir()
    else:
        folder.parent.mkdir(parents=True, exist_ok=True)
        installer.make_venv(folder, work.lock, work.layout.work)
        own = any(package.name == PIP for package, _wheel in content)  # some packages require it, as fastai does
        if not own and (pip := pip_for(folder, plan, installer, work.lock)):
            content = [*content, pip]
    wheels = [wheel for _package, wheel in content]
    expected = Ahead(lambda: contents(wheels))  # the installer is another process
    if wheels:
        lines = requirement_lines([package for package, _wheel in content], {one.name: wheel for one, wheel in content})
        python, staged = (Path(site.python), folder) if site else (interpreter(folder), None)
        installer.install(lines, python, work.lock, work.layout.work, total=len(wheels), staged=staged)
    if wrong := incomplete(folder, expected.result(installer.cancel.check)):
        raise WorkFailed(
            _("The installer left incomplete files: {names}.", names=", ".join(wrong[:3])),
            hint=_("Check the disk, clear the installer's cache and start again."),
        )


def contents(wheels: Iterable[Path]) -> dict[str, int]:
    """Return the sizes, in bytes, of the files that wheels put into site-packages unchanged.

    Scripts and data go elsewhere, and RECORD grows.
    """
    sizes: dict[str, int] = {}
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            for entry in archive.infolist():
                top, _slash, rest = entry.filename.partition("/")
                if not (entry.is_dir() or top.endswith(".data") or (top.endswith(".dist-info") and rest == "RECORD")):
                    sizes[entry.filename] = entry.file_size
    return sizes


def incomplete(folder: Path, expected: Mapping[str, int]) -> list[str]:
    """Name the files that an environment's folder lacks, or holds with another size than expected."""
    places = [str(place) for place in package_folders(folder)]

    def size_of(path: str) -> int:
        try:
            return os.stat(path).st_size  # noqa: PTH116 - a Path for each of 20,000 files would cost seconds
        except OSError:
            return -1

    return [name for name, size in expected.items() if not any(size_of(f"{place}/{name}") == size for place in places)]


def relocate(folder: Path, infix: str) -> None:
    """Cut `infix` ("/" between its parts) out of every path in an environment's scripts and its `pyvenv.cfg`.

    Installers write the interpreter's path into scripts (`#!/home/ada/.assistant-install-4f…/torch/bin/python`), into
    `activate` and `pyvenv.cfg`. What the work folder adds to a path is made of plain characters alone, so it can be cut
    out of any text, however the rest of the path is quoted there. The hashes in RECORD follow (PEP 376).
    """
    slash = rb"[\\/]+"
    extra = re.compile(slash + slash.join(re.escape(part.encode()) for part in infix.split("/")) + rb"(?=[\\/])")
    rows: dict[str, str] = {}
    for path in (folder / "pyvenv.cfg", *sorted((folder / SCRIPTS).iterdir())):
        if path.is_symlink() or not path.is_file():
            continue
        old = path.read_bytes()
        new = extra.sub(b"", old)
        if new != old:
            mode = path.stat().st_mode
            write_whole(path, new)
            path.chmod(mode)
            rows[_record_row(old)] = _record_row(new)
    records = (record for place in package_folders(folder) for record in place.glob("*.dist-info/RECORD"))
    for record in records if rows else ():
        text = record.read_text(encoding="utf-8")
        if known := [row for row in rows if row in text]:
            for row in known:
                text = text.replace(row, rows[row])
            write_whole(record, text)


def _record_row(content: bytes) -> str:
    """Write hash and size as a RECORD does: `sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0`."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"sha256={digest},{len(content)}"


def pip_for(environment: Path, plan: Plan, installer: Installer, lock: Lock) -> tuple[Package, Path] | None:
    """Return pip as a package with its file on this disk; None where an environment has it, or none can be had.

    The wheel that its Python brings along needs no network, and is the same file each time; else it is the newest of
    the user's sources. It is no part of a plan or a lock: users update pip as they please, and an environment with
    another pip is none that has changed.
    """
    if any((folder / PIP).is_dir() for folder in package_folders(environment)):
        return None
    found: list[str] = []
    python = str(interpreter(environment))
    stream([python, "-I", "-B", "-c", _FIND], found.append, cancel=installer.cancel, lock=lock)
    wheel = next((Path(line) for line in found if line.endswith(".whl") and Path(line).is_file()), None)
    if wheel:
        version, digest = str(parse_wheel_filename(wheel.name)[1]), hashlib.sha256(wheel.read_bytes()).hexdigest()
        return Package(name=PIP, version=version, url=wheel.as_uri(), sha256=digest), wheel
    try:
        bare = replace(plan, requirements=(PIP,), index_url=None)
        package = next(one for one in resolve(bare, installer).packages if one.name == PIP)
        return package, fetch([package], installer)[PIP]
    except WorkFailed as error:
        text = _("This environment has no pip: its Python brings none, and none could be fetched. {reason}")
        installer.log(text.format(reason=error.message))
        return None
