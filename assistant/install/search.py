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
from assistant.install.environments import remove_folders
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


class MadeEnvironment(Record, frozen=True, omit_defaults=False):
    """An environment that the assistant made: `size` in bytes, and whether it holds what it was made with.

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


def made_environments(host: Host) -> tuple[MadeEnvironment, ...]:
    """Return the environments that the assistant made, found in its own folder and behind Jupyter's kernels."""
    kernels = environments_with_kernels()
    return tuple(
        _describe_made(folder, marker, kernels.get(folder, ()), host) for folder, marker in marked_environments()
    )


def replaced_builds(host: Host) -> tuple[Finding, ...]:
    """Return an error for each environment with our constraints whose packages are not of those versions any more."""
    own_prefix = Path(str(host.facts("platform").get("prefix", "")))
    folders = [folder for folder, _marker in marked_environments()]
    findings = []
    for folder in dict.fromkeys([own_prefix, *folders, *environments_with_kernels()]):
        pins = host.read(str(guards(folder)[0]))
        with suppress(BadInput):  # a Python that does not answer is another finding
            findings.append(replaced(folder, pins.text, look_at(folder, host).versions) if pins else None)
    return tuple(filter(None, findings))


def remove_environment(name: str) -> Path:
    """Delete an environment, found by its name, path or kernel, with its kernels, and return its folder.

    Raises `BadInput` for one that the assistant did not make, and for a name that several have.
    """
    kernels, path = environments_with_kernels(), full_path(name)
    ours = dict(marked_environments())
    matching = [folder for folder in ours if name in {folder.name, *kernels.get(folder, ())}]
    chosen = [path] if read_marker(path) else matching
    if len(chosen) != 1:
        text = (
            _("{count} environments are called '{name}'.")
            if chosen
            else _("'{name}' is not an environment that the assistant made.")
        )
        raise BadInput(
            text.format(name=name, count=len(chosen)), hint=_("Name it by its folder; `assistant envs` lists them all.")
        )
    with uninterrupted():
        remove_folders(chosen[0])
        forget_change(chosen[0])
        for kernel in kernels.get(chosen[0], ()):
            remove_kernel(kernel, interpreter(chosen[0]))
    return chosen[0]


def marked_environments() -> Iterator[tuple[Path, Marker]]:
    """Yield the folder and the marker of each environment that the assistant made."""
    folders = sorted(path.parent for path in environments_folder().glob(f"*/{MARKER}"))
    for folder in dict.fromkeys([*folders, *environments_with_kernels()]):
        if marker := read_marker(folder):
            yield folder, marker


def foreign_target(text: str, host: Host) -> Path | None:
    """Return the environment or Python of a target if looking at it would start somebody else's program; else None.

    None if nothing would be started, and for the environment that this Python runs in and those that the assistant
    made: the folder of its own environments and the user's kernels say which these are, and no file in the target.
    """
    target = named_target(text, host)
    if not is_environment(target):
        return None
    python = python_of(target)
    folder = python.parent.parent if target.is_file() else target
    own_environment = Path(str(host.facts("platform").get("executable", ""))).parent.parent
    is_ours = folder in {own_environment, *dict(marked_environments())} and python.parent == interpreter(folder).parent
    return None if is_ours else target


def _describe_made(folder: Path, marker: Marker, kernels: Sequence[str], host: Host) -> MadeEnvironment:
    """Return an environment of ours as it is now; its Python is asked what it holds."""
    differs: tuple[str, ...] = ()
    try:
        installed = look_at(folder, host).versions
        original = marker.environment.packages
        differs = tuple(
            f"{name} {installed.get(name, '')}".strip()
            for name, version in original.items()
            if installed.get(name) != version
        )
        health: Health = "changed" if differs else "good"
    except BadInput:
        health = "broken"
    return MadeEnvironment(
        name=_environment_name(folder),
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
    """Return the size in bytes of all files below a folder; one with several names (hard links) counts once."""
    sizes: dict[int, int] = {}
    for root, _folders, files in os.walk(folder):
        for name in files:
            with suppress(OSError):  # somebody may work there meanwhile
                status = (Path(root) / name).lstat()
                sizes[status.st_ino] = status.st_size
    return sum(sizes.values())


class FoundEnvironment(NamedTuple):
    """An environment that was found: its folder, name and kind; `of` is its tool or application, or ""."""

    path: Path
    name: str
    kind: Kind
    of: str = ""


class Search(NamedTuple):
    """The environments that were found; `cut_short` if the search ended before it had looked into all folders."""

    environments: tuple[FoundEnvironment, ...]
    cut_short: bool


def environment_at(path: str) -> FoundEnvironment:
    """Return the environment of a path: that of an environment's folder, of its Python, or of a project's folder.

    Raises `BadInput` for any other path. Nothing in it is started.
    """
    absolute = full_path(path)
    folder = environment_of(absolute.parent.parent if absolute.is_file() else absolute)
    if not ((folder / "pyvenv.cfg").is_file() or (folder / "conda-meta").is_dir()):
        raise not_an_environment(path)
    return _describe_found(folder)


def find_environments(host: Host, here: Path, made: Iterable[Path] = (), named: Iterable[Path] = ()) -> Search:
    """Return environments: those in `made`, of kernels, at `places`, in the folders `named`, below `here` and home.

    The search has bounds of time and folders (`Search.cut_short`). An environment is listed once, by its first name.
    """
    reader = _BoundedReader(host)
    by_path: dict[str, FoundEnvironment] = {}
    depths = {here: DEPTH_HERE} | ({reader.home: DEPTH_HOME} if reader.home else {})
    for environment in itertools.chain(
        (FoundEnvironment(path, _environment_name(path), "venv") for path in made),
        (FoundEnvironment(path, _environment_name(path), "kernel") for path in environments_with_kernels()),
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


def _environments_at(place: Row, reader: _BoundedReader) -> Iterator[FoundEnvironment]:
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
            name = place.name if is_single else star if place.kind == "application" else _environment_name(path)
            base = place.kind == "conda" and path.parent.name != "envs"
            yield FoundEnvironment(
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


def _environments_below(top: Path, depth: int, reader: _BoundedReader) -> Iterator[FoundEnvironment]:
    """Yield the environments in a folder and below it, the nearest first; none inside of links and environments."""
    queue = deque([(top, depth)])
    while queue and not reader.is_over:
        folder, levels = queue.popleft()
        if reader.is_environment(folder):
            yield _describe_found(folder)
        elif levels:
            queue += [
                (folder / name, levels - 1)
                for name in reader.list_folder(folder)[0]
                if name not in _PASSED_OVER and (name in _ENTERED or not name.startswith("."))
            ]


def _describe_found(folder: Path) -> FoundEnvironment:
    """Return an environment with its name and kind, by what lies in it and above it."""
    project = project_of(folder)
    kind: Kind = "project" if project else "conda" if (folder / "conda-meta").is_dir() else "venv"
    return FoundEnvironment(folder, _environment_name(folder), kind, project.tool if project else "")


def _environment_name(path: Path) -> str:
    """Return the last part of a path that says something, as ".venv" does not; the whole path if none does."""
    parts = [part for part in reversed(path.parts) if part not in _NAMELESS and part not in {".pixi", "envs"}]
    name = parts[0].rstrip("\\/:") if parts else ""
    return name or str(path)
