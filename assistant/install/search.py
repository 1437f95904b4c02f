"""The environments on this machine: those that the assistant made, and those that others made."""

from __future__ import annotations

import itertools
import os
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from assistant.catalog.launchers import places
from assistant.catalog.tables import Row
from assistant.host.base import Host
from assistant.host.process import uninterrupted
from assistant.i18n import _
from assistant.install.conflicts import environment_of, project_of
from assistant.install.constraints import guards, replaced
from assistant.install.environments import remove
from assistant.install.in_place import forget_change
from assistant.install.inspect_env import interpreter, is_environment, look_at, python_of
from assistant.install.kernel import environments_with_kernels, remove_kernel
from assistant.install.marker import MARKER, Marker, read_marker
from assistant.install.target import (
    environments_folder,
    full_path,
    named_target,
    not_an_environment,
)
from assistant.model.errors import BadInput
from assistant.model.finding import Finding
from assistant.model.record import Record

Health = Literal["good", "changed", "broken"]
Kind = Literal["kernel", "venv", "conda", "project", "application"]
MOST_FOLDERS = 600  # chosen: a look at one takes some 50 µs on a warm disk, and milliseconds on one that sleeps
MOST_SECONDS = 5.0  # chosen: what a user waits for a list
DEPTH_HERE, DEPTH_HOME = 4, 2  # chosen: folders below the one at hand, and below the home folder, that are entered
# Names that say nothing of an environment, as it is named after the folder that holds it: ~/course/.venv
_NAMELESS = {".venv", "venv", "env", ".env", "default", "python_embeded"}
# Where no environment of the user's lies, or so many files that the bounds would be spent there.
_PASSED_OVER = {"node_modules", "site-packages", "__pycache__", "Library", "AppData", "snap", "go", "proc", "sys"}
_ENTERED = {".venv", ".pixi", ".env"}  # of the folders whose names begin with a dot


class Made(Record, frozen=True, omit_defaults=False):
    """One environment: its size in bytes, and whether it holds what it was made with.

    "changed" lists packages of other versions in `differs`; "broken" has a Python that does not answer.
    """

    name: str
    path: str
    backend: str
    torch: str
    python: str
    size: int
    health: Health
    differs: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()


def made_environments(host: Host) -> tuple[Made, ...]:
    """List what the assistant made, found in its own folder and behind Jupyter's kernels."""
    kernels = environments_with_kernels()
    return tuple(_made(folder, marker, kernels.get(folder, ()), host) for folder, marker in marked_environments())


def replaced_builds(host: Host) -> tuple[Finding, ...]:
    """Find environments that the assistant made or changed, and whose builds were replaced since."""
    here = Path(str(host.facts("platform").get("prefix", "")))
    made = [folder for folder, _marker in marked_environments()]
    found = []
    for folder in dict.fromkeys([here, *made, *environments_with_kernels()]):
        pins = host.read(str(guards(folder)[0]))
        with suppress(BadInput):  # a Python that does not answer is another finding
            found.append(replaced(folder, pins.text, look_at(folder, host).versions) if pins else None)
    return tuple(filter(None, found))


def remove_environment(name: str) -> Path:
    """Remove an environment by its name, its path or its kernel's name, with all of its kernels.

    Raises `BadInput` for one that is not ours, and for a name that several have.
    """
    kernels, path = environments_with_kernels(), full_path(name)
    ours = dict(marked_environments())
    named = [folder for folder in ours if name in {folder.name, *kernels.get(folder, ())}]
    found = [path] if read_marker(path) else named
    if len(found) != 1:
        text = (
            _("{count} environments are called '{name}'.")
            if found
            else _("'{name}' is not an environment that the assistant made.")
        )
        raise BadInput(
            text.format(name=name, count=len(found)), hint=_("Name it by its folder; `assistant envs` lists them all.")
        )
    with uninterrupted():
        remove(found[0])
        forget_change(found[0])
        for kernel in kernels.get(found[0], ()):
            remove_kernel(kernel, interpreter(found[0]))
    return found[0]


def marked_environments() -> Iterator[tuple[Path, Marker]]:
    """Yield the folder and the marker of each environment that the assistant made."""
    folders = sorted(path.parent for path in environments_folder().glob(f"*/{MARKER}"))
    for folder in dict.fromkeys([*folders, *environments_with_kernels()]):
        if marker := read_marker(folder):
            yield folder, marker


def foreign_target(text: str, host: Host) -> Path | None:
    """Return the environment or the Python that a target names where looking at it starts a program of somebody else's.

    None where nothing would be started, and for the environment that this Python runs in and those that the assistant
    made: the folder of its own environments and the user's kernels say which these are, and no file in the target.
    """
    target = named_target(text, host)
    if not is_environment(target):
        return None
    python = python_of(target)
    folder = python.parent.parent if target.is_file() else target
    own = Path(str(host.facts("platform").get("executable", ""))).parent.parent
    is_ours = folder in {own, *dict(marked_environments())} and python.parent == interpreter(folder).parent
    return None if is_ours else target


def _made(folder: Path, marker: Marker, kernels: Sequence[str], host: Host) -> Made:
    differs: tuple[str, ...] = ()
    try:
        now = look_at(folder, host).versions
        before = marker.environment.packages
        differs = tuple(
            f"{name} {now.get(name, '')}".strip() for name, version in before.items() if now.get(name) != version
        )
        health: Health = "changed" if differs else "good"
    except BadInput:
        health = "broken"
    return Made(
        name=_name(folder),
        path=str(folder),
        backend=marker.plan.backend.value,
        torch=marker.plan.torch,
        python=marker.plan.python,
        size=size_of(folder),
        health=health,
        differs=differs,
        kernels=tuple(kernels),
    )


def size_of(folder: Path) -> int:
    """Return the bytes of all files below a folder; one with several names (hard links) counts once."""
    sizes: dict[int, int] = {}
    for root, _folders, files in os.walk(folder):
        for name in files:
            with suppress(OSError):  # somebody may work there meanwhile
                found = (Path(root) / name).lstat()
                sizes[found.st_ino] = found.st_size
    return sum(sizes.values())


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


def find_environments(host: Host, here: Path, made: Iterable[Path] = (), named: Iterable[Path] = ()) -> Search:
    """Find environments: those `made` here, those of kernels, in the `places`, below `here` and the home folder.

    `named` are folders that the user wants searched as well. Of several names of one environment the first counts.
    """
    look = _Look(host)
    found: dict[str, Spot] = {}
    tops = {here: DEPTH_HERE} | ({look.home: DEPTH_HOME} if look.home else {})
    for environment in itertools.chain(
        (Spot(path, _name(path), "venv") for path in made),
        (Spot(path, _name(path), "kernel") for path in environments_with_kernels()),
        *(_below(folder, DEPTH_HERE, look) for folder in named),
        *(_at(place, look) for place in places()),
        *(_below(folder, depth, look) for folder, depth in tops.items()),
    ):
        if look.over:
            break
        if look.is_environment(environment.path) and (real := look.real(environment.path)) not in found:
            found[real] = environment
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


def _at(place: Row, look: _Look) -> Iterator[Spot]:
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
