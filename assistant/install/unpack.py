"""Fills a folder with downloaded wheels, for the place in which that folder will lie, and checks that all of it came.

An installer's cache may hold files that a power cut left empty. uv links files from its cache of unpacked wheels and
does not look at them again, so a damaged one would come into every environment from then on. The wheels themselves,
whose hashes were checked, say how large each file is.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from assistant.host.base import Host
from assistant.host.files import discard_folder, write_whole
from assistant.host.parallel import Ahead
from assistant.i18n import _
from assistant.install.inspect_env import Site, interpreter, package_folders
from assistant.install.installer import Installer, disk_obstacle
from assistant.install.packages import Package
from assistant.install.place import check_lengths
from assistant.install.seed import PIP, pip_for
from assistant.install.transaction import Transaction
from assistant.install.wheels import fetch, requirement_lines
from assistant.model.errors import WorkFailed
from assistant.model.plan import Plan

SCRIPTS = "Scripts" if os.name == "nt" else "bin"


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
