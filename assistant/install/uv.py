"""uv: its command lines, the project that it resolves, how it is run, and how its output and its lock are read.

A plan is resolved to exact packages before anything is downloaded, or it is explained why none fit.
"""

from __future__ import annotations

import dataclasses
import errno
import itertools
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomli_w
from packaging.pylock import Pylock
from packaging.utils import canonicalize_name

from assistant.catalog.companions import carried_by_torch_index, is_required_by_torch
from assistant.catalog.tables import CORE
from assistant.host.download import Patience, fetch_sizes
from assistant.host.extras import find_uv
from assistant.host.files import local_path, write_temporary
from assistant.host.lock import Lock
from assistant.host.pip_settings import PipSettings, uv_arguments
from assistant.host.process import CancelToken, running
from assistant.i18n import Message, Text, _
from assistant.install.journal import temporary_folder
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.finding import Finding
from assistant.model.plan import Plan, check_requirement, index_fault, name_of, plain_requirement, requirement
from assistant.model.record import Record, replace
from assistant.model.report import FindingRaised, LogLine, Part, Progress, Sink, Step
from assistant.privacy import Lines, Policy, redact, without_credentials

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
        return dataclasses.replace(self, scratch=scratch, lock=lock)

    def with_own_cache(self, folder: Path) -> Uv:
        """Return a copy with a new cache inside a folder, as the user's may be damaged."""
        return dataclasses.replace(self, environment={**self.environment, "UV_CACHE_DIR": str(folder / "cache")})

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
        quiet = dataclasses.replace(self, sink=lambda _event: None)
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


IN_A_HURRY = {"UV_HTTP_RETRIES": "1"}  # uv tries three times more, with pauses: 12 s for an index that is down
SIZE_SECONDS = 5.0  # chosen: sizes are nice to have


class Unsolved(WorkFailed):
    """No wheels fit, or an index cannot be reached.

    `reason` is the resolver's own text; `unreachable` says that an index could not be reached, `address` at which
    address, as far as the resolver prints it; `family` are the packages of torch's family in its output.
    `only_source` are the packages that have no wheel, only source, whose build would run their authors' code.
    """

    ONLY_SOURCE_HINT = _(
        "Ask for a version that has a wheel, leave it out, or build its wheel by hand and name the folder that holds "
        "it.",
        option="--pin, --find-links",
    )

    def __init__(
        self,
        message: Message,
        *,
        hint: Message,
        reason: Text = "",
        unreachable: bool = False,
        address: str = "",
        family: frozenset[str] = frozenset(),
        only_source: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message.format(reason=reason), hint=hint)
        self.reason, self.family, self.only_source = str(reason), family, only_source
        self.unreachable, self.address = unreachable, address


def _only_source_error(packages: tuple[str, ...]) -> Unsolved:
    """Return the error for packages that have no wheel for this Python and system."""
    text = _(
        "There is no wheel of {packages} for this Python and system, only source, which would have to be built by hand."
    )
    text = text.format(packages=", ".join(packages))
    return Unsolved(text, hint=Unsolved.ONLY_SOURCE_HINT, only_source=packages)


def resolve(
    plan: Plan,
    uv: Uv,
    keep: Mapping[str, str] | None = None,
    locked: Mapping[str, str] | None = None,
    *,
    dependencies: bool = True,
) -> Resolution:
    """Return the packages of a plan, resolved by `uv` from its sources for its interpreter, as wheels only.

    The versions in `keep` (by name) are preferred, those in `locked` are mandatory. Without `dependencies` what the
    packages require is not resolved. Sizes that the index lacks are asked of the servers, unless offline, for at most 5
    seconds. Raises `BadInput` for an invalid index or requirement, and `Unsolved` if a package has no wheel, an index
    cannot be reached or nothing fits; with `locked`, the latter two are a plain `WorkFailed`.
    """
    check_plan(plan)
    with temporary_folder() as (folder, lock):
        hurried = dataclasses.replace(uv.in_folder(folder, lock), environment={**IN_A_HURRY, **uv.environment})
        try:
            resolution = _resolve(plan, hurried, folder, keep, locked, dependencies=dependencies)
        except Unsolved as refusal:
            if not locked or refusal.only_source:
                raise
            raise WorkFailed(
                _("The locked packages are not available as they were: {differences}.", differences=refusal.message),
                hint=_("Restore the source that they came from, or make a new plan.", option="--anew"),
            ) from refusal
    packages = resolution.packages
    if source_only := [
        f"{package.name}=={package.version}"
        for package in packages
        if not package.url.partition("?")[0].endswith(".whl")
    ]:
        raise _only_source_error(tuple(source_only))
    urls = (package.url for package in packages if package.size is None)
    unsized = [url for url in urls if local_path(url) or not uv.offline]
    indexes = (*uv.index_urls, *filter(None, [plan.index_url]))
    fetched_sizes = fetch_sizes(unsized, SIZE_SECONDS, settings=uv.settings, index_urls=indexes) if unsized else {}
    sized = (replace(package, size=package.size or fetched_sizes.get(package.url)) for package in packages)
    return replace(resolution, packages=tuple(sized))


def _resolve(
    plan: Plan,
    uv: Uv,
    folder: Path,
    keep: Mapping[str, str] | None,
    locked: Mapping[str, str] | None,
    *,
    dependencies: bool,
) -> Resolution:
    """Return the packages to which uv resolves a plan in `folder`; raise `Unsolved` if there is no solution.

    If uv fails it is run once more with an empty cache. If torch requires more of its family than the plan names, these
    are bound to torch's index, too: uv asks an index of a project's own (`explicit`) only for what the project itself
    requires, and torch for ROCm and for XPU needs a Triton that no other index has:
    https://docs.astral.sh/uv/guides/integration/pytorch/
    """
    is_usual_cache = True
    while failure := _run_resolver(uv, uv.resolve_command(plan, folder, keep, locked, dependencies=dependencies)):
        missing = sorted(failure.family.difference(map(name_of, plan.requirements)))
        if failure.unreachable or failure.only_source:
            raise failure
        if plan.index_url and missing:
            plan = replace(plan, requirements=(*plan.requirements, *missing))
        elif is_usual_cache and not uv.offline:
            # A power cut leaves empty files in uv's cache, and uv then calls a good wheel invalid ever after.
            uv, is_usual_cache = uv.with_own_cache(folder), False
        else:
            raise failure
    return read_lock((folder / LOCK).read_text(encoding="utf-8"))


def find_single_package(plan: Plan, uv: Uv) -> Package | None:
    """Return the package that a plan's single requirement resolves to, without its dependencies; None if uv fails.

    Nothing is logged, and a failed request is repeated once only.
    """
    with temporary_folder() as (folder, lock):
        variables = {**IN_A_HURRY, **uv.environment}
        quiet = dataclasses.replace(
            uv.in_folder(folder, lock), also=(), sink=lambda _event: None, environment=variables
        )
        if quiet.call(quiet.resolve_command(plan, folder, dependencies=False), []):
            return None
        return next(iter(read_lock((folder / LOCK).read_text(encoding="utf-8")).packages), None)


def _run_resolver(uv: Uv, argv: list[str]) -> Unsolved | None:
    """Run the command that resolves a plan; return the error that it failed with, None if it succeeded."""
    output: list[str] = []
    if not uv.call(argv, output):
        return None
    if packages := only_source("\n".join(output)):
        return _only_source_error(packages)
    words = " ".join(line.strip() for line in output if line.strip())
    unreached, address = find_network_error(words), _FETCHED.search(words)
    text = _("No set of packages fits this plan: {reason}")
    if unreached:
        text = _("The package index cannot be reached: {reason}")
    return Unsolved(
        text,
        hint=_("Check the network and the index, or choose another plan."),
        reason=unreached or words.rpartition("dependencies cause: ")[2][:600],  # without uv's own heading
        unreachable=bool(unreached),
        address=address[1] if unreached and address else "",
        family=frozenset(filter(carried_by_torch_index, _NAME.findall(words))),
    )


# As in uv's "Because triton-rocm was not found in the package registry and all versions of torch depend on …".
_NAME = re.compile(r"(?<![\w./:-])[a-z][a-z-]*(?![\w./-])")

# uv: "error: Failed to fetch: `https://…`", "Caused by: error sending request for url (…)", "dns error: …"
_UNREACHABLE = ("dns error", "error sending request", "failed to fetch", "connection", "connect error")
# uv, offline: "Because unsloth was not found in the cache and environment depends on unsloth, …"
_NOT_CACHED = "was not found in the cache"

# uv: "Because evil[extra]==1.0 has no usable wheels and …", "hint: Wheels are required for `evil` because building …"
_NO_WHEEL = (
    re.compile(
        r"(?<![\w.<>=!~-])([\w.-]{1,200}(?:\[[\w.,-]{1,200}\])?(?:[<>=!~]=?[\w.+!*,<>=~]{1,200})?)"
        r" has no usable wheels"
    ),
    re.compile(r"Wheels are required for `([\w.-]+)` because building from source is disabled"),
    re.compile(r"Building source distributions for `([\w.-]+)` is disabled"),
)


# error: Failed to fetch: http://127.0.0.1:9/simple/numpy/ | cause: error sending request for url (http://…/numpy/)
#   cause: client error (Connect) | cause: tcp connect error | cause: Connection refused (os error 111)
# error: Failed to fetch: https://h/simple/numpy/ | cause: HTTP status server error (500 Internal …) for url (https://…)
_FETCHED = re.compile(r"Failed to fetch: `?([^\s`]+)")
_FOR_URL = re.compile(r" for url \(.*")


def find_network_error(words: str) -> str:
    """Return from an installer's output which address could not be reached and why; "" for other failures."""
    text = " ".join(words.split())
    has_answer = "No solution found" in text  # whose words are names of packages, such as connection-pool
    if _NOT_CACHED not in text and (has_answer or not any(sign in text.lower() for sign in _UNREACHABLE)):
        return ""
    _start, chained, cause = text.rpartition(" cause: ")
    place = _FETCHED.search(text) if chained else None
    return ": ".join(filter(None, (place and place[1], _FOR_URL.sub("", cause.partition(" hint: ")[0]))))[:400]


def only_source(output: str) -> tuple[str, ...]:
    """Return the requirements that by an installer's output have no wheel, only source; () for other failures."""
    needs = [need for form in _NO_WHEEL for text in form.findall(output) if (need := plain_requirement(text))]
    by_name = {canonicalize_name(need.name): str(need) for need in reversed(needs)}  # the first form has the version
    return tuple(reversed(by_name.values()))


class Package(Record, frozen=True):
    """One package and its file; `size` in bytes, None if unknown; `sha256` "" if unknown; `url` holds no password."""

    name: str
    version: str
    url: str
    size: int | None = None
    sha256: str = ""


class Resolution(Record, frozen=True):
    """A resolved plan: the lock file's text (PEP 751) and the packages in it."""

    lock: str
    packages: tuple[Package, ...]

    @property
    def download(self) -> int:
        """The sum of the known sizes, in bytes."""
        return sum(package.size or 0 for package in self.packages)

    @property
    def versions(self) -> dict[str, str]:
        """The version of each package, by name."""
        return {package.name: package.version for package in self.packages}

    def changes(self, installed: Mapping[str, str]) -> list[Package]:
        """Return the packages that are not installed in the resolved version; `installed` maps names to versions."""
        return [package for package in self.packages if installed.get(package.name) != package.version]


# `uv pip compile --format pylock.toml` writes for each package (PEP 751), beside its name and version:
# wheels = [{ url = "https://…/numpy-2.4.6-cp311-….whl", size = 16000000, hashes = { sha256 = "…" } }]
def read_lock(text: str) -> Resolution:
    """Return the packages of a `pylock.toml`, each with its first wheel, else its source; passwords are removed.

    A package with neither is left out.
    """
    text = without_credentials(text)
    packages = []
    for package in Pylock.from_dict(tomllib.loads(text)).packages:
        if file := next(iter(package.wheels or ()), package.sdist):
            url = file.url or Path(file.path or "").absolute().as_uri()
            sha256 = file.hashes.get("sha256", "")
            packages.append(
                Package(name=package.name, version=str(package.version or ""), url=url, size=file.size, sha256=sha256)
            )
    return Resolution(lock=text, packages=tuple(packages))


def write_lock(packages: Iterable[Package], files: Mapping[str, Path]) -> str:
    """Return the text of a `pylock.toml` of exact files with hashes; `files` are local paths by name, used as URLs."""
    rows = []
    for package in packages:
        url = files[package.name].absolute().as_uri() if package.name in files else package.url
        size = {} if package.size is None else {"size": package.size}
        wheel = {"url": url, **size, "hashes": {"sha256": package.sha256} if package.sha256 else {}}
        rows.append({"name": package.name, "version": package.version, "wheels": [wheel]})
    return tomli_w.dumps({"lock-version": "1.0", "created-by": "assistant", "packages": rows})


def check_plan(plan: Plan) -> None:
    """Raise `BadInput` if an index or a requirement in any field of a plan is not a valid one."""
    for url in filter(None, (plan.index_url, *plan.indexes)):
        check_index_url(url)
    for line in (*plan.requirements, *plan.constraints, *plan.overrides):
        check_requirement(line)


def check_index_url(text: str) -> str:
    """Return the address of a package index, or a folder, unchanged; raise `BadInput` for anything else."""
    reason = index_fault(text)
    if not reason and (folder := local_path(text)) and not folder.is_dir():
        reason = _("it is not a folder")
    if reason:
        raise BadInput(
            _(
                "'{text}' is not the address of a package index: {reason}.",
                text=redact(ascii(text)[1:-1], Policy.USABLE)[:80],
                reason=reason,
            ),
            hint=_("Example: {value}", value="https://download.pytorch.org/whl/cpu", option="--index-url"),
        )
    return text
