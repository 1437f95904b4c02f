"""The environments on this machine: a search for them within a time limit, and one environment by its folder.

`EnvironmentFolder` gives what an environment is and holds, and what is wrong with it; it undoes the last change.
"""

from __future__ import annotations

import itertools
import os
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Self

import msgspec

from assistant.catalog.catalog import environment_places
from assistant.catalog.tables import Row
from assistant.host.base import Host
from assistant.host.files import full_path, shared_environments_folder
from assistant.host.process import defer_signals
from assistant.i18n import _
from assistant.install.conflicts import find_conflicts, replaced_builds_findings
from assistant.install.contents import bundled_pip
from assistant.install.environments import (
    Places,
    check_target,
    delete_previous,
    previous_marker,
    remove_folders,
    resolve_target,
    settle_folders,
    swap_with_previous,
)
from assistant.install.guards import (
    constraints_uri,
    guard_files,
    read_pins,
    remove_guards,
    terminal_line,
    write_guards,
    write_variables,
)
from assistant.install.in_place import (
    LastChange,
    delete_undo_record,
    find_torch_index,
    index_of_build,
    moves_between,
    plan_for_resolving,
    read_last_change,
    undo_change,
)
from assistant.install.installation import settle_target
from assistant.install.kernel import folder_of_python, kernel_names_by_environment, remove_kernel, set_variables
from assistant.install.projects import (
    find_project,
    guard_project,
    guard_tools,
    lines_to_write,
    project_environment,
    project_undo_findings,
    unguard_project,
    unguard_tools,
)
from assistant.install.site import (
    MARKER,
    Marker,
    Site,
    find_python,
    has_unreadable_packages,
    interpreter,
    is_environment,
    read_marker,
    read_timestamps,
)
from assistant.install.sources import Tools
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.finding import Finding
from assistant.model.plan import Plan

# Folder names that do not identify an environment; one in ~/course/.venv is named after the folder above.
_NAMELESS = {".venv", "venv", "env", ".env", "default", "python_embeded", ".pixi", "envs"}
MOST_FOLDERS = 600  # chosen: a look at one takes some 50 µs on a warm disk, and milliseconds on one that sleeps
MOST_SECONDS = 5.0  # chosen: what a user waits for a list
DEPTH_HERE, DEPTH_HOME = 4, 2  # chosen: folders below the one at hand, and below the home folder, that are entered
# Where no environment of the user's lies, or so many files that the bounds would be spent there.
_PASSED_OVER = {"node_modules", "site-packages", "__pycache__", "Library", "AppData", "snap", "go", "proc", "sys"}
_ENTERED = {".venv", ".pixi", ".env"}  # of the folders whose names begin with a dot


@dataclass(frozen=True)
class EnvironmentFolder:
    """A path at which there may be an environment: its folder, or its Python. Every property reads the disk anew.

    `kind` is what it belongs to: "venv" or "conda", a "project" of uv or pixi, a Jupyter "kernel", an "application".
    `tool` is the name of that project's tool, or of the place in the table of launchers; "" for others.
    """

    path: Path
    name: str = ""
    kind: str = "venv"
    tool: str = ""

    bundled_pip = staticmethod(bundled_pip)
    terminal_line = staticmethod(terminal_line)

    @classmethod
    def from_folder(cls, path: Path) -> Self:
        """Return the environment in a folder with its name, kind and tool, by the files in it and in its project."""
        project = find_project(path)
        kind = "project" if project else "conda" if (path / "conda-meta").is_dir() else "venv"
        return cls(path, name_of_folder(path), kind, project.tool if project else "")

    @classmethod
    def at(cls, text: str) -> Self:
        """Return the environment at a path: its folder, its Python, or the folder of its project of uv or pixi.

        Raises `BadInput` for any other path. No program is started.
        """
        folder = project_environment(cls(full_path(text)).folder)
        if not ((folder / "pyvenv.cfg").is_file() or (folder / "conda-meta").is_dir()):
            raise cls(Path(text)).not_an_environment_error()
        return cls.from_folder(folder)

    @classmethod
    def from_target(cls, text: str, host: Host) -> Self:
        """Return the environment at an installation's target, which need not exist yet.

        `text` is "kernel" (this Python's environment), or the path of an environment, of its Python, or of the project
        of uv or pixi that manages it. An installation that was killed there is finished or rolled back first, but not
        a change in place. Raises `BadInput` for an impossible path, and as `settle_folders` does.
        """
        target = resolve_target(text, host)
        settle_folders(target)
        return cls(target)

    @classmethod
    def named(cls, name: str) -> Self:
        """Return the environment made by the assistant that has this path, folder name or kernel name.

        Raises `BadInput` for one that the assistant did not make, and for a name that several have.
        """
        path, ours = cls(full_path(name)), cls.list_made()
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
    def of_kernel(cls, name: str) -> Self | None:
        """Return the environment whose Python a registered kernel starts; None for no such kernel."""
        return next((cls(path) for path, names in kernel_names_by_environment().items() if name in names), None)

    @classmethod
    def list_made(cls) -> list[Self]:
        """Return the environments that the assistant made: those in its own folder, by path, then those of kernels."""
        folders = sorted(path.parent for path in shared_environments_folder().glob(f"*/{MARKER}"))
        paths = dict.fromkeys([*folders, *kernel_names_by_environment()])
        return [cls(path, name_of_folder(path)) for path in paths if read_marker(path)]

    @classmethod
    def find_all_replaced_builds(cls, host: Host, *others: Path) -> Iterator[Finding]:
        """Yield an error for each environment, this Python's, ours, kernels', `others`, whose pinned packages changed.

        The Pythons of those with constraints are run; one that does not answer is skipped.
        """
        own_prefix = Path(str(host.facts("platform").get("prefix", "")))
        made = (environment.path for environment in cls.list_made())
        for environment in map(cls, dict.fromkeys([own_prefix, *made, *kernel_names_by_environment(), *others])):
            with suppress(BadInput):  # a Python that does not answer is another finding
                if host.read(str(guard_files(environment.path)[0])):
                    yield from environment.find_replaced_builds(Site.ask(environment.path, host), host)

    @property
    def folder(self) -> Path:
        """Its folder; if the path is a file, a Python, the folder of the environment that this belongs to."""
        return folder_of_python(self.path) if self.path.is_file() else self.path

    @property
    def python(self) -> Path:
        """The path of its Python, which need not exist."""
        return find_python(self.path)

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
        """The modification times (ns) of its Python and of each folder of packages; () if it has none."""
        return read_timestamps(self.python)

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of the registered kernels that start its Python."""
        return tuple(kernel_names_by_environment().get(self.path, ()))

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

    def is_unreadable(self, host: Host) -> bool:
        """Return whether one of its folders of packages exists and cannot be listed."""
        return has_unreadable_packages(self.path, host)

    def is_foreign(self, host: Host) -> bool:
        """Return whether an environment exists and its Python is a stranger's program, which is run only after asking.

        That is any but the environment that this Python runs in and those that the assistant made. Which these are is
        known from the assistant's own folder and the user's kernels, never from a file in it.
        """
        if not self.exists:
            return False
        own = Path(str(host.facts("platform").get("prefix", "")))
        is_ours = self.folder in {own, *(environment.path for environment in self.list_made())}
        return not (is_ours and self.python.parent == interpreter(self.folder).parent)

    def not_an_environment_error(self) -> BadInput:
        """Return the error for a path that should be an environment and is none."""
        return BadInput(
            _("{path} is not an environment.", path=self.path),
            hint=_("Give the folder of a virtual environment, or its Python."),
        )

    def conflicts(self, site: Site) -> tuple[Finding, ...]:
        """Return a finding for each thing that is broken or at risk in it; `site` is what it holds."""
        return find_conflicts(site, {})

    def find_replaced_builds(self, site: Site, host: Host) -> Iterable[Finding]:
        """Return an error if packages that the assistant's constraints pin now have other versions; else ()."""
        pins = host.read(str(guard_files(self.path)[0]))
        return replaced_builds_findings(self.path, read_pins(pins.text), site) if pins else ()

    @property
    def guards(self) -> tuple[str, ...]:
        """The pins of its constraints, such as "torch==2.13.0+cpu"; () if there are none to read."""
        try:
            pins = read_pins(guard_files(self.path)[0].read_text(encoding="utf-8", errors="replace"))
        except OSError:
            return ()
        return tuple(f"{name}=={version}" for name, version in pins.items())

    @property
    def index_of_guards(self) -> str | None:
        """The index that the torch of its constraints comes from; None is the default one, and without such a pin."""
        torch = next((pin.partition("==")[2] for pin in self.guards if pin.startswith("torch==")), "")
        return self.marker.plan.index_url if self.marker else index_of_build(torch)

    def guard(self, site: Site) -> tuple[Finding, ...]:
        """Make pip and uv keep torch and what goes with it at the versions that it holds (`site`).

        Writes its constraints file and pip's configuration, and adds lines to its activation scripts and to the files
        of `lines_outside`. Returns what else the user should do: some files are left to the user. Raises `BadInput` for
        an environment that may not be changed or has no torch, and `WorkFailed` if a file cannot be written.
        """
        check_target(self.path, site)
        plan = self._plan_of_torch(site)
        try:
            write_guards(self.path, site.versions, self.path)
            self._set_uv_constraint(constraints_uri(self.path))
            in_project = guard_project(self.path, plan, site.versions)
            return (*in_project, *guard_tools(self.path, plan, site.versions))
        except OSError as error:
            raise WorkFailed(_("{path} cannot be written: {reason}", path=self.path, reason=error)) from error

    def lines_outside(self, site: Site) -> dict[Path, str]:
        """Return the lines that `guard` would write outside of it by file: its project's, its application's."""
        return lines_to_write(self.path, self._plan_of_torch(site), site.versions)

    def _plan_of_torch(self, site: Site) -> Plan:
        """Return a plan of the torch that it holds, with the index of that; raise `BadInput` if it has none."""
        if "torch" not in site.versions:
            raise BadInput(_("{path} has no torch to keep.", path=self.path), hint=_("Install it there first."))
        return plan_for_resolving(site, (f"torch=={site.versions['torch']}",), find_torch_index(site))

    def unguard(self) -> None:
        """Undo `guard`, and what an installation did to the same end; raise `WorkFailed` if that fails.

        Uv's constraints, the lines in the project's file and the settings of tools go, too.
        """
        try:
            self._set_uv_constraint("")
            remove_guards(self.path)
            unguard_project(self.path)
            unguard_tools(self.path)
        except OSError as error:
            raise WorkFailed(_("{path} cannot be written: {reason}", path=self.path, reason=error)) from error

    def _set_uv_constraint(self, address: str) -> None:
        """Set uv's constraints, or with "" none, in the scripts and, if the assistant made it, in its own kernel.

        The plan's other variables stay. Raises `OSError`, and `WorkFailed` for the kernel.
        """
        marker = self.marker
        variables = {"UV_CONSTRAINT": address} if address else {}
        write_variables(self.path, variables | (marker.plan.env if marker else {}))
        if marker and marker.environment.kernel in self.kernels:
            set_variables(marker.environment.kernel, {"UV_CONSTRAINT": address})

    def project_undo_findings(self, plan: Plan, packages: Mapping[str, str]) -> tuple[Finding, ...]:
        """Return a finding if a project manages it, whose tool would undo the installation of a plan; else ()."""
        return project_undo_findings(self.path, plan, packages)

    def set_kernel_variables(self, name: str, variables: Mapping[str, str]) -> None:
        """Add environment variables to one of its kernels; raise `WorkFailed` if it cannot be read or written."""
        set_variables(name, variables)

    @property
    def last_change(self) -> LastChange | None:
        """Its last change, if it can be undone: its replacement by a new one, else a change in place; None without."""
        before, now = previous_marker(self.path), self.marker
        if before is None or now is None:
            return read_last_change(self.path)
        moves = moves_between(before.environment.packages, now.environment.packages)
        at = datetime.fromtimestamp(Places(self.path).old.stat().st_ctime, tz=UTC).isoformat(timespec="seconds")
        return LastChange(target=str(self.path), at=at, moves=moves, is_replacement=True)

    def undo_last_change(self, tools: Tools) -> None:
        """Restore what it held before its last change, after rolling back an interrupted one.

        This can itself be undone. Raises `BadInput` if there is nothing to undo, and `WorkFailed` if it fails; the
        environment is then left as it is.
        """
        settle_target(self.path, tools)
        if previous_marker(self.path):
            swap_with_previous(self.path)
        else:
            undo_change(self.path, tools.host, tools.uv_of(str(self.python)))

    def delete_previous_state(self) -> int:
        """Delete what is kept for undoing its last change; return the bytes of the replaced environment."""
        delete_undo_record(self.path)
        return delete_previous(self.path)

    def remove(self) -> None:
        """Delete an environment, its kernels, what it replaced and its undo record; raise as `remove_folders` does.

        The caller checks that it may be deleted.
        """
        kernels, python = self.kernels, interpreter(self.path)
        with defer_signals():
            remove_folders(self.path)
            delete_undo_record(self.path)
            for kernel in kernels:
                remove_kernel(kernel, python)


def name_of_folder(path: Path) -> str:
    """Return the last part of a path that is not a usual name such as ".venv" or "envs"; else the whole path."""
    parts = [part for part in reversed(path.parts) if part not in _NAMELESS]
    name = parts[0].rstrip("\\/:") if parts else ""
    return name or str(path)


class Search(NamedTuple):
    """The environments that were found; `cut_short` says that the search reached its limits before its end."""

    environments: tuple[EnvironmentFolder, ...]
    cut_short: bool


def find_environments(host: Host, here: Path, named: Iterable[Path] = ()) -> Search:
    """Return environments: the assistant's, of kernels, below `named` folders, of launchers, below `here` and home.

    They come in this order; the search ends after 5 seconds or 600 folders (`Search.cut_short`). An environment that is
    reached by several paths is listed once, by the first. Nothing in them is run.
    """
    reader = _BoundedReader(host)
    by_path: dict[str, EnvironmentFolder] = {}
    depths = {here: DEPTH_HERE} | ({reader.home: DEPTH_HOME} if reader.home else {})
    for environment in itertools.chain(
        EnvironmentFolder.list_made(),
        (EnvironmentFolder(path, name_of_folder(path), "kernel") for path in kernel_names_by_environment()),
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
    """Lists folders of a host, each once, until a limit of time or number is reached; then all seem empty."""

    def __init__(self, host: Host) -> None:
        self.host = host
        home = host.variable("HOME").text or host.variable("USERPROFILE").text
        self.home = Path(home) if home else None
        self._left = MOST_FOLDERS
        self._end = time.monotonic() + MOST_SECONDS
        self._seen: dict[Path, tuple[list[str], list[str]]] = {}

    @property
    def is_over(self) -> bool:
        """Whether the limit of time or of folders is reached."""
        return self._left <= 0 or time.monotonic() > self._end

    def list_folder(self, folder: Path) -> tuple[list[str], list[str]]:
        """Return the names of the folders in a folder, and of all else; ([], []) if unreadable or past the limits."""
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
    """Yield an `EnvironmentFolder` for each path of a row of the launchers' table, whether or not it exists.

    Paths are listed in the row, in text files, or in a launcher's settings (JSON); a "*" stands for each folder's name.
    """

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
    """Yield `top` and the folders up to `depth` levels below that are environments, level by level.

    Not searched are environments, links, folders that rarely have any, and hidden ones but `.venv`, `.env` and `.pixi`.
    """
    queue = deque([(top, depth)])
    while queue and not reader.is_over:
        folder, levels = queue.popleft()
        if reader.is_environment(folder):
            yield EnvironmentFolder.from_folder(folder)
        elif levels:
            queue += [
                (folder / name, levels - 1)
                for name in reader.list_folder(folder)[0]
                if name not in _PASSED_OVER and (name in _ENTERED or not name.startswith("."))
            ]
