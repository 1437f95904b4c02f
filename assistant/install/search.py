"""Looks for environments where people and programs put them, within bounds of time and of folders."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from assistant.catalog.launchers import places
from assistant.catalog.tables import Row
from assistant.host.base import Host
from assistant.install.environment_folder import EnvironmentFolder, name_of_folder
from assistant.install.kernel import environments_with_kernels

MOST_FOLDERS = 600  # chosen: a look at one takes some 50 µs on a warm disk, and milliseconds on one that sleeps
MOST_SECONDS = 5.0  # chosen: what a user waits for a list
DEPTH_HERE, DEPTH_HOME = 4, 2  # chosen: folders below the one at hand, and below the home folder, that are entered
# Where no environment of the user's lies, or so many files that the bounds would be spent there.
_PASSED_OVER = {"node_modules", "site-packages", "__pycache__", "Library", "AppData", "snap", "go", "proc", "sys"}
_ENTERED = {".venv", ".pixi", ".env"}  # of the folders whose names begin with a dot


class Search(NamedTuple):
    """The environments that were found; `cut_short` if the search ended before it had looked into all folders."""

    environments: tuple[EnvironmentFolder, ...]
    cut_short: bool


def find_environments(host: Host, here: Path, named: Iterable[Path] = ()) -> Search:
    """Return environments: ours, those of kernels, at `places`, in the folders `named`, below `here` and home.

    The search has bounds of time and folders (`Search.cut_short`). An environment is listed once, by its first name.
    """
    reader = _BoundedReader(host)
    by_path: dict[str, EnvironmentFolder] = {}
    depths = {here: DEPTH_HERE} | ({reader.home: DEPTH_HOME} if reader.home else {})
    for environment in itertools.chain(
        EnvironmentFolder.all_made(),
        (EnvironmentFolder(path, name_of_folder(path), "kernel") for path in environments_with_kernels()),
        *(_environments_below(folder, DEPTH_HERE, reader) for folder in named),
        *(_environments_at(place, reader) for place in places()),
        *(_environments_below(folder, depth, reader) for folder, depth in depths.items()),
    ):
        if reader.is_over:
            break
        if reader.is_environment(environment.path) and (real := reader.real_path(environment.path)) not in by_path:
            by_path[real] = environment
    return Search(tuple(by_path.values()), reader.is_over)


class _BoundedReader:
    """Reads folders of a host, as long as the bounds of time and number allow, each once."""

    def __init__(self, host: Host) -> None:
        self.host = host
        home = host.variable("HOME").text or host.variable("USERPROFILE").text
        self.home = Path(home) if home else None
        self._left = MOST_FOLDERS
        self._end = time.monotonic() + MOST_SECONDS
        self._seen: dict[Path, tuple[list[str], list[str]]] = {}

    @property
    def is_over(self) -> bool:
        """Whether the bounds of time or number are reached."""
        return self._left <= 0 or time.monotonic() > self._end

    def list_folder(self, folder: Path) -> tuple[list[str], list[str]]:
        """Return the names of the folders in a folder, and of all else in it; ([], []) if it cannot be listed."""
        if folder not in self._seen:
            self._left -= 1
            listing = {} if self.is_over else self.host.facts("folder", str(folder))
            folders, others = listing.get("folders", []), listing.get("others", [])
            are_lists = isinstance(folders, list) and isinstance(others, list)
            self._seen[folder] = (folders, others) if are_lists else ([], [])  # type: ignore[assignment]
        return self._seen[folder]

    def is_environment(self, folder: Path) -> bool:
        """Return whether a folder is an environment of venv, virtualenv, uv or conda, by what lies in it."""
        folders, others = self.list_folder(folder)
        return "pyvenv.cfg" in others or "conda-meta" in folders

    def real_path(self, folder: Path) -> str:
        """Return the path of a folder with all links resolved; the path itself if that cannot be told."""
        return self.host.link(str(folder)).text or str(folder)

    def expand(self, path: str) -> Path | None:
        """Return a path with its first part, "~" or a variable, replaced by its value; None if it has no value."""
        first, _slash, rest = path.partition("/")
        start = str(self.home or "") if first == "~" else self.host.variable(first[1:]).text
        return Path(start) / rest if start else None


def _environments_at(place: Row, reader: _BoundedReader) -> Iterator[EnvironmentFolder]:
    """Yield the paths that a row of the table of places gives, as environments; whether they exist is not checked."""
    paths = [path for text in place.paths if (path := reader.expand(text))]
    for text in place.lists:
        lines = reader.host.read(str(reader.expand(text) or "")).text.splitlines()
        paths += [Path(line.strip()) for line in lines if line.strip()]
    for text in place.settings:
        if folder := _read_setting(reader.host.read(str(reader.expand(text) or "")).text, place.key):
            paths += [Path(folder) / below for below in place.below]
    for pattern in paths:
        for path, star in _expand_star(pattern, reader):
            is_single = place.kind == "application" and not star
            name = place.name if is_single else star if place.kind == "application" else name_of_folder(path)
            base = place.kind == "conda" and path.parent.name != "envs"
            yield EnvironmentFolder(
                path, "base" if base and "envs" in reader.list_folder(path)[0] else name, place.kind, place.name
            )


def _read_setting(text: str, key: str) -> str:
    """Return a text value of a JSON object by its key; "" if there is none."""
    try:
        value = msgspec.json.decode(text, type=dict[str, object]).get(key)
    except msgspec.DecodeError:
        return ""
    return value if isinstance(value, str) else ""


def _expand_star(pattern: Path, reader: _BoundedReader) -> Iterator[tuple[Path, str]]:
    """Yield the paths that a path with at most one "*" stands for, each with the name that replaces the star, or ""."""
    if "*" not in pattern.parts:
        yield pattern, ""
        return
    index = pattern.parts.index("*")
    parent = Path(*pattern.parts[:index])
    for name in reader.list_folder(parent)[0]:
        yield parent.joinpath(name, *pattern.parts[index + 1 :]), name


def _environments_below(top: Path, depth: int, reader: _BoundedReader) -> Iterator[EnvironmentFolder]:
    """Yield the environments in a folder and below it, the nearest first; none inside of links and environments."""
    queue = deque([(top, depth)])
    while queue and not reader.is_over:
        folder, levels = queue.popleft()
        if reader.is_environment(folder):
            yield EnvironmentFolder.described(folder)
        elif levels:
            queue += [
                (folder / name, levels - 1)
                for name in reader.list_folder(folder)[0]
                if name not in _PASSED_OVER and (name in _ENTERED or not name.startswith("."))
            ]
