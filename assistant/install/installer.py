"""How uv is run: its command lines, the project that it resolves, and what its output says."""

from __future__ import annotations

import errno
import itertools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import tomli_w

from assistant.catalog.companions import carried_by_torch_index, required_by_torch
from assistant.catalog.rows import CORE
from assistant.host.download import Patience
from assistant.host.files import write_temporary, write_whole
from assistant.host.lock import Lock
from assistant.host.pip_settings import PipSettings, uv_arguments
from assistant.host.process import CancelToken, stream
from assistant.host.uv import find_uv
from assistant.i18n import Message, _
from assistant.install.inspect_env import interpreter
from assistant.install.work_folder import layout
from assistant.model.errors import WorkFailed
from assistant.model.event import FindingRaised, LogLine, Part, Progress, Sink, Step
from assistant.model.finding import Finding
from assistant.model.plan import Plan
from assistant.model.requirement import name_of, requirement
from assistant.privacy import Lines, Policy

REQUIREMENTS = "requirements.txt"
# As in " + onnx==1.23.2" and " + torch==2.13.0+cpu (from file:///wheels/torch.whl)".
INSTALLED = re.compile(r"^ \+ (?P<name>\S+?)==\S+?(?: \(.*\))?$")
KERNEL = "ipykernel"  # without it an environment cannot be a kernel, and JupyterLab could not offer it
LOCK = "pylock.toml"  # uv accepts only `pylock.toml` and `pylock.NAME.toml`, as PEP 751 says
VERSIONS = "versions.txt"  # uv tells by the ending that these are requirements


@dataclass(frozen=True, kw_only=True)
class Installer:
    """The interpreter that uv works for, and where its output goes.

    `environment` are the variables that it gets; `settings` are those of the user's pip; `uv_indexes` are those of uv's
    own configuration. The programs that run hold `lock`, so that the next run can end them where this one is killed.
    `also` is resolved with any plan. `elsewhere` are the words by which uv resolves for another machine than this one.
    """

    python: str
    environment: Mapping[str, str]
    sink: Sink
    cancel: CancelToken
    settings: PipSettings = field(default_factory=PipSettings)
    uv_indexes: tuple[str, ...] = field(default=(), repr=False)
    patience: Patience = field(default_factory=Patience)
    lock: Lock | None = None
    also: tuple[str, ...] = (KERNEL,)
    elsewhere: tuple[str, ...] = ()

    @property
    def offline(self) -> bool:
        """Whether nothing may be downloaded."""
        return self.environment.get("UV_OFFLINE") == "1"

    @property
    def uv(self) -> Uv:
        """The command lines."""
        return Uv(uv_arguments(self.settings), self.also, self.elsewhere)

    def with_own_cache(self, folder: Path) -> Installer:
        """Return an installer with a new cache in a folder, as its own may be damaged."""
        return replace(self, environment={**self.environment, **own_cache(folder)})

    @property
    def index_urls(self) -> tuple[str, ...]:
        """The configured indexes, whose user names and passwords their files need too."""
        variables = (self.environment.get(name, "") for name in ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL"))
        own = (self.settings.index_url, *self.settings.extra_index_urls, *self.uv_indexes)
        return tuple(url for url in dict.fromkeys([*" ".join(variables).split(), *own]) if "://" in url)

    def commands(self, target: Path, python: Path | None) -> tuple[tuple[str, ...], ...]:
        """List the commands of an installation in a target; `python` is that of an environment that stands there."""
        places = layout(target, stands=python is not None)
        file, staged = places.work / REQUIREMENTS, places.staged if python else None
        steps = [] if python else [self.uv.venv(self.python, places.build)]
        install = self.uv.install(python or interpreter(places.build), file, staged)
        rename = "move" if os.name == "nt" else "mv"  # cmd knows `move`, PowerShell both; one rename on any system
        move = [[rename, str(places.top), str(places.place)]] if places.top else []
        return tuple(tuple(step) for step in (*steps, install, *move))

    def progress(self, text: Message, *, part: Part = Part.RESOLVE, **figures: Any) -> None:  # noqa: ANN401 - of `Progress`
        """Report how far the work is."""
        self.sink(Progress(step=Step.INSTALL, text=text, part=part, **figures))

    def registers(self) -> None:
        """Report the last part: all is on the disk, and the environment's kernel becomes known."""
        self.progress(_("Adding the kernel to Jupyter"), part=Part.REGISTER)

    def log(self, text: Message) -> None:
        """Add a sentence of our own to the step's log; a program's output is cleaned first (see `call`)."""
        self.sink(LogLine(step=Step.INSTALL, text=text))

    def report(self, finding: Finding) -> None:
        """Report what the user should know."""
        self.sink(FindingRaised(step=Step.INSTALL, finding=finding))

    def make_venv(self, target: Path, lock: Lock, work: Path) -> None:
        """Make an empty environment; `work` is for the installer's own temporary files."""
        self.progress(_("Making the environment"), part=Part.UNPACK)
        self.run(self.uv.venv(self.python, target), lock, work)

    def install(
        self, lines: str, python: Path, lock: Lock, work: Path, *, total: int, staged: Path | None = None
    ) -> None:
        """Install exactly what the requirement lines name into an interpreter's environment, or into `staged`."""
        file = work / REQUIREMENTS
        write_whole(file, lines)
        self.progress(_("Unpacking"), total=total, unit="packages", part=Part.UNPACK)
        done = itertools.count(1)

        def count(line: str) -> None:
            if found := INSTALLED.match(line):
                text = _("Installed {package}", package=found["name"])
                self.progress(text, done=next(done), total=total, unit="packages", part=Part.UNPACK)

        self.run(self.uv.install(python, file, staged), lock, work, count)

    def run(self, argv: Sequence[str], lock: Lock, work: Path, on_line: Callable[[str], None] | None = None) -> None:
        """Run a command, each line logged; raise `WorkFailed` with its last words when it fails."""
        output: list[str] = []
        if self.call(argv, output, work, lock, on_line):
            if obstacle := disk_obstacle("\n".join(output)):
                raise WorkFailed(
                    _("The installation stopped: {reason}", reason=f"{work.parent}: {obstacle}."),
                    hint=_(
                        "All changes were rolled back. Free some space there, or choose another disk.",
                        option="--target",
                    ),
                )
            raise WorkFailed(
                _("The installation stopped: {reason}", reason=last_words(output)),
                hint=_("All changes were rolled back. Fix the cause and start again; nothing is downloaded twice."),
            )

    def call(
        self,
        argv: Sequence[str],
        output: list[str],
        scratch: Path,
        lock: Lock | None = None,
        on_line: Callable[[str], None] | None = None,
    ) -> int:
        """Run a command and return its exit status; its lines are logged and added to `output`, without secrets.

        `scratch` is for its temporary files, so that nothing of a killed one stays anywhere else.
        """
        cleaned = Lines(Policy.USABLE)

        def each(line: str) -> None:
            line = cleaned(line)
            output.append(line)
            self.sink(LogLine(step=Step.INSTALL, text=line))
            if on_line:
                on_line(line)

        variables = {**self.environment, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(scratch))}
        variables["PYTHONDONTWRITEBYTECODE"] = "1"  # uv asks the Python, and a failure must leave no trace
        return stream(argv, each, cancel=self.cancel, environment=variables, lock=lock or self.lock)


def last_words(output: Sequence[str]) -> str:
    """Return the last lines of a program's output in one line, short enough for a sentence."""
    return " ".join(line.strip() for line in output[-6:] if line.strip())[:600]


def disk_obstacle(text: str) -> str:
    """Return the system's words for a disk that is full or takes no writes, where a text holds them; else ""."""
    known = (os.strerror(number) for number in (errno.ENOSPC, errno.EDQUOT, errno.EROFS))
    return next((words for words in known if words.lower() in text.lower()), "")


@dataclass(frozen=True)
class Uv:
    """uv; `arguments` are what it needs beside its variables, `also` what every environment gets beside its plan.

    `elsewhere` names another machine to resolve for.
    """

    arguments: tuple[str, ...] = ()
    also: tuple[str, ...] = (KERNEL,)
    elsewhere: tuple[str, ...] = ()

    def venv(self, python: str, target: Path) -> list[str]:
        """Return the command that makes an empty environment."""
        return [find_uv(), "venv", "--no-progress", "--no-project", "--allow-existing", "--python", python, str(target)]

    def install(self, python: Path, file: Path, staged: Path | None = None) -> list[str]:
        """Return the command that installs exactly what a requirements file names, hashes checked.

        It installs into the folder `staged` where one is given.
        """
        where = ["--prefix", str(staged)] if staged else []
        words = ["--python", str(python), *where, "--no-deps", "--requirements", str(file)]
        return [*self._pip("install"), *words, *self.arguments]

    def resolve(
        self, python: str, plan: Plan, folder: Path, keep: Mapping[str, str], constraints: Path | None
    ) -> list[str]:
        """Return the command that resolves a plan to wheels, into a `pylock.toml` (PEP 751) in a folder.

        The versions in `keep` are kept where they fit; those in the file `constraints` must hold.
        """
        lock = folder / LOCK
        if keep:
            # uv keeps the versions of a lock file that is there already, where they fit.
            rows = [{"name": name, "version": version} for name, version in keep.items()]
            write_temporary(lock, tomli_w.dumps({"lock-version": "1.0", "created-by": "assistant", "packages": rows}))
        words = ["--format", "pylock.toml", "-o", str(lock)]
        words += ["--constraints", str(constraints)] if constraints else []
        return self._compile(python, plan, folder, words)

    def try_out(self, python: str, plan: Plan, folder: Path) -> list[str]:
        """Return the command that resolves a plan into a file `VERSIONS`, which is read in no time.

        It has a line "numpy==2.4.6" for each package that an index has.
        """
        return self._compile(python, plan, folder, ["--no-annotate", "-o", str(folder / VERSIONS)])

    def _compile(self, python: str, plan: Plan, folder: Path, words: list[str]) -> list[str]:
        project = folder / "pyproject.toml"
        write_temporary(project, project_file(plan, self.also))
        words = ["--no-header", "--quiet", *words, *_bounds(plan, folder), *self.elsewhere]
        return [*self._pip("compile"), str(project), "--python", python, *words, *self.arguments]

    def _pip(self, verb: str) -> list[str]:
        return [find_uv(), "pip", verb, "--no-progress", "--no-build"]  # no code of a package runs


def own_cache(folder: Path) -> dict[str, str]:
    """Return the variable that makes uv work without its cache, which may be damaged."""
    return {"UV_CACHE_DIR": str(folder / "cache")}


def project_file(plan: Plan, also: tuple[str, ...] = (KERNEL,)) -> str:
    """Write the project that uv resolves: the plan's requirements, with torch's family tied to its own index."""
    minor = ".".join(re.findall(r"\d+", plan.python)[:2])  # "3.13t" is 3.13 here
    project = {
        "name": "environment",
        "version": "0",
        "requires-python": f"=={minor}.*",
        "dependencies": [*plan.requirements, *also],
    }
    # A workspace of its own: a project in a folder above could send its members to other indexes.
    tables: dict[str, object] = {"workspace": {}}
    if plan.index_url:
        tables["index"] = [{"name": "torch", "url": plan.index_url, "explicit": True}]
        tables["sources"] = {name: {"index": "torch"} for name in tied(plan)}
    return tomli_w.dumps({"project": project, "tool": {"uv": tables}})


def tied(plan: Plan) -> list[str]:
    """Return the canonical names of what a plan takes from torch's own index: its family, and what else it carries.

    A file that is named by its address comes from there, and the plan's own index must be torch's.
    """
    names = dict.fromkeys(name_of(line) for line in plan.requirements if not requirement(line).url)
    listed = (name for name in names if carried_by_torch_index(name, plan.variant))
    return [name for name in listed if name not in plan.apart and plan.index_url]


def _bounds(plan: Plan, folder: Path) -> list[str]:
    """Write what a project says beside its requirements, and return uv's words for it.

    What stands in for torch's own needs could not be tied to torch's index, and the plan names torch's version itself.
    """
    found = []
    overrides = [line for line in plan.overrides if (name := name_of(line)) not in CORE and not required_by_torch(name)]
    for option, lines in (("--constraints", plan.constraints), ("--overrides", overrides)):
        if lines:
            file = folder / f"{option.strip('-')}.txt"
            write_temporary(file, "".join(f"{line}\n" for line in lines))
            found += [option, str(file)]
    return found
