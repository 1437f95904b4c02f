"""Records the world from PyPI while uv resolves: `python tests/joint/record.py FOLDER` serves until it is stopped.

FOLDER keeps every page and every wheel's metadata that was asked for; a second run goes on there.
`python tests/joint/record.py FOLDER --pack` writes `world.json.xz` from it.
"""

from __future__ import annotations

import datetime as dt
import io
import json
import re
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from email.parser import HeaderParser
from pathlib import Path

import msgspec
import requests
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version
from pip._internal.models.index import PyPI

sys.path.insert(0, str(Path(__file__).parents[1]))
from assistant.host.files import write_whole
from joint.world import Answer, Indexes, Projects, Release, World, write_world

AT_ONCE = threading.Semaphore(8)  # polite: no more requests than that at the same time
TAIL = 120_000  # the end of a wheel, which mostly holds its directory and its metadata
# Of these the composed indexes need every version.
WHOLE = ("torch", "torchvision", "torchaudio", "triton", "xformers", "torchcodec", "torchao", "triton-windows")
SYSTEMS = {  # of the machines; a wheel for any other is left out
    "any": re.compile(r"^any$"),
    "linux": re.compile(r"^(many)?linux\w*_x86_64$"),
    "windows": re.compile(r"^win_amd64$"),
    "macos": re.compile(r"^macosx_\w*_(arm64|universal2)$"),
}


class Remote(io.RawIOBase):
    """A file on a server, read by ranges; the end is read first and kept."""

    def __init__(self, url: str, session: requests.Session) -> None:
        self.url, self.session, self.at = url, session, 0
        with AT_ONCE:
            answer = session.get(url, headers={"Range": f"bytes=-{TAIL}"}, timeout=60)
        answer.raise_for_status()
        self.tail = answer.content
        said = answer.headers.get("Content-Range", "")
        self.size = int(said.rpartition("/")[2]) if said else len(self.tail)

    def seekable(self) -> bool:
        """Say that any place can be read."""
        return True

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def tell(self) -> int:
        """Return the place."""
        return self.at

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move to a place."""
        self.at = offset + (0 if whence == 0 else self.at if whence == 1 else self.size)
        return self.at

    def read(self, count: int = -1) -> bytes:
        """Read from the end that is kept, else from the server."""
        end = self.size if count < 0 else min(self.size, self.at + count)
        start, first = self.at, self.size - len(self.tail)
        self.at = end
        if start >= first:
            return self.tail[start - first : end - first]
        with AT_ONCE:
            wanted = {"Range": f"bytes={start}-{max(start, end - 1)}"}
            return self.session.get(self.url, headers=wanted, timeout=60).content


class Recorder(Indexes):
    """The indexes, PyPI's part fetched and kept as it is asked for."""

    def __init__(self, folder: Path) -> None:
        self.kept = folder
        self.local = threading.local()
        self.locks: dict[str, threading.Lock] = {}
        self.listings: dict[str, dict[str, Release]] = {}
        (folder / "pages").mkdir(parents=True, exist_ok=True)
        (folder / "metadata").mkdir(exist_ok=True)
        super().__init__(World("", {}))
        for project in WHOLE:
            self.world.projects[project] = self._whole(project)

    @property
    def session(self) -> requests.Session:
        """The thread's own connection."""
        if not hasattr(self.local, "session"):
            self.local.session = requests.Session()
        return self.local.session

    def _lock(self, key: str) -> threading.Lock:
        return self.locks.setdefault(key, threading.Lock())

    def listing(self, project: str) -> dict[str, Release]:
        """Return a project's versions with the files that the machines could use; {} where there is no such project."""
        path = self.kept / "pages" / f"{project}.json"
        with self._lock(project):
            if project in self.listings:
                return self.listings[project]
            if not path.is_file():
                accept = {"Accept": "application/vnd.pypi.simple.v1+json"}
                with AT_ONCE:
                    answer = self.session.get(f"{PyPI.simple_url}/{project}/", headers=accept, timeout=60)
                if answer.status_code not in (200, 404):
                    answer.raise_for_status()
                write_whole(path, json.dumps(answer.json()["files"] if answer.ok else []))
            self.listings[project] = dict(versions_of(json.loads(path.read_text(encoding="utf-8"))))
            return self.listings[project]

    def address(self, project: str, file: str) -> str:
        """Return where PyPI keeps a file."""
        files = json.loads((self.kept / "pages" / f"{project}.json").read_text(encoding="utf-8"))
        return next(one["url"] for one in files if one["filename"] == file)

    def release(self, index: str, project: str, version: str) -> Release | None:
        """Find one version, fetched from PyPI where it is not known yet."""
        if index != "simple":
            return super().release(index, project, version)
        return self._looked_into(project, version)

    def _looked_into(self, project: str, version: str) -> Release | None:
        path = self.kept / "metadata" / f"{project}@{version}.json"
        with self._lock(f"{project}@{version}"):
            release = self.listing(project).get(version)
            if release and path.is_file():
                known = msgspec.json.decode(path.read_bytes(), type=Release)
                return msgspec.structs.replace(known, files=release.files, yanked=release.yanked)
            wheel = next((file for file in release.files if file.endswith(".whl")), None) if release else None
            if release is None or wheel is None:
                return None
            whole = with_metadata(release, metadata_of(Remote(self.address(project, wheel), self.session)))
            write_whole(path, msgspec.json.encode(whole).decode())
            return whole

    def _whole(self, project: str) -> dict[str, Release]:
        versions = list(self.listing(project))
        with ThreadPoolExecutor(8) as pool:
            found = pool.map(lambda version: self._looked_into(project, version), versions)
            return {version: release for version, release in zip(versions, found, strict=True) if release}

    def page(self, index: str, project: str) -> Answer:
        """Answer the list of a project's files, fetched from PyPI where it is not known yet."""
        if index == "simple" and project not in self.world.projects:
            self.world.projects[project] = self.listing(project)
        return super().page(index, project)


def complete(recorder: Recorder) -> None:
    """Look into the newest version of what others need and nobody has asked for: it is no unknown name."""
    while True:
        projects = packed(recorder.kept)
        known = {path.stem for path in (recorder.kept / "pages").iterdir()}
        releases = [release for versions in projects.values() for release in versions.values()]
        needs = [Requirement(line) for line in {line for release in releases for line in release.requires}]
        named = {canonicalize_name(need.name) for need in needs if "extra ==" not in str(need.marker or "")}
        asked = {name: recorder.listing(name) for name in sorted(named - known)}
        for name, versions in asked.items():
            if newest := max((one for one in versions if not Version(one).is_prerelease), key=Version, default=None):
                recorder.release("simple", name, newest)
        if not asked:
            return


def versions_of(files: list[dict[str, object]]) -> Iterator[tuple[str, Release]]:
    """Yield each version with its wheels, one for each Python and system; its archive where no wheel is for any."""
    wheels: dict[Version, dict[tuple[str, str, str], str]] = {}
    archives: dict[Version, str] = {}
    said: dict[Version, tuple[str, bool]] = {}
    for file in files:
        name = str(file["filename"])
        try:
            if name.endswith(".whl"):
                version = parse_wheel_filename(name)[1]
                for key in kinds(name):
                    held = wheels.setdefault(version, {}).setdefault(key, name)
                    wheels[version][key] = min(held, name, key=_age)
            elif name.endswith((".tar.gz", ".zip")):
                version = parse_sdist_filename(name)[1]
                archives[version] = name
            else:
                continue
        except (InvalidWheelFilename, InvalidSdistFilename):
            continue
        said[version] = (str(file.get("requires-python") or ""), bool(file.get("yanked")))
    for version in sorted(said, reverse=True):
        names = tuple(sorted(set(wheels.get(version, {}).values()))) or tuple(filter(None, [archives.get(version)]))
        if names:
            yield str(version), Release(names, said[version][0], yanked=said[version][1])


def kinds(name: str) -> set[tuple[str, str, str]]:
    """Say for which Pythons and systems of the machines a wheel is: {("cp312", "cp312", "linux")}; {} for none."""
    found: set[tuple[str, str, str]] = set()
    for tag in parse_wheel_filename(name)[3]:
        minor = re.fullmatch(r"(?:cp|py)3(\d*)", tag.interpreter)
        newer = minor and minor[1] and not 8 <= int(minor[1]) <= 14
        if not minor or (newer and (tag.abi not in ("abi3", "none") or int(minor[1]) > 14)) or tag.abi.endswith("t"):
            continue
        system = next((system for system, form in SYSTEMS.items() if form.search(tag.platform)), "")
        if system:
            found.add((tag.interpreter, tag.abi, system))
    return found


def _age(name: str) -> tuple[int, ...]:
    """Order wheels of one kind by the system that they need, the oldest first: manylinux2014 is glibc 2.17."""
    tag = name.removesuffix(".whl").rpartition("-")[2].partition(".")[0]
    for word, glibc in (("manylinux1_", "2_5_"), ("manylinux2010_", "2_12_"), ("manylinux2014_", "2_17_")):
        tag = tag.replace(word, glibc)
    return tuple(map(int, re.findall(r"\d+", tag.replace("x86_64", "").replace("arm64", ""))))


def metadata_of(file: io.RawIOBase) -> str:
    """Read a wheel's METADATA."""
    with zipfile.ZipFile(file) as wheel:
        name = next(one for one in wheel.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", one))
        return wheel.read(name).decode("utf-8", "replace")


def with_metadata(release: Release, text: str) -> Release:
    """Add what a resolver reads from METADATA; lines that are no requirement are left out, as uv refuses them."""
    said = HeaderParser().parsestr(text)
    requires = []
    for line in said.get_all("Requires-Dist") or ():
        try:
            requires.append(str(Requirement(line)))
        except InvalidRequirement:
            print(f"left out: {line}", file=sys.stderr)
    extras = tuple(said.get_all("Provides-Extra") or ())
    return msgspec.structs.replace(
        release, python=said.get("Requires-Python") or release.python, requires=tuple(requires), extras=extras
    )


def packed(folder: Path) -> Projects:
    """Gather what was looked into, and archives where a project has nothing else; the rest is left out."""
    projects: Projects = {}
    for page in sorted((folder / "pages").iterdir()):
        held: dict[str, Release] = {}
        for version, listed in versions_of(json.loads(page.read_text(encoding="utf-8"))):
            path = folder / "metadata" / f"{page.stem}@{version}.json"
            if path.is_file():
                known = msgspec.json.decode(path.read_bytes(), type=Release)
                held[version] = msgspec.structs.replace(known, files=listed.files, yanked=listed.yanked)
            elif not listed.files[0].endswith(".whl"):
                held[version] = listed
        projects[page.stem] = held
    return {name: versions for name, versions in projects.items() if versions}


def main(arguments: list[str]) -> None:
    """Serve, or pack what was recorded."""
    folder = Path(arguments[0])
    if arguments[1:] == ["--pack"]:
        complete(Recorder(folder))
        day = dt.datetime.now(tz=dt.UTC).date().isoformat()
        write_world(World(day, packed(folder)))
        return
    recorder = Recorder(folder)
    print(recorder.base, flush=True)
    (folder / "address").write_text(recorder.base, encoding="utf-8")
    while True:
        time.sleep(60)
        print(len(recorder.requests), len(list((folder / "metadata").iterdir())), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
