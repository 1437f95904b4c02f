"""What comes into an environment: large wheels, pip, the user's own files; and whether all of it is whole.

Large wheels are fetched here, resumed where they broke off; small ones are uv's to fetch. uv begins a file anew after
most failures, as often as its bound on retries allows: a wheel of 400 MB whose connection is cut ten times took 767 MB
(uv 0.13.9). A wheel of 3 GB on a bad line would never arrive.
"""

from __future__ import annotations

import hashlib
import os
import time
import uuid
from collections.abc import Callable, Container, Generator, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

from packaging.utils import canonicalize_name, parse_wheel_filename

from assistant.host.download import Fetch, Headway, download
from assistant.host.files import (
    discard,
    discard_folder,
    file_name,
    link_or_copy,
    local_path,
    open_regular,
    retry_while_in_use,
    user_cache,
    write_temporary,
)
from assistant.host.lock import Lock
from assistant.host.process import CancelToken, running
from assistant.i18n import _
from assistant.install.journal import not_removed_error
from assistant.install.site import Site, package_folders, read_record
from assistant.install.uv import (
    LOCK,
    Package,
    Uv,
    find_disk_error,
    find_network_error,
    not_on_disk_error,
    resolve,
    write_lock,
)
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.plan import Plan
from assistant.model.record import replace
from assistant.model.report import Part

LARGE = 5_000_000  # bytes; chosen: what a line of 10 Mbit/s brings in 4 s, and so small that nearly all is metered
REPORT_SECONDS = 0.1  # between two events of progress


def downloads_folder() -> Path:
    """Return the folder of downloaded wheels; each lies in a folder of its own in it."""
    return user_cache() / "wheels"


def files_on_disk(packages: Iterable[Package]) -> dict[str, Path]:
    """Return the paths of the packages' files that exist on this disk, by package name: local and downloaded wheels."""
    files = {package.name: wheel_path(package) for package in packages}
    return {name: file for name, file in files.items() if file.is_file()}


def list_missing_large(packages: Iterable[Package]) -> list[Package]:
    """Return the packages of at least 5 MB, and those of unknown size, whose file is not on this disk."""
    large = (package for package in packages if package.size is None or package.size >= LARGE)
    return [package for package in large if not wheel_path(package).is_file()]


def wheel_path(package: Package) -> Path:
    """Return a local file's own path, else one in the downloads folder; `BadInput` if the URL has no file name."""
    path, name = local_path(package.url), file_name(package.url)
    if path:
        return path
    if not name:
        raise BadInput(
            _("{url} does not name a file.", url=package.url), hint=_("The index is broken; choose another one.")
        )
    return downloads_folder() / (package.sha256[:20] or f"{package.name}-{package.version}") / name


def fetch_large_wheels(packages: Sequence[Package], uv: Uv, index_url: str | None = None) -> None:
    """Download the wheels that `list_missing_large` gives, checking sizes and hashes; first wait for other downloads.

    `index_url` is torch's own index, whose password its files need too. Raises `WorkFailed` if a file cannot be
    downloaded, when offline, and if one is missing from the user's own folder; `Cancelled` on request.
    """
    lock = Lock(downloads_folder() / "lock")
    waiting = False
    while lock.take():  # one download at a time: two would fetch the same files twice
        if not waiting:
            uv.progress(_("Waiting for another download to finish"), part=Part.DOWNLOAD)
        waiting = True
        uv.cancel.wait(0.5)
        uv.cancel.check()
    try:
        missing = list_missing_large(packages)
        absent = [package for package in missing if uv.offline or package.url.startswith("file:")]
        if absent:
            raise not_on_disk_error(wheel_path(absent[0]).name)
        files = [
            Fetch(url=package.url, path=str(wheel_path(package)), sha256=package.sha256, size=package.size)
            for package in missing
        ]
        for file in files:
            _set_aside(Path(file.path))
        logins = (*filter(None, [index_url]), *uv.index_urls)
        if files:
            _report_download(
                files, uv, download(files, uv.cancel, settings=uv.settings, index_urls=logins, patience=uv.patience)
            )
    finally:
        lock.release()


def _report_download(files: Sequence[Fetch], uv: Uv, headways: Generator[Headway, None, None]) -> None:
    """Follow a download of files to its end, and send how far it is, at most ten times a second."""
    total = sum(file.size or 0 for file in files) if all(file.size for file in files) else None
    began, reported = time.monotonic(), 0.0
    with closing(headways):
        for headway in headways:
            now, done = time.monotonic(), sum(headway.have.values())
            if headway.have and (now - reported >= REPORT_SECONDS or done == total):
                reported = now
                uv.progress(
                    _("Downloading {file}", file=Path(next(reversed(headway.have))).name),
                    done=done,
                    total=total,
                    unit="bytes",
                    part=Part.DOWNLOAD,
                    rate=(done - headway.resumed) / max(now - began, 1e-3),
                )


def _set_aside(path: Path) -> None:
    """Rename whatever exists at a path to "NAME.….damaged", so that a file can be put there; else do nothing."""
    if os.path.lexists(path):
        retry_while_in_use(partial(path.rename, path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}.damaged")))


def set_aside_damaged(packages: Iterable[Package], uv: Uv) -> None:
    """Rename each file on this disk whose size or hash is not that of its package, so that it is downloaded again.

    Raises `WorkFailed` for a file in a folder of wheels, which is the user's, and `Cancelled` on request.
    """
    for package in packages:
        file = wheel_path(package)
        if not file.is_file() or _is_sound(package, file, uv.cancel):
            continue
        if package.url.startswith("file:"):
            raise WorkFailed(
                _("{file} is not the file that its index describes: its size or hash differs.", file=file),
                hint=_("Get that file again."),
            )
        _set_aside(file)
        uv.log(_("The copy of {file} on this disk is damaged; it is downloaded again.", file=file.name))


def _is_sound(package: Package, file: Path, cancel: CancelToken) -> bool:
    """Return whether a file has the size and the hash that its index gives, as far as it gives them."""
    try:
        if package.size is not None and file.stat().st_size != package.size:
            return False
        digest = hashlib.sha256()
        with open_regular(file, follow=True) as content:
            while package.sha256 and (piece := content.read(1 << 20)):
                digest.update(piece)
                cancel.check()
    except OSError:
        return False
    return not package.sha256 or digest.hexdigest() == package.sha256


def delete_downloads() -> int:
    """Delete the downloaded wheels and return their bytes; raise `WorkFailed` if that fails, or a download runs."""
    folder, lock = downloads_folder(), Lock(downloads_folder() / "lock")
    if lock.take():
        raise WorkFailed(_("A download is running."), hint=_("Wait until it has finished, and start again."))
    try:
        entries = [entry for entry in folder.iterdir() if entry.is_dir()]  # all but the lock
        size = sum(file.lstat().st_size for entry in entries for file in entry.rglob("*") if file.is_file())
        for entry in entries:
            discard_folder(entry)
    except OSError as error:
        raise not_removed_error(folder, error) from error
    finally:
        lock.release()
    return size


PIP = "pip"
# Where `ensurepip` finds pip's wheel (Lib/ensurepip/__init__.py); Debian's and Fedora's Python have it elsewhere, in
# WHEEL_PKG_DIR (https://docs.python.org/3/using/configure.html#cmdoption-with-wheel-pkg-dir).
_FIND = """
import glob, os, sysconfig
folders = os.path.join(sysconfig.get_path("stdlib"), "ensurepip", "_bundled"), sysconfig.get_config_var("WHEEL_PKG_DIR")
print(*[wheel for folder in folders if folder for wheel in glob.glob(os.path.join(folder, "pip-*.whl"))], sep="\\n")
"""


def bundled_pip(python: Path, *, cancel: CancelToken | None = None, lock: Lock | None = None) -> Path | None:
    """Return the wheel of pip that a Python contains, which needs no network; None if there is none."""
    with running([python, "-I", "-B", "-c", _FIND], cancel=cancel, lock=lock) as child:
        output = list(child)
    return next((Path(line) for line in output if line.endswith(".whl") and Path(line).is_file()), None)


def find_pip(python: Path, plan: Plan, uv: Uv) -> Package | None:
    """Return pip as a package for an environment's Python; None, after logging why, if none is available.

    The wheel that this Python contains needs no network, and is the same file each time; if there is none, uv resolves
    pip from the user's sources. It is no part of a plan or a lock: users update pip as they please, and an environment
    with another pip does not count as changed.
    """
    if wheel := bundled_pip(python, cancel=uv.cancel, lock=uv.lock):
        version, digest = str(parse_wheel_filename(wheel.name)[1]), hashlib.sha256(wheel.read_bytes()).hexdigest()
        return Package(name=PIP, version=version, url=wheel.as_uri(), sha256=digest)
    try:
        packages = resolve(replace(plan, requirements=(PIP,), index_url=None), uv).packages
        return next(package for package in packages if package.name == PIP)
    except WorkFailed as error:
        text = _("This environment has no pip: its Python brings none, and none could be fetched. {reason}")
        uv.log(text.format(reason=error.message))
        return None


def find_incomplete(
    folder: Path, names: Container[str] | None = None, check: Callable[[], None] = lambda: None
) -> dict[Path, list[str]]:
    """Return the files of an environment's distributions that are missing or of another size, by `*.dist-info` folder.

    uv links files from its cache without checking them, and a power cut leaves some of them empty there. A RECORD that
    does not list itself is truncated; the name of its folder then precedes the files. Files without a size in RECORD
    are not checked. Only the distributions in `names` (canonical) are examined, by default all. `check` is called
    before each and may raise, as 20,000 files take a second on a busy machine.
    """
    found = {}
    for info in (info for place in package_folders(folder) for info in place.glob("*.dist-info")):
        check()
        if names is None or name_of_info(info) in names:
            rows = list(read_record(info / "RECORD"))
            # A Path for each of 20,000 files would cost seconds.
            wrong = [name for name, size in rows if size and _file_size(f"{info.parent}/{name}") != int(size)]
            is_cut = not any(name.endswith(".dist-info/RECORD") for name, _size in rows)
            found[info] = [info.name, *wrong] if is_cut else wrong
    return {info: wrong for info, wrong in found.items() if wrong}


def name_of_info(info: Path) -> str:
    """Return the canonical name of the distribution that a folder `*.dist-info` is of."""
    return canonicalize_name(info.name.partition("-")[0])


def _file_size(path: str) -> int:
    """Return the size of a file in bytes; -1 if it cannot be read."""
    try:
        return os.stat(path).st_size  # noqa: PTH116 - see `find_incomplete`
    except OSError:
        return -1


def install_and_check(
    python: Path,
    prefix: Path,
    packages: Sequence[Package],
    index_url: str | None,
    uv: Uv,
    clear: Callable[[], None],
    reinstall: Iterable[str] | None = None,
) -> None:
    """Download and install exact packages, then check their files; if some are damaged, repeat with an empty cache.

    Without `reinstall`, the environment of `python` at `prefix` holds nothing else afterwards. With `reinstall` other
    packages stay, and those named in it are reinstalled even if they are there already. It is repeated once with all
    packages, after `clear` has removed what was installed: for incomplete files, and for each failure but those of the
    disk, the network, and where uv is offline. The lock file and the new cache go into the temporary folder of `uv`.
    Raises `WorkFailed` for those at once, and if packages are not available, or damaged twice.
    """
    names = None if reinstall is None else [package.name for package in packages]
    folder = uv.scratch or Path()

    def install_once(uv: Uv, reinstall: Iterable[str]) -> Mapping[Path, list[str]]:
        """Download what is not on this disk and install all; return the incomplete files by `*.dist-info` folder."""
        fetch_large_wheels(packages, uv, index_url)
        write_temporary(folder / LOCK, write_lock(packages, files_on_disk(packages)))
        uv.install(python, folder / LOCK, len(packages), exactly=names is None, reinstall=reinstall)
        return find_incomplete(prefix, names, uv.cancel.check)

    try:
        if not install_once(uv, reinstall or ()):
            return
    except WorkFailed as error:
        if uv.offline or find_disk_error(str(error)) or find_network_error(str(error)):
            raise
    set_aside_damaged(packages, uv)
    uv.log(_("The installer's cache may be damaged, so everything is unpacked again without it."))
    clear()
    if wrong := install_once(uv.with_own_cache(folder), names or ()):
        files = [name for files in wrong.values() for name in files]
        raise WorkFailed(
            _("The installer left incomplete files: {names}.", names=", ".join(files[:3])),
            hint=_("Check the disk, clear the installer's cache and start again."),
        )


def delete_half_written(prefix: Path, names: Container[str], stays: Mapping[str, str]) -> None:
    """Delete those of the named distributions that are incomplete and whose METADATA or RECORD is missing or damaged.

    Not deleted are the versions (by name) in `stays`, which are older than the change, and what lies outside `prefix`.
    """
    root = os.path.realpath(prefix)
    for info, wrong in find_incomplete(prefix, names).items():
        is_kept = info.name == f"{info.name.partition('-')[0]}-{stays.get(name_of_info(info))}.dist-info"
        is_removable = (info / "METADATA").is_file() and not {f"{info.name}/METADATA", info.name}.intersection(wrong)
        if is_kept or is_removable:
            continue
        for name, _size in read_record(info / "RECORD"):
            path = Path(os.path.normpath(info.parent / name))
            if Path(os.path.realpath(path.parent)).is_relative_to(root):
                with suppress(OSError):  # a folder of that name
                    discard(path)
        if Path(os.path.realpath(info)).is_relative_to(root):
            discard_folder(info)


def link_own_files(site: Site, folder: Path) -> None:
    """Hard-link into `folder`, which replaces an environment, the files of that environment that belong to no package.

    They are the user's own files and pip's, which the user may have updated. Files whose path exists in `folder`
    already, and `__pycache__`, are left out. If a hard link fails the file is copied.
    """
    prefix = Path(site.prefix)
    packages = set(site.installed_files(site.versions.keys() - {PIP}))
    for root, folders, files in os.walk(prefix):
        below = os.path.relpath(root, prefix).replace(os.sep, "/")
        folders[:] = [name for name in folders if name != "__pycache__"]
        links = [name for name in folders if Path(root, name).is_symlink()]
        for name in (*files, *links):
            path = name if below == "." else f"{below}/{name}"
            if path not in packages and not os.path.lexists(folder / path):
                link_or_copy(Path(root, name), folder / path)
