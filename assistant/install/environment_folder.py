"""The environments on this machine: found within bounds of time, and each by its folder.

A folder tells what the environment is and holds, what is wrong with it, and how its last change goes back.
"""

from __future__ import annotations

import itertools
import os
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple, Self

import msgspec

from assistant.catalog.launchers import environment_places
from assistant.catalog.tables import Row
from assistant.host.base import Host
from assistant.host.files import full_path, shared_environments_folder
from assistant.host.process import uninterrupted
from assistant.i18n import _
from assistant.install.conflicts import environment_of, find_conflicts, project_of, undone_by_project
from assistant.install.constraints import guard_files, replaced_builds_finding
from assistant.install.environments import (
    Places,
    forget_previous,
    previous_marker,
    remove_folders,
    settle_folders,
    undo_replacement,
)
from assistant.install.in_place import LastChange, forget_change, moves_between, read_last_change, undo_change
from assistant.install.kernel import environments_with_kernels, remove_kernel, set_variables
from assistant.install.recovery import settle_target
from assistant.install.site import (
    MARKER,
    Marker,
    Site,
    has_unreadable_packages,
    interpreter,
    is_environment,
    python_of,
    read_marker,
    stamp_of,
)
from assistant.install.sources import Tools
from assistant.install.target import named_target
from assistant.model.errors import BadInput
from assistant.model.finding import Finding
from assistant.model.plan import Plan
from assistant.model.record import Record

Health = Literal["good", "changed", "broken"]
# Names that say nothing of an environment, as it is named after the folder that holds it: ~/course/.venv
_NAMELESS = {".venv", "venv", "env", ".env", "default", "python_embeded", ".pixi", "envs"}
MOST_FOLDERS = 600  # chosen: a look at one takes some 50 µs on a warm disk, and milliseconds on one that sleeps
MOST_SECONDS = 5.0  # chosen: what a user waits for a list
DEPTH_HERE, DEPTH_HOME = 4, 2  # chosen: folders below the one at hand, and below the home folder, that are entered
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


class EnvironmentFolder(NamedTuple):
    """An environment by the path of its folder, or of its Python; `kind` is what keeps it, `of` which tool that is.

    `kind` is "venv" or "conda", a "project" of uv or pixi, a Jupyter "kernel", or an "application".

    There need be none; what is asked of the disk is asked anew each time.
    """

    path: Path
    name: str = ""
    kind: str = "venv"
    of: str = ""

    @classmethod
    def described(cls, path: Path) -> Self:
        """Return the environment in a folder with its name and kind, by what lies in it and above it."""
        project = project_of(path)
        kind = "project" if project else "conda" if (path / "conda-meta").is_dir() else "venv"
        return cls(path, name_of_folder(path), kind, project.tool if project else "")

    @classmethod
    def at(cls, text: str) -> Self:
        """Return the environment of a path: of an environment's folder, of its Python, or of a project's folder.

        Raises `BadInput` for any other path. Nothing in it is started.
        """
        path = full_path(text)
        folder = environment_of(path.parent.parent if path.is_file() else path)
        if not ((folder / "pyvenv.cfg").is_file() or (folder / "conda-meta").is_dir()):
            raise cls(Path(text)).not_an_environment()
        return cls.described(folder)

    @classmethod
    def of_target(cls, text: str, host: Host) -> Self:
        """Return the environment, or the place for one, that a target stands for, as installations take it.

        It is "kernel" (this Python's environment), or the path of an environment, of its Python, or of the project of
        uv or pixi that keeps it. What an installation that was killed left there is settled first.
        """
        target = named_target(text, host)
        settle_folders(target)
        return cls(target)

    @classmethod
    def named(cls, name: str) -> Self:
        """Return the environment of ours that has a name, a path or a kernel of this name.

        Raises `BadInput` for one that the assistant did not make, and for a name that several have.
        """
        path, ours = cls(full_path(name)), cls.all_made()
        chosen = [path] if path.marker else [one for one in ours if name in {one.path.name, *one.kernels}]
        if len(chosen) != 1:
            text = (
                _("{count} environments are called '{name}'.")
                if chosen
                else _("'{name}' is not an environment that the assistant made.")
            )
            raise BadInput(
                text.format(name=name, count=len(chosen)),
                hint=_("Name it by its folder; `assistant envs` lists them all."),
            )
        return chosen[0]

    @classmethod
    def all_made(cls) -> list[Self]:
        """Return the environments that the assistant made, found in its own folder and behind Jupyter's kernels."""
        folders = sorted(path.parent for path in shared_environments_folder().glob(f"*/{MARKER}"))
        paths = dict.fromkeys([*folders, *environments_with_kernels()])
        return [cls(path, name_of_folder(path)) for path in paths if read_marker(path)]

    @classmethod
    def all_replaced_builds(cls, host: Host) -> Iterator[Finding]:
        """Yield an error for each environment whose packages are not those that our constraints in it pin."""
        own_prefix = Path(str(host.facts("platform").get("prefix", "")))
        paths = [own_prefix, *(environment.path for environment in cls.all_made()), *environments_with_kernels()]
        for environment in map(cls, dict.fromkeys(paths)):
            with suppress(BadInput):  # a Python that does not answer is another finding
                if host.read(str(guard_files(environment.path)[0])):
                    yield from environment.replaced_builds(Site.ask(environment.path, host), host)

    @property
    def python(self) -> Path:
        """The path of its Python, which need not exist."""
        return python_of(self.path)

    @property
    def exists(self) -> bool:
        """Whether it is an environment of venv, virtualenv, uv or conda, or a file that can be executed."""
        return is_environment(self.path)

    @property
    def marker(self) -> Marker | None:
        """What it was made for and with, if the assistant made it; else None."""
        return read_marker(self.path)

    @property
    def stamp(self) -> tuple[int, ...]:
        """When its Python and its folders of packages last changed (ns); () without any."""
        return stamp_of(self.python)

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of the registered kernels that start its Python."""
        return tuple(environments_with_kernels().get(self.path, ()))

    @property
    def size(self) -> int:
        """The size in bytes of all files in it; one with several names (hard links) counts once."""
        sizes: dict[int, int] = {}
        for root, _folders, files in os.walk(self.path):
            for name in files:
                with suppress(OSError):  # somebody may work there meanwhile
                    status = (Path(root) / name).lstat()
                    sizes[status.st_ino] = status.st_size
        return sum(sizes.values())

    @property
    def constraints(self) -> tuple[str, ...]:
        """The pins, such as "torch==2.13.0", in the constraints that the assistant wrote into it."""
        lines = guard_files(self.path)[0].read_text(encoding="utf-8", errors="replace").splitlines()
        return tuple(line.strip() for line in lines if "==" in line and not line.startswith("#"))  # it may be edited

    def is_unreadable(self, host: Host) -> bool:
        """Return whether a folder in which packages lie exists and cannot be listed."""
        return has_unreadable_packages(self.path, host)

    def is_foreign(self, host: Host) -> bool:
        """Return whether looking at it would start a program of somebody else's.

        Not if nothing would be started, nor in the environment that this Python runs in and those that the assistant
        made: the folder of its own environments and the user's kernels say which these are, and no file in the target.
        """
        if not self.exists:
            return False
        folder = self.python.parent.parent if self.path.is_file() else self.path
        own = Path(str(host.facts("platform").get("executable", ""))).parent.parent
        is_ours = folder in {own, *(environment.path for environment in self.all_made())}
        return not (is_ours and self.python.parent == interpreter(folder).parent)

    def not_an_environment(self) -> BadInput:
        """Return the error for a path that should be an environment and is none."""
        return BadInput(
            _("{path} is not an environment.", path=self.path),
            hint=_("Give the folder of a virtual environment, or its Python."),
        )

    def describe(self, host: Host) -> MadeEnvironment | None:
        """Return an environment of ours as it is now; its Python is asked what it holds. None for any other."""
        marker = self.marker
        if marker is None:
            return None
        differs: tuple[str, ...] = ()
        try:
            installed = Site.ask(self.path, host).versions
            original = marker.environment.packages.items()
            differs = tuple(
                f"{name} {installed.get(name, '')}".strip()
                for name, version in original
                if installed.get(name) != version
            )
            health: Health = "changed" if differs else "good"
        except BadInput:
            health = "broken"
        return MadeEnvironment(
            name=self.name,
            path=str(self.path),
            backend=marker.plan.backend.value,
            torch=marker.plan.torch,
            python=marker.plan.python,
            size=self.size,
            health=health,
            differs=differs,
            kernels=self.kernels,
        )

    def conflicts(self, site: Site) -> tuple[Finding, ...]:
        """Return a finding for each thing that breaks or is at risk in it, by what it holds."""
        return find_conflicts(site, {})

    def replaced_builds(self, site: Site, host: Host) -> Iterable[Finding]:
        """Return an error if packages that our constraints pin have other versions by now."""
        pins = host.read(str(guard_files(self.path)[0]))
        return replaced_builds_finding(self.path, pins.text, site.versions) if pins else ()

    def undone_by_project(self, plan: Plan, packages: Mapping[str, str]) -> tuple[Finding, ...]:
        """Return a finding if a project manages it, whose tool would undo the installation of a plan; else ()."""
        return undone_by_project(self.path, plan, packages)

    def set_kernel_variables(self, name: str, variables: Mapping[str, str]) -> None:
        """Add environment variables to one of its kernels; raise `WorkFailed` if it cannot be read or written."""
        set_variables(name, variables)

    @property
    def last_change(self) -> LastChange | None:
        """Its last change, if what is needed to undo it is still there; else None."""
        before, now = previous_marker(self.path), self.marker
        if before is None or now is None:
            return read_last_change(self.path)
        moves = moves_between(before.environment.packages, now.environment.packages)
        at = datetime.fromtimestamp(Places(self.path).old.stat().st_ctime, tz=UTC).isoformat(timespec="seconds")
        return LastChange(target=str(self.path), at=at, moves=moves, is_replacement=True)

    def undo_last_change(self, tools: Tools) -> None:
        """Bring back what it held before its last change; that can be undone as well.

        Raises `BadInput` if there is nothing to undo, and `WorkFailed` with the environment as it is.
        """
        settle_target(self.path, tools)
        if previous_marker(self.path):
            undo_replacement(self.path)
        else:
            undo_change(self.path, tools.host, tools.uv_of(str(self.python)))

    def forget_last_change(self) -> int:
        """Delete what is kept for undoing its last change, and return how many bytes that freed."""
        forget_change(self.path)
        return forget_previous(self.path)

    def remove(self) -> None:
        """Delete an environment that the assistant made, with its kernels and what it replaced; raise `WorkFailed`."""
        kernels, python = self.kernels, interpreter(self.path)
        with uninterrupted():
            remove_folders(self.path)
            forget_change(self.path)
            for kernel in kernels:
                remove_kernel(kernel, python)


def name_of_folder(path: Path) -> str:
    """Return the last part of a path that says something, as ".venv" does not; the whole path if none does."""
    parts = [part for part in reversed(path.parts) if part not in _NAMELESS]
    name = parts[0].rstrip("\\/:") if parts else ""
    return name or str(path)


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
        *(_environments_at(place, reader) for place in environment_places()),
        *(_environments_below(folder, depth, reader) for folder, depth in depths.items()),
    ):
        if reader.is_over:
            break
        if reader.is_environment(environment.path):
            real_path = host.link(str(environment.path)).text or str(environment.path)
            by_path.setdefault(real_path, environment)
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

    def expand(self, path: str) -> Path | None:
        """Return a path with its first part, "~" or a variable, replaced by its value; None if it has no value."""
        first, _slash, rest = path.partition("/")
        start = str(self.home or "") if first == "~" else self.host.variable(first[1:]).text
        return Path(start) / rest if start else None


def _environments_at(place: Row, reader: _BoundedReader) -> Iterator[EnvironmentFolder]:
    """Yield the paths that a row of the table of places gives, as environments; whether they exist is not checked."""

    def read(text: str) -> str:
        """Return the text of a file, "" if it cannot be read."""
        return reader.host.read(str(reader.expand(text) or "")).text

    paths = [path for text in place.paths if (path := reader.expand(text))]
    paths += [Path(line.strip()) for text in place.lists for line in read(text).splitlines() if line.strip()]
    for text in place.settings:
        with suppress(msgspec.DecodeError):
            folder = msgspec.json.decode(read(text), type=dict[str, object]).get(place.key)
            paths += [Path(folder) / below for below in place.below] if isinstance(folder, str) and folder else []
    for pattern in paths:
        before, star, after = str(pattern).partition("*")  # the name of any folder stands for one
        for name in reader.list_folder(Path(before))[0] if star else ("",):
            path = Path(f"{before}{name}{after}")
            title = (name or place.name) if place.kind == "application" else name_of_folder(path)
            is_base = place.kind == "conda" and path.parent.name != "envs" and "envs" in reader.list_folder(path)[0]
            yield EnvironmentFolder(path, "base" if is_base else title, place.kind, place.name)


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
