"""uv: its command lines, the project that it resolves, how it is run, and how its output is read."""

from __future__ import annotations

import errno
import itertools
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import tomli_w

from assistant.catalog.companions import carried_by_torch_index, is_required_by_torch
from assistant.catalog.rows import CORE
from assistant.host.download import Patience
from assistant.host.extras import find_uv
from assistant.host.files import write_temporary
from assistant.host.lock import Lock
from assistant.host.pip_settings import PipSettings, uv_arguments
from assistant.host.process import CancelToken, running
from assistant.i18n import Message, Text, _
from assistant.model.errors import WorkFailed
from assistant.model.event import FindingRaised, LogLine, Part, Progress, Sink, Step
from assistant.model.finding import Finding
from assistant.model.plan import Plan
from assistant.model.requirement import name_of, requirement
from assistant.privacy import Lines, Policy

# As in " + onnx==1.23.2" and " + torch==2.13.0+cpu (from file:///wheels/torch.whl)".
INSTALLED = re.compile(r"^ [+~] (?P<name>\S+?)==\S+?(?: \(.*\))?$")
# error: Failed to download `alpha==1.0`
#   cause: Failed to fetch: http://127.0.0.1:9/simple/alpha/alpha-1.0-py3-none-any.whl
#   cause: HTTP status server error (503 Service Unavailable) for url (http://127.0.0.1:9/simple/alpha/alpha-1.0-….whl)
_NOT_FETCHED = re.compile(
    r"Failed to download `(?P<package>[^`]+)`(?s:.*)cause: (?P<reason>.+?)(?: for url \(.*)?$", re.MULTILINE
)
KERNEL = "ipykernel"  # without it an environment cannot be a kernel, and JupyterLab could not offer it
LOCK = "pylock.toml"  # uv accepts only `pylock.toml` and `pylock.NAME.toml`, as PEP 751 says


@dataclass(frozen=True, kw_only=True)
class Uv:
    """uv for one interpreter, with the user's settings; what it prints goes to `sink`, without secrets.

    `environment` are the variables that it gets; `settings` are those of the user's pip; `uv_indexes` are those of uv's
    own configuration. The programs that run hold `lock`, so that the next run can end them if this one is killed.
    `scratch` is the folder for their temporary files. `also` are requirements that are resolved with any plan.
    `elsewhere` are the arguments with which uv resolves for another machine than this one.
    """

    python: str
    environment: Mapping[str, str]
    sink: Sink
    cancel: CancelToken
    settings: PipSettings = field(default_factory=PipSettings)
    uv_indexes: tuple[str, ...] = field(default=(), repr=False)
    patience: Patience = field(default_factory=Patience)
    lock: Lock | None = None
    scratch: Path | None = None
    also: tuple[str, ...] = (KERNEL,)
    elsewhere: tuple[str, ...] = ()

    @property
    def offline(self) -> bool:
        """Whether nothing may be downloaded."""
        return self.environment.get("UV_OFFLINE") == "1"

    def in_folder(self, scratch: Path, lock: Lock) -> Uv:
        """Return a copy that uses a folder for temporary files, and whose programs hold a lock."""
        return replace(self, scratch=scratch, lock=lock)

    def with_own_cache(self, folder: Path) -> Uv:
        """Return a copy with a new cache inside a folder, as the user's may be damaged."""
        return replace(self, environment={**self.environment, "UV_CACHE_DIR": str(folder / "cache")})

    @property
    def index_urls(self) -> tuple[str, ...]:
        """The configured indexes on servers, with user names and passwords, which their files need, too."""
        variables = (self.environment.get(name, "") for name in ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL"))
        configured = (self.settings.index_url, *self.settings.extra_index_urls, *self.uv_indexes)
        return tuple(url for url in dict.fromkeys([*" ".join(variables).split(), *configured]) if "://" in url)

    def progress(self, text: Message, *, part: Part = Part.RESOLVE, **figures: Any) -> None:  # noqa: ANN401 - of `Progress`
        """Send a progress event; `figures` are further fields of `Progress`."""
        self.sink(Progress(step=Step.INSTALL, text=text, part=part, **figures))

    def log(self, text: Message) -> None:
        """Send a sentence to the step's log as it is; the output of programs is logged by `call`, without secrets."""
        self.sink(LogLine(step=Step.INSTALL, text=text))

    def report(self, finding: Finding) -> None:
        """Send a finding as an event."""
        self.sink(FindingRaised(step=Step.INSTALL, finding=finding))

    def create_environment(self, folder: Path) -> None:
        """Make an empty, relocatable environment in a folder; raise `WorkFailed` if that fails."""
        self.progress(_("Making the environment"), part=Part.UNPACK)
        self._run_or_raise(self.venv_command(folder))

    def sync_from_cache(self, python: Path, lock: Path) -> bool:
        """Install exactly what a lock file lists, without the network; return whether that succeeded.

        It succeeds if all is in uv's cache or on this disk. Nothing is logged, as having to download is no failure.
        """
        quiet = replace(self, sink=lambda _event: None)
        return quiet.call([*self.install_command(python, lock, exactly=True), "--offline"], []) == 0

    def install(
        self, python: Path, lock: Path, total: int, *, exactly: bool = False, reinstall: Iterable[str] = ()
    ) -> None:
        """Install what a lock file lists, checking hashes; packages in `reinstall` even if they are there already.

        With `exactly` all else is removed. Sends progress for each of the `total` packages; raises `WorkFailed` if it
        fails.
        """
        self.progress(_("Unpacking"), total=total, unit="packages", part=Part.UNPACK)
        done = itertools.count(1)

        def report_installed(line: str) -> None:
            """Send progress if a line reports an installed package."""
            if match := INSTALLED.match(line):
                text = _("Installed {package}", package=match["name"])
                self.progress(text, done=next(done), total=total, unit="packages", part=Part.UNPACK)

        options = [word for name in reinstall for word in ("--reinstall-package", name)]
        self._run_or_raise([*self.install_command(python, lock, exactly=exactly), *options], report_installed)

    def remove(self, python: Path, names: Iterable[str]) -> None:
        """Remove packages from an environment; raise `WorkFailed` if that fails, and do nothing for no names."""
        if words := list(names):
            self._run_or_raise([find_uv(), "pip", "uninstall", "--no-progress", "--python", str(python), *words])

    def _run_or_raise(self, argv: Sequence[str], on_line: Callable[[str], None] | None = None) -> None:
        """Run a command and log its output; if it fails, raise `WorkFailed` with the cause that the output shows."""
        output: list[str] = []
        if not self.call(argv, output, on_line):
            return
        text = "\n".join(output)
        not_fetched = _NOT_FETCHED.search(text)
        if obstacle := find_disk_error(text):
            message = _("The installation stopped: {reason}", reason=f"{obstacle}.")
            hint = _("All changes were rolled back. Free some space there, or choose another disk.", option="--target")
        elif not_fetched and self.offline:
            raise not_on_disk_error(not_fetched["package"])
        elif not_fetched:
            reason: Text = not_fetched["reason"].strip(". ")
            if not_fetched["reason"].startswith("Hash mismatch"):
                reason = _("the file that arrived is not the one that the index describes (its hash differs)")
            message = _("{file} cannot be fetched: {reason}.", file=not_fetched["package"], reason=reason)
            hint = _("All changes were rolled back. Check the network or the index, and start again.")
        else:
            last = " ".join(line.strip() for line in output[-6:] if line.strip())[:600]
            message = _("The installation stopped: {reason}", reason=last)
            hint = _("All changes were rolled back. Fix the cause and start again; nothing is downloaded twice.")
        raise WorkFailed(message, hint=hint)

    def call(self, argv: Sequence[str], output: list[str], on_line: Callable[[str], None] | None = None) -> int:
        """Run a command and return its exit status; raise `Cancelled`, or `WorkFailed` if it cannot be started.

        Its lines are logged, added to `output` and given to `on_line`, all without secrets.
        """
        cleaned = Lines(Policy.USABLE)
        with running(argv, cancel=self.cancel, environment=self.variables, lock=self.lock) as child:
            for line in map(cleaned, child):
                output.append(line)
                self.sink(LogLine(step=Step.INSTALL, text=line))
                if on_line:
                    on_line(line)
        return child.returncode

    @property
    def variables(self) -> dict[str, str]:
        """What is set for the programs it starts, beside the inherited environment: the user's settings and its own."""
        # All temporary files go there, so that nothing of a killed program stays anywhere else.
        temporary = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(self.scratch)) if self.scratch else {}
        return {
            **self.environment,
            **temporary,
            "PYTHONDONTWRITEBYTECODE": "1",  # uv asks the Python, and a failure must leave no trace
            "UV_PREVIEW_FEATURES": "pylock",  # else it warns that lock files of PEP 751 are new to it
        }

    def venv_command(self, folder: Path) -> list[str]:
        """Return the command that makes an empty, relocatable environment in a folder."""
        words = ["--no-project", "--relocatable", "--allow-existing", "--python", self.python, str(folder)]
        return [find_uv(), "venv", "--no-progress", *words]

    def install_command(self, python: Path, lock: Path, *, exactly: bool = False) -> list[str]:
        """Return the command that installs what a lock file lists for a Python; `exactly` removes all else."""
        verb, option = ("sync", ()) if exactly else ("install", ("--requirements",))
        return [*self._pip(verb), "--python", str(python), *option, str(lock), *uv_arguments(self.settings)]

    def resolve_command(
        self,
        plan: Plan,
        folder: Path,
        keep: Mapping[str, str] | None = None,
        locked: Mapping[str, str] | None = None,
        *,
        dependencies: bool = True,
    ) -> list[str]:
        """Write the project of a plan into a folder; return the command that resolves it into a `pylock.toml` there.

        The versions in `keep` (by name) are preferred, those in `locked` mandatory. Without `dependencies`, what the
        packages require is not resolved.
        """
        lock, project = folder / LOCK, folder / "pyproject.toml"
        if keep:
            # uv keeps the versions of a lock file that is there already, where they fit.
            rows = [{"name": name, "version": version} for name, version in keep.items()]
            write_temporary(lock, tomli_w.dumps({"lock-version": "1.0", "created-by": "assistant", "packages": rows}))
        write_temporary(project, project_file(plan, self.also))
        words = ["--no-header", "--quiet", "--format", "pylock.toml", "-o", str(lock), *self.elsewhere]
        # What stands in for torch's own needs could not be tied to torch's index, and the plan names torch's version.
        overrides = [
            line for line in plan.overrides if (name := name_of(line)) not in CORE and not is_required_by_torch(name)
        ]
        pins = [f"{name}=={version}" for name, version in (locked or {}).items()]
        files = {"locked": pins, "constraints": plan.constraints, "overrides": overrides}
        for kind, lines in files.items():
            if lines:
                file = folder / f"{kind}.txt"
                write_temporary(file, "".join(f"{line}\n" for line in lines))
                words += ["--overrides" if kind == "overrides" else "--constraints", str(file)]
        words += [] if dependencies else ["--no-deps"]
        return [*self._pip("compile"), str(project), "--python", self.python, *words, *uv_arguments(self.settings)]

    @staticmethod
    def _pip(verb: str) -> list[str]:
        """Return the first words of a command `uv pip` that builds nothing, so that no code of a package runs."""
        return [find_uv(), "pip", verb, "--no-progress", "--no-build"]


def not_on_disk_error(package: str) -> WorkFailed:
    """Return the error for a file that is not on this disk and must not be downloaded."""
    return WorkFailed(
        _("{file} is not on this machine.", file=package),
        hint=_("Put it into the folder of wheels, or allow downloads."),
    )


def find_disk_error(text: str) -> str:
    """Return the system's message of a full, over-quota or read-only disk if a text contains it; else ""."""
    sentences = (os.strerror(number) for number in (errno.ENOSPC, errno.EDQUOT, errno.EROFS))
    return next((words for words in sentences if words.lower() in text.lower()), "")


def project_file(plan: Plan, also: tuple[str, ...] = (KERNEL,)) -> str:
    """Return a `pyproject.toml` for uv: a plan's requirements and `also`, torch's family bound to its index."""
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
        # A file that is named by its address comes from there, and the plan's own index must be torch's.
        names = dict.fromkeys(name_of(line) for line in plan.requirements if not requirement(line).url)
        tied = (name for name in names if carried_by_torch_index(name, plan.variant) and name not in plan.apart)
        tables["sources"] = {name: {"index": "torch"} for name in tied}
    return tomli_w.dumps({"project": project, "tool": {"uv": tables}})
