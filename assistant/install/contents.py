"""What comes into an environment beside what uv installs: pip, the user's own files; and whether all of it is whole."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Container, Sequence
from contextlib import suppress
from pathlib import Path

from packaging.utils import canonicalize_name, parse_wheel_filename

from assistant.host.files import discard, discard_folder, link_or_copy, write_temporary
from assistant.host.process import stream
from assistant.i18n import _
from assistant.install.downloads import fetch_wheels, files_on_disk, set_aside_damaged
from assistant.install.resolution import Package, resolve, unreachable, write_lock
from assistant.install.site import Site, package_folders, read_record
from assistant.install.uv import LOCK, Uv, disk_obstacle
from assistant.model.errors import WorkFailed
from assistant.model.plan import Plan
from assistant.model.record import replace

PIP = "pip"
CACHE = "__pycache__"
# Where `ensurepip` finds pip's wheel (Lib/ensurepip/__init__.py); Debian's and Fedora's Python have it elsewhere, in
# WHEEL_PKG_DIR (https://docs.python.org/3/using/configure.html#cmdoption-with-wheel-pkg-dir).
_FIND = """
import glob, os, sysconfig
folders = os.path.join(sysconfig.get_path("stdlib"), "ensurepip", "_bundled"), sysconfig.get_config_var("WHEEL_PKG_DIR")
print(*[wheel for folder in folders if folder for wheel in glob.glob(os.path.join(folder, "pip-*.whl"))], sep="\\n")
"""


def find_pip(python: Path, plan: Plan, uv: Uv) -> Package | None:
    """Return pip as a package for an environment's Python; None, after logging why, if none can be had.

    The wheel that this Python brings along needs no network, and is the same file each time; else it is the newest of
    the user's sources. It is no part of a plan or a lock: users update pip as they please, and an environment with
    another pip is none that has changed.
    """
    output: list[str] = []
    stream([python, "-I", "-B", "-c", _FIND], output.append, cancel=uv.cancel, lock=uv.lock)
    wheel = next((Path(line) for line in output if line.endswith(".whl") and Path(line).is_file()), None)
    if wheel:
        version, digest = str(parse_wheel_filename(wheel.name)[1]), hashlib.sha256(wheel.read_bytes()).hexdigest()
        return Package(name=PIP, version=version, url=wheel.as_uri(), sha256=digest)
    try:
        packages = resolve(replace(plan, requirements=(PIP,), index_url=None), uv).packages
        return next(package for package in packages if package.name == PIP)
    except WorkFailed as error:
        text = _("This environment has no pip: its Python brings none, and none could be fetched. {reason}")
        uv.log(text.format(reason=error.message))
        return None


def incomplete_files(folder: Path, names: Container[str] | None = None) -> list[str]:
    """Return the paths of files that an environment's distributions list, and that are missing or of another size.

    uv links files from its cache without looking at them again, and a power cut leaves some of them empty there. Only
    the distributions in `names` are looked at, by default all.
    """
    return [wrong for info in _info_folders(folder, names) for wrong in _incomplete_files_of(info)]


def incomplete_distributions(folder: Path, names: Container[str] | None = None) -> dict[Path, str]:
    """Return the canonical names of the distributions that lack files, by their folders `*.dist-info`."""
    return {info: name for info, name in _info_folders(folder, names).items() if _incomplete_files_of(info)}


def is_removable(info: Path) -> bool:
    """Return whether an installer can still remove a distribution: its METADATA and its RECORD are whole."""
    name = f"{info.name}/METADATA"
    return (info / "METADATA").is_file() and not {name, info.name}.intersection(_incomplete_files_of(info))


def delete_distribution(info: Path, prefix: Path) -> None:
    """Delete the files that the RECORD of a distribution still lists, and its `*.dist-info`; none outside `prefix`."""
    root = os.path.realpath(prefix)
    for name, _size in read_record(info / "RECORD"):
        path = Path(os.path.normpath(info.parent / name))
        if Path(os.path.realpath(path.parent)).is_relative_to(root):
            with suppress(OSError):  # a folder of that name
                discard(path)
    if Path(os.path.realpath(info)).is_relative_to(root):
        discard_folder(info)


def _record_lists_itself(rows: Sequence[tuple[str, str]]) -> bool:
    """Return whether the rows of a RECORD include the RECORD itself; one that does not has been cut off."""
    return any(name.endswith(".dist-info/RECORD") for name, _size in rows)


def _info_folders(folder: Path, names: Container[str] | None) -> dict[Path, str]:
    """Return the canonical names of distributions by their folders `*.dist-info`; of those in `names`, or of all."""
    folders = (info for place in package_folders(folder) for info in place.glob("*.dist-info"))
    names_by_folder = {info: str(canonicalize_name(info.name.partition("-")[0])) for info in folders}
    return {info: name for info, name in names_by_folder.items() if names is None or name in names}


def install_whole(
    packages: Sequence[Package],
    uv: Uv,
    index_url: str | None,
    folder: Path,
    *,
    install: Callable[[Uv, Path], None],
    find_incomplete: Callable[[], list[str]],
    clear: Callable[[], None],
) -> None:
    """Fetch exact packages and install them from a lock file; do it once more with a new cache if files are damaged.

    The second try follows incomplete files, and each failure but those of the disk and the network. `clear` removes
    what was installed; `folder` is for the lock file and the new cache. Raises `WorkFailed` where the packages cannot
    be had, or come damaged again.
    """

    def write_lock_file() -> Path:
        """Fetch what is not on this disk, write the lock file, and return its path."""
        fetch_wheels(packages, uv, index_url)
        write_temporary(folder / LOCK, write_lock(packages, files_on_disk(packages)))
        return folder / LOCK

    lock = write_lock_file()
    try:
        install(uv, lock)
        if not find_incomplete():
            return
    except WorkFailed as error:
        if uv.offline or disk_obstacle(str(error)) or unreachable(str(error)):
            raise
    set_aside_damaged(packages, uv)
    uv.log(_("The installer's cache may be damaged, so everything is unpacked again without it."))
    clear()
    install(uv.with_own_cache(folder), write_lock_file())
    if wrong := find_incomplete():
        raise WorkFailed(
            _("The installer left incomplete files: {names}.", names=", ".join(wrong[:3])),
            hint=_("Check the disk, clear the installer's cache and start again."),
        )


def _incomplete_files_of(info: Path) -> list[str]:
    """Return the files of a distribution that are missing or of another size, and its folder if RECORD is cut off."""
    rows = list(read_record(info / "RECORD"))
    # A Path for each of 20,000 files would cost seconds.
    wrong = [name for name, size in rows if size and _file_size(f"{info.parent}/{name}") != int(size)]
    return wrong if _record_lists_itself(rows) else [info.name, *wrong]


def _file_size(path: str) -> int:
    """Return the size of a file in bytes; -1 if it cannot be had."""
    try:
        return os.stat(path).st_size  # noqa: PTH116 - see `_incomplete_files_of`
    except OSError:
        return -1


def link_own_files(site: Site, folder: Path) -> None:
    """Link into `folder`, which replaces an environment, the files of that environment that belong to no package.

    They are the user's own files and pip's, which the user may have updated. A file whose path `folder` has already,
    and compiled modules, are left out. Where the file system has no hard links, files are copied.
    """
    prefix = Path(site.prefix)
    names = {distribution.canonical_name for distribution in site.own} - {PIP}
    packages = set(site.installed_files(names))
    for root, folders, files in os.walk(prefix):
        below = os.path.relpath(root, prefix).replace(os.sep, "/")
        folders[:] = [name for name in folders if name != CACHE]
        links = [name for name in folders if Path(root, name).is_symlink()]
        for name in (*files, *links):
            path = name if below == "." else f"{below}/{name}"
            if path not in packages and not os.path.lexists(folder / path):
                link_or_copy(Path(root, name), folder / path)
