"""Finds the environments on a machine: only names in folders are read, within bounds, and nothing is started."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from assistant.catalog.places import Place, places
from assistant.host.base import Host
from assistant.install.kernel import environments_with_kernels
from assistant.install.project import environment_of, project_of
from assistant.install.target import full_path, not_an_environment

Kind = Literal["kernel", "venv", "conda", "project", "application"]
MOST_FOLDERS = 600  # chosen: a look at one takes some 50 µs on a warm disk, and milliseconds on one that sleeps
MOST_SECONDS = 5.0  # chosen: what a user waits for a list
DEPTH_HERE, DEPTH_HOME = 4, 2  # chosen: folders below the one at hand, and below the home folder, that are entered
# Names that say nothing of an environment, as it is named after the folder that holds it: ~/course/.venv
_NAMELESS = {".venv", "venv", "env", ".env", "default", "python_embeded"}
# Where no environment of the user's lies, or so many files that the bounds would be spent there.
_PASSED_OVER = {"node_modules", "site-packages", "__pycache__", "Library", "AppData", "snap", "go", "proc", "sys"}
_ENTERED = {".venv", ".pixi", ".env"}  # of the folders whose names begin with a dot


class Spot(NamedTuple):
    """An environment that was found: where, by what name, as what (`of` names the tool or application)."""

    path: Path
    name: str
    kind: Kind
    of: str = ""


class Search(NamedTuple):
    """What was found, and whether the search ended before it had been everywhere."""

    spots: tuple[Spot, ...]
    cut_short: bool


def spot_at(path: str) -> Spot:
    """Return the environment that a path names: its folder, its Python, or the project that keeps it.

    Raises `BadInput` for any other path. Nothing in it is started.
    """
    given = full_path(path)
    folder = environment_of(given.parent.parent if given.is_file() else given)
    if not ((folder / "pyvenv.cfg").is_file() or (folder / "conda-meta").is_dir()):
        raise not_an_environment(path)
    return _spot(folder)


def find_environments(host: Host, here: Path, known: Iterable[Path] = (), named: Iterable[Path] = ()) -> Search:
    """Find environments: `known` ones, those of kernels, in the `places`, below `here` and the home folder.

    `named` are folders that the user wants searched as well. Of several names of one environment the first counts.
    """
    look = _Look(host)
    found: dict[str, Spot] = {}
    tops = {here: DEPTH_HERE} | ({look.home: DEPTH_HOME} if look.home else {})
    for spot in itertools.chain(
        (Spot(path, _name(path), "venv") for path in known),
        (Spot(path, _name(path), "kernel") for path in environments_with_kernels()),
        *(_below(folder, DEPTH_HERE, look) for folder in named),
        *(_at(place, look) for place in places()),
        *(_below(folder, depth, look) for folder, depth in tops.items()),
    ):
        if look.over:
            break
        if look.is_environment(spot.path) and (real := look.real(spot.path)) not in found:
            found[real] = spot
    return Search(tuple(found.values()), look.over)


class _Look:
    """Looks into folders, as long as the bounds allow."""

    def __init__(self, host: Host) -> None:
        self.host = host
        home = host.variable("HOME").text or host.variable("USERPROFILE").text
        self.home = Path(home) if home else None
        self._left = MOST_FOLDERS
        self._end = time.monotonic() + MOST_SECONDS
        self._seen: dict[Path, tuple[list[str], list[str]]] = {}

    @property
    def over(self) -> bool:
        """Whether the bounds are reached."""
        return self._left <= 0 or time.monotonic() > self._end

    def into(self, folder: Path) -> tuple[list[str], list[str]]:
        """Return the names of a folder's own folders, and of what else is in it; each folder is looked into once."""
        if folder not in self._seen:
            self._left -= 1
            said = {} if self.over else self.host.facts("folder", str(folder))
            folders, others = said.get("folders", []), said.get("others", [])
            lists = isinstance(folders, list) and isinstance(others, list)
            self._seen[folder] = (folders, others) if lists else ([], [])  # type: ignore[assignment]
        return self._seen[folder]

    def is_environment(self, folder: Path) -> bool:
        """Return whether a folder is an environment of venv, virtualenv, uv or conda, by what lies in it."""
        folders, others = self.into(folder)
        return "pyvenv.cfg" in others or "conda-meta" in folders

    def real(self, folder: Path) -> str:
        """Return a folder's path without links; its own where it cannot be told."""
        return self.host.link(str(folder)).text or str(folder)

    def expanded(self, path: str) -> Path | None:
        """Put the home folder or a variable's value in place of a path's first part; None where there is none."""
        first, _slash, rest = path.partition("/")
        start = str(self.home or "") if first == "~" else self.host.variable(first[1:]).text
        return Path(start) / rest if start else None


def _at(place: Place, look: _Look) -> Iterator[Spot]:
    """Yield the environments at the places of a tool or an application."""
    paths = [path for text in place.paths if (path := look.expanded(text))]
    for text in place.lists:
        listed = look.host.read(str(look.expanded(text) or "")).text.splitlines()
        paths += [Path(line.strip()) for line in listed if line.strip()]
    for text in place.settings:
        if folder := _setting(look.host.read(str(look.expanded(text) or "")).text, place.key):
            paths += [Path(folder) / below for below in place.below]
    for pattern in paths:
        for path, star in _matching(pattern, look):
            own = place.kind == "application" and not star
            name = place.name if own else star if place.kind == "application" else _name(path)
            base = place.kind == "conda" and path.parent.name != "envs"
            yield Spot(path, "base" if base and "envs" in look.into(path)[0] else name, place.kind, place.name)


def _setting(text: str, key: str) -> str:
    try:
        value = msgspec.json.decode(text, type=dict[str, object]).get(key)
    except msgspec.DecodeError:
        return ""
    return value if isinstance(value, str) else ""


def _matching(pattern: Path, look: _Look) -> Iterator[tuple[Path, str]]:
    """Yield the folders that a path with at most one "*" means, each with what stands for that."""
    if "*" not in pattern.parts:
        yield pattern, ""
        return
    place = pattern.parts.index("*")
    above = Path(*pattern.parts[:place])
    for name in look.into(above)[0]:
        yield above.joinpath(name, *pattern.parts[place + 1 :]), name


def _below(top: Path, depth: int, look: _Look) -> Iterator[Spot]:
    """Yield the environments in a folder and below it, the nearest first; links and environments are not entered."""
    waiting = deque([(top, depth)])
    while waiting and not look.over:
        folder, left = waiting.popleft()
        if look.is_environment(folder):
            yield _spot(folder)
        elif left:
            waiting += [
                (folder / name, left - 1)
                for name in look.into(folder)[0]
                if name not in _PASSED_OVER and (name in _ENTERED or not name.startswith("."))
            ]


def _spot(folder: Path) -> Spot:
    project = project_of(folder)
    kind: Kind = "project" if project else "conda" if (folder / "conda-meta").is_dir() else "venv"
    return Spot(folder, _name(folder), kind, project.tool if project else "")


def _name(path: Path) -> str:
    """Name an environment after its folder, or after the folder that holds it where its own says nothing."""
    parts = [part for part in reversed(path.parts) if part not in _NAMELESS and part not in {".pixi", "envs"}]
    named = parts[0].rstrip("\\/:") if parts else ""
    return named or str(path)
