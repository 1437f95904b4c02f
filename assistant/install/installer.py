"""How the program that puts packages in place is run: uv, or pip where uv is refused; both tell the same."""

from __future__ import annotations

import errno
import itertools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol

from assistant.host.download import Patience
from assistant.host.files import write_whole
from assistant.host.lock import Lock
from assistant.host.pip_settings import PipSettings, uv_arguments
from assistant.host.process import CancelToken, stream
from assistant.i18n import _
from assistant.install.packages import Resolution
from assistant.install.pip import Pip
from assistant.install.site import interpreter
from assistant.install.uv import Uv
from assistant.install.work import Rooms
from assistant.model.errors import WorkFailed
from assistant.model.event import LogLine, Progress, Sink, Step
from assistant.model.plan import Plan
from assistant.privacy import Lines, Policy

REQUIREMENTS = "requirements.txt"


class Backend(Protocol):
    """A program that puts packages in place: its command lines, and how it tells what it worked out."""

    def venv(self, python: str, target: Path) -> list[str]:
        """Make an empty environment."""

    def install(self, python: Path, file: Path, staged: Path | None = None) -> list[str]:
        """Install exactly what a requirements file names, hashes checked; into a folder `staged` where one is given."""

    def build(self, python: str, archive: Path, folder: Path) -> list[str]:
        """Build the wheel of one source archive into a folder; what its build needs comes as wheels only."""

    def resolve(
        self, python: str, plan: Plan, folder: Path, keep: Mapping[str, str], constraints: Path | None
    ) -> list[str]:
        """Work out a plan's packages, told in a folder; `constraints` is a file of versions that must hold."""

    def resolution(self, folder: Path) -> Resolution:
        """Read what `resolve` told."""

    def own_cache(self, folder: Path) -> dict[str, str]:
        """Give the variables that make it work without its cache, which may be damaged; {} where it needs none."""


@dataclass(frozen=True, kw_only=True)
class Installer:
    """Which installer runs, for which base interpreter, told what, heard by whom, stopped by what.

    `environment` are the variables that it is told; `settings` are those of the user's pip; `pip` is the Python whose
    pip works where `python` has none of its own; `uv_indexes` are those of uv's own configuration. The programs
    that run hold `lock`, so that whoever finds us killed can end them.
    """

    python: str
    environment: Mapping[str, str]
    sink: Sink
    cancel: CancelToken
    settings: PipSettings = field(default_factory=PipSettings)
    uv_indexes: tuple[str, ...] = field(default=(), repr=False)
    program: Literal["uv", "pip"] = "uv"
    pip: str = ""
    patience: Patience = field(default_factory=Patience)
    lock: Lock | None = None

    @property
    def offline(self) -> bool:
        """Tell whether nothing may be fetched."""
        return self.environment.get("UV_OFFLINE") == "1"

    @property
    def backend(self) -> Backend:
        """Give the program that is run."""
        return Uv(uv_arguments(self.settings)) if self.program == "uv" else Pip(self.pip)

    def with_own_cache(self, folder: Path) -> Installer | None:
        """Use a cache in a folder in place of one that may be damaged; None for a program that trusts none."""
        variables = self.backend.own_cache(folder)
        return replace(self, environment={**self.environment, **variables}) if variables else None

    @property
    def index_urls(self) -> tuple[str, ...]:
        """Give the indexes that were told, whose user names and passwords their files need too."""
        told = (self.environment.get(name, "") for name in ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL"))
        own = (self.settings.index_url, *self.settings.extra_index_urls, *self.uv_indexes)
        return tuple(url for url in dict.fromkeys([*" ".join(told).split(), *own]) if "://" in url)

    def commands(self, places: Rooms, python: Path | None) -> tuple[tuple[str, ...], ...]:
        """List the commands that an installation runs; `python` is that of an environment that stands already."""
        file, staged = places.work / REQUIREMENTS, places.staged if python else None
        steps = [] if python else [self.backend.venv(self.python, places.build)]
        install = self.backend.install(python or interpreter(places.build), file, staged)
        move = (
            [["mv", str(places.top), str(places.place)]] if places.top else []
        )  # a rename, whatever the system calls it
        return tuple(tuple(step) for step in (*steps, install, *move))

    def make_venv(self, target: Path, lock: Lock, work: Path) -> None:
        """Make an empty environment; `work` is for what the installer writes for itself."""
        self.run(self.backend.venv(self.python, target), lock, work)

    def install(
        self, lines: str, python: Path, lock: Lock, work: Path, *, total: int, staged: Path | None = None
    ) -> None:
        """Put exactly what the requirement lines name into an interpreter's environment, or into a folder beside it."""
        file = work / REQUIREMENTS
        write_whole(file, lines)
        self.sink(Progress(step=Step.INSTALL, text=_("Installing"), total=total, unit="packages"))
        done = itertools.count(1)

        def count(line: str) -> None:
            for name in placed(line):
                text = _("Installed {package}", package=name)
                self.sink(Progress(step=Step.INSTALL, text=text, done=next(done), total=total, unit="packages"))

        self.run(self.backend.install(python, file, staged), lock, work, count)

    def run(self, argv: Sequence[str], lock: Lock, work: Path, on_line: Callable[[str], None] | None = None) -> None:
        """Run a command, each line logged; raise `WorkFailed` with its last words when it fails."""
        said: list[str] = []
        if self.call(argv, said, work, lock, on_line):
            if obstacle := disk_obstacle("\n".join(said)):
                raise WorkFailed(
                    _("The installation stopped: {reason}", reason=f"{work.parent}: {obstacle}."),
                    hint=_("Everything was taken back. Free some space there, or choose another disk with --target."),
                )
            words = " ".join(line.strip() for line in said[-6:] if line.strip())[:600]
            raise WorkFailed(
                _("The installation stopped: {reason}", reason=words),
                hint=_("Everything was taken back. Mend the cause and start again; nothing is downloaded twice."),
            )

    def call(
        self,
        argv: Sequence[str],
        said: list[str],
        scratch: Path,
        lock: Lock | None = None,
        on_line: Callable[[str], None] | None = None,
    ) -> int:
        """Run a command, its lines logged and gathered in `said` without secrets; answer its exit status.

        `scratch` is for what it writes for itself, so that nothing of a killed one stays anywhere else.
        """
        cleaned = Lines(Policy.USABLE)

        def each(line: str) -> None:
            line = cleaned(line)
            said.append(line)
            self.sink(LogLine(step=Step.INSTALL, text=line))
            if on_line:
                on_line(line)

        told = {**self.environment, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(scratch))}
        told["PYTHONDONTWRITEBYTECODE"] = "1"  # pip would compile itself, and a failure must leave no trace
        return stream(argv, each, cancel=self.cancel, environment=told, lock=lock or self.lock)


def disk_obstacle(text: str) -> str:
    """Say in the system's words what no installer can do anything about: a disk that is full or takes no writes."""
    known = (os.strerror(number) for number in (errno.ENOSPC, errno.EDQUOT, errno.EROFS))
    return next((words for words in known if words.lower() in text.lower()), "")


# uv, one line each: " + onnx==1.23.2"; pip, all at once: "Successfully installed numpy-2.4.6 six-1.17.0"
_ONE = re.compile(r"^ \+ (?P<name>\S+?)==(?P<version>\S+?)(?: \(.*\))?$")
_ALL = re.compile(r"^Successfully installed (?P<names>.+)$")


def placed(line: str) -> tuple[str, ...]:
    """Name the packages that a line of uv or pip says are in place now."""
    if found := _ONE.match(line):
        return (found["name"],)
    if found := _ALL.match(line):
        return tuple(name.rpartition("-")[0] for name in found["names"].split())
    return ()
