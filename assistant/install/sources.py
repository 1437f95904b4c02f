"""Where packages come from: by the settings of pip and uv, by options, and by what the user agreed to.

`Tools` bundles what each step of an installation works with. With it `RemotePlan` resolves a plan for another machine,
and has the commands that install it there.
"""

from __future__ import annotations

import dataclasses
import re
import threading
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

from assistant.catalog import load_catalog
from assistant.catalog.catalog import is_known_index
from assistant.host.base import Host
from assistant.host.pip_settings import (
    PipSettings,
    UvSettings,
    ask_pip,
    pip_environment,
    read_uv_settings,
    uv_environment,
)
from assistant.host.process import Background, CancelToken, running
from assistant.i18n import Message, _
from assistant.install.contents import delete_downloads
from assistant.install.journal import temporary_folder
from assistant.install.site import Site
from assistant.install.uv import (
    IN_A_HURRY,
    KERNEL,
    LOCK,
    Package,
    Resolution,
    Unsolved,
    Uv,
    check_index_url,
    check_plan,
    find_network_error,
    find_single_package,
    only_source,
    resolve,
)
from assistant.model.errors import WorkFailed
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.machine import Machine
from assistant.model.plan import Plan
from assistant.model.record import replace
from assistant.model.report import Sink
from assistant.privacy import Lines, Policy, redact, without_credentials

DEFAULT_INDEX = ""  # PyPI, which every installer asks when nothing is configured
# The variables of uv that decide where packages come from (docs.astral.sh/uv/reference/environment).
UV_NAMES = (
    "UV_DEFAULT_INDEX",
    "UV_EXTRA_INDEX_URL",
    "UV_FIND_LINKS",
    "UV_HTTP_TIMEOUT",
    "UV_INDEX",
    "UV_INDEX_STRATEGY",
    "UV_INDEX_URL",
    "UV_INSECURE_HOST",
    "UV_REQUEST_TIMEOUT",
)


# Also for the fixes that a diagnosis applies: no command that we start builds a package.
ONLY_WHEELS = {"UV_NO_BUILD": "1", "PIP_ONLY_BINARY": ":all:"}


class Sources:
    """The package sources of this user; pip is asked for its settings only once.

    `index_url` replaces the index of every plan, `find_links` adds folders of wheels, `offline` stays off the network.
    `trust` are indexes of a project or a configuration that the user agreed to. `keep` are versions (by name) that are
    preferred, `locked` those that are mandatory.
    """

    check_index_url = staticmethod(check_index_url)
    delete_downloads = staticmethod(delete_downloads)

    def __init__(
        self,
        host: Host,
        *,
        index_url: str = "",
        find_links: Iterable[str] = (),
        offline: bool = False,
        trust: Iterable[str] = (),
    ) -> None:
        self._host = host
        self.index_url = index_url
        self.offline = offline
        self.trust = tuple(trust)
        self.keep: dict[str, str] = {}
        self.locked: dict[str, str] = {}
        self._find_links = tuple(find_links)
        self._asking_lock = threading.Lock()
        self._settings: PipSettings | None = None

    def start_reading_settings(self) -> None:
        """Start to ask pip for its settings on another thread, as it takes a third of a second; return at once."""
        Background(lambda: self.settings)

    @property
    def settings(self) -> PipSettings:
        """The settings of the user's pip, with the folders of wheels from the options added; pip is run only once.

        It is the pip of the base Python, else the one on PATH. They are empty if no pip answers. Raises `BadInput` as
        `ask_pip` does.
        """
        with self._asking_lock:
            if self._settings is None:
                base = str(self._host.facts("platform").get("base_executable", "python3"))
                pips = (partial(self._run, base, "-m", "pip"), partial(self._run, "pip"))
                settings = next(filter(None, map(ask_pip, pips)), PipSettings())
                self._settings = dataclasses.replace(settings, find_links=(*settings.find_links, *self._find_links))
            return self._settings

    def _run(self, *words: str) -> tuple[bool, str]:
        """Run a command; return whether it succeeded, and its output."""
        answer = self._host.run(*words)
        return bool(answer), answer.text

    @cached_property
    def environment(self) -> dict[str, str]:
        """The variables for uv and pip: pip's settings, the options, wheels only, and no network if `offline`."""
        answers = {name: self._host.variable(name) for name in UV_NAMES}
        users_own = {name: answer.text for name, answer in answers.items() if answer}
        variables = uv_environment(dataclasses.replace(self.settings, extra_index_urls=self._extra_indexes), users_own)
        variables |= pip_environment(self._find_links and self.settings.find_links)
        variables |= self._uv_configuration | ONLY_WHEELS
        variables["PYTHONSAFEPATH"] = "1"  # `python -m pip` would take a `pip` that lies in the current folder
        return variables | ({"UV_OFFLINE": "1", "PIP_NO_INDEX": "1"} if self.offline else {})

    def environment_for(self, plan: Plan) -> dict[str, str]:
        """Return `environment` with a plan's find-links and its project's indexes (see `_project_indexes`) added."""
        variables, indexes = self.environment, self._project_indexes(plan)
        if not (indexes or plan.links):
            return variables
        more = variables.get("UV_INDEX") or self._variable("UV_INDEX") or self._variable("UV_EXTRA_INDEX_URL")
        links = variables.get("UV_FIND_LINKS") or self._variable("UV_FIND_LINKS")
        added = {
            "UV_INDEX": " ".join(dict.fromkeys([*more.split(), *indexes])),
            "UV_FIND_LINKS": ",".join(filter(None, [links, *plan.links])),
        }
        return variables | {name: value for name, value in added.items() if value}

    @cached_property
    def _uv_configuration(self) -> dict[str, str]:
        """The variable that makes uv read the user's configuration, else the system's, else none; {} if already set.

        A configuration in the current folder may be a stranger's.
        """
        if self._variable("UV_CONFIG_FILE") or self._variable("UV_NO_CONFIG"):
            return {}
        # Where uv looks: the user's file, then the system's (docs.astral.sh/uv/concepts/configuration-files).
        user = self._variable("APPDATA") or self._variable("XDG_CONFIG_HOME") or f"{self._variable('HOME')}/.config"
        files = (f"{folder}/uv/uv.toml" for folder in (user, self._variable("PROGRAMDATA") or "/etc"))
        file = next((path for path in files if self._host.read(path)), None)
        return {"UV_CONFIG_FILE": file} if file else {"UV_NO_CONFIG": "1"}

    @property
    def uv_indexes(self) -> tuple[str, ...]:
        """The indexes of uv's own configuration, with the passwords that their files need."""
        return self._uv_settings.indexes

    @cached_property
    def _uv_settings(self) -> UvSettings:
        """The settings of uv's own configuration."""
        file = self._host.variable("UV_CONFIG_FILE").text or self._uv_configuration.get("UV_CONFIG_FILE")
        return read_uv_settings(self._host.read(file).text if file else "")

    @property
    def _extra_indexes(self) -> tuple[str, ...]:
        """The extra indexes in pip's settings without PyTorch's, which uv would prefer to PyPI for every package."""
        catalog = load_catalog()
        return tuple(url for url in self.settings.extra_index_urls if not is_known_index(url, catalog))

    def _project_indexes(self, plan: Plan) -> tuple[str, ...]:
        """Return the indexes that a plan has from its project, without PyTorch's own.

        One that is in the user's settings, too, is given as it is there, with its password.
        """
        catalog = load_catalog()
        configured = {
            without_credentials(url).rstrip("/"): url for url in (*self.settings.index_urls, *self._configured_indexes)
        }
        return tuple(configured.get(url.rstrip("/"), url) for url in plan.indexes if not is_known_index(url, catalog))

    @property
    def _configured_indexes(self) -> tuple[str, ...]:
        """The indexes that uv asks for all packages of any plan, by priority; the default, "" for PyPI, is last."""
        own = self._uv_settings
        others = (url for url in own.indexes if url not in own.explicit and url != own.default)
        first = self._variable("UV_DEFAULT_INDEX") or self._variable("UV_INDEX_URL") or self.settings.index_url
        extra = self._variable("UV_INDEX") or self._variable("UV_EXTRA_INDEX_URL")
        indexes = (*(extra.split() if extra else self._extra_indexes), *others, first or own.default or DEFAULT_INDEX)
        # uv allows names before addresses: UV_INDEX="torch=https://download.pytorch.org/whl/cpu"
        return tuple(
            dict.fromkeys(url.rpartition("=")[2] if "=" in url.partition("://")[0] else url for url in indexes)
        )

    def _variable(self, name: str) -> str:
        """Return the value of an environment variable, "" if it is not set."""
        return self._host.variable(name).text

    @property
    def trusted(self) -> tuple[str, ...]:
        """The indexes and find-links in the options and in the settings of pip and uv, without passwords.

        They include those that the user agreed to. Without passwords they can be compared with those of a project.
        """
        indexes = (self.index_url, *self.trust, *self.settings.index_urls, *self._configured_indexes)
        return tuple(without_credentials(address) for address in (*indexes, *self.settings.find_links) if address)

    def indexes(self) -> tuple[str, ...]:
        """Return the indexes that pip asks by its own settings, the default one first; "" is PyPI."""
        configured = self.settings.index_urls
        default = not (self.settings.index_url or self.settings.no_index)
        return (DEFAULT_INDEX, *configured) if default else configured

    def is_source_allowed(self, source: str) -> bool:
        """Return whether a source may be used: any unless offline, then only folders and files on this machine."""
        on_disk = source.startswith("file:") or ("://" not in source and source != DEFAULT_INDEX)
        return on_disk or not self.offline

    def index_findings(self, plan: Plan) -> tuple[Finding, ...]:
        """Return a finding on how uv chooses if it asks several indexes for a plan's packages; () if it asks one.

        The plan's index for torch does not count: uv asks it only for torch's family.
        """
        *extra, default = self._configured_indexes
        urls = filter(self.is_source_allowed, dict.fromkeys((*extra, *self._project_indexes(plan), default)))
        listed = [redact(url, Policy.USABLE) or "PyPI" for url in urls]
        if len(listed) < 2 or self.settings.no_index:  # noqa: PLR2004 - of one index nothing need be said
            return ()
        if (self._variable("UV_INDEX_STRATEGY") or self._uv_settings.strategy) in {"", "first-index"}:
            severity = Severity.INFO
            text = _(
                "Several indexes are asked: {indexes}. uv takes each package from the first of them that has its name, "
                "so that no later one can offer another file under that name."
            )
        else:
            severity = Severity.WARNING
            text = _(
                "Several indexes are asked: {indexes}. The best version of all of them is taken, so that whoever may "
                "publish in one can offer another file under any name."
            )
        finding = Finding(key="several-indexes", severity=severity, text=text.format(indexes=", ".join(listed)))
        fix = Remedy(text=_("Remove the index that you do not trust from pip's and uv's settings."))
        return (replace(finding, remedies=(fix,)) if finding.wrong else finding,)


@dataclass(frozen=True)
class Tools:
    """What a step works with: this machine, its package sources, where events go (`sink`), a request to stop.

    `ask` asks the user a question and waits; it returns whether the user agreed, and False if nobody can be asked.
    """

    host: Host
    sources: Sources
    sink: Sink
    cancel: CancelToken
    ask: Callable[[Message], bool] = lambda _question: False

    def uv(self, plan: Plan, site: Site | None) -> Uv:
        """Return uv set up for an existing environment (`site`), or for a new one of the plan's Python.

        If the assistant's base Python has the plan's version, a new one is made with it, else with one that uv finds.
        """
        facts = self.host.facts("platform")
        base, numbers = str(facts["base_executable"]), str(facts.get("python", "")).split(".")
        version = ".".join(numbers[:2]) + "t" * bool(facts.get("free_threaded"))
        new = base if version == plan.python else plan.python
        return self.uv_of(site.python if site else new, self.sources.environment_for(plan))

    def find_single_package(self, plan: Plan) -> Package | None:
        """Return the package that a plan's single requirement resolves to, without dependencies; None if uv fails."""
        return find_single_package(plan, self.uv(plan, None))

    def uv_of(self, python: str, environment: Mapping[str, str] | None = None) -> Uv:
        """Return uv set up for an interpreter; it gets the variables `environment`, by default those of the sources."""
        sources = self.sources
        return Uv(
            python=python,
            environment=sources.environment if environment is None else environment,
            settings=sources.settings,
            uv_indexes=sources.uv_indexes,
            sink=self.sink,
            cancel=self.cancel,
        )


_X86 = {"x86_64", "amd64"}
# The second numbers of the glibc releases that uv names: https://docs.astral.sh/uv/reference/cli/#uv-pip-compile
_GLIBC = (17, 28, *range(31, 41))
_FOLDER = "torch-env"  # of the environment, in the commands for a machine that is not here
# As pip does; uv itself would take all that torch's index holds from there, such as an old NumPy.
_STRATEGY = ("--index-strategy", "unsafe-best-match")
_NO_SOLUTION = 1  # uv's exit status where no solution exists, and 2 for any other failure (tried with 0.13.9)


class ResolverAnswer(NamedTuple):
    """uv's result for a plan: the packages' versions by name, or its output (`words`), which says why there are none.

    `status` is uv's exit status; `steps` are the lines of its resolver's log that were selected.
    """

    status: int
    versions: dict[str, str]
    words: str
    steps: list[str]

    @property
    def is_refusal(self) -> bool:
        """Whether uv answered that no solution exists."""
        return self.status == _NO_SOLUTION

    @property
    def unreachable(self) -> str:
        """Uv's text on which address could not be reached and why; "" for other failures."""
        return find_network_error(self.words)

    @property
    def only_source(self) -> tuple[str, ...]:
        """The requirements for which there is only source, no wheel."""
        return only_source(self.words)


class RemotePlan(NamedTuple):
    """A plan and the machine that it is for, which need not be this one; its Python need not be installed here."""

    plan: Plan
    machine: Machine

    @property
    def commands(self) -> tuple[tuple[str, ...], ...]:
        """The commands of uv that make an environment on that machine, and install the plan and the kernel in it.

        Folders of wheels, which that machine lacks, are left out.
        """
        plan = self.plan
        python = f"{_FOLDER}/Scripts/python.exe" if self.machine.os == "windows" else f"{_FOLDER}/bin/python"
        index = ("--extra-index-url", plan.index_url, *_STRATEGY) if plan.index_url else ()
        links = [word for place in plan.links if "://" in place for word in ("--find-links", place)]
        return (
            ("uv", "venv", "--seed", "--python", plan.python, _FOLDER),
            ("uv", "pip", "install", "--python", python, *index, *links, *plan.requirements, KERNEL),
        )

    def resolve(self, tools: Tools, also: tuple[str, ...] = (KERNEL,)) -> Resolution:
        """Return the plan's packages, and those that the requirements `also` add, resolved for that machine.

        Raises as the function `resolve` does, but `WorkFailed` if an index cannot be reached, and as `uv` does.
        """
        try:
            return resolve(self.plan, self.uv(tools, also))
        except Unsolved as error:
            if not error.unreachable:
                raise
            index = self.plan.index_url or _("pip's index")
            raise WorkFailed(_("{index} could not be reached.", index=index), hint=error.hint) from error

    def ask(
        self, tools: Tools, is_step: Callable[[str], bool], *, dependencies: bool = True, **variables: str
    ) -> ResolverAnswer:
        """Resolve the plan with uv, from metadata alone; return its versions, or its output if it failed.

        No package is built or downloaded. Without `dependencies` what the packages require is not resolved. After an
        unclear failure uv is run again, with an empty cache. `is_step` selects the lines of the resolver's log, which
        environment `variables` make uv print. Raises `BadInput` for an invalid index or requirement, `Cancelled`, and
        as `uv`.
        """
        check_plan(self.plan)
        with temporary_folder() as (folder, lock):
            uv = self.uv(tools, ()).in_folder(folder, lock)
            argv = uv.resolve_command(self.plan, folder, dependencies=dependencies)

            def run(uv: Uv) -> ResolverAnswer:
                """Run uv and return its result; its output is parsed only after its end, so as not to block it."""
                cleaned, environment = Lines(Policy.USABLE), {**uv.variables, **variables, **IN_A_HURRY}
                with running(argv, cancel=tools.cancel, environment=environment, lock=lock) as child:
                    said = list(child)
                solved = child.returncode == 0
                found = tomllib.loads((folder / LOCK).read_text(encoding="utf-8")) if solved else {}
                return ResolverAnswer(
                    child.returncode,
                    {row["name"]: row["version"] for row in found.get("packages", ()) if "version" in row},
                    "\n".join(cleaned(line) for line in said if not is_step(line)),
                    [line for line in said if is_step(line)],
                )

            answer = run(uv)
            if answer.status not in {0, _NO_SOLUTION} and not answer.unreachable:
                # A power cut leaves empty files in uv's cache, which it then stumbles over.
                answer = run(uv.with_own_cache(folder))
            return answer

    def uv(self, tools: Tools, also: tuple[str, ...]) -> Uv:
        """Return uv set up to resolve the plan, and `also`, for that machine.

        Raises `WorkFailed` if uv has no name for the platform, and for a free-threaded Python.
        """
        plan, machine = self.plan, self.machine
        platform = uv_platform(machine)
        if not platform or plan.python.endswith("t"):
            raise WorkFailed(
                _(
                    "Packages for {system} on {arch} with Python {python} cannot be resolved here.",
                    system=machine.os,
                    arch=machine.arch,
                    python=plan.python,
                ),
                hint=_("Install on one such PC with `assistant install`, and export there."),
            )
        variables = {"UV_PYTHON_DOWNLOADS": "never"}
        version = re.search(r"\d+(\.\d+)?", machine.os_version or "") if machine.os == "macos" else None  # "macOS 14.6"
        if version:
            variables["MACOSX_DEPLOYMENT_TARGET"] = version[0]
        uv = tools.uv(plan, None)
        return dataclasses.replace(
            uv,
            # Any Python will do, as no package is built; uv would fetch one of the wanted version.
            python=str(tools.host.facts("platform").get("base_executable", "python3")),
            environment={**uv.environment, **variables},
            elsewhere=("--python-platform", platform, "--python-version", plan.python),
            also=also,
        )


def uv_platform(machine: Machine) -> str:
    """Return uv's name of a machine's platform, for `--python-platform`; "" for an unknown processor or an old glibc.

    Any system but Windows and macOS counts as Linux. Missing facts are taken to be x86_64 (arm64 on macOS), glibc 2.28.
    """
    arch = (machine.arch or ("arm64" if machine.os == "macos" else "x86_64")).lower()
    name = "x86_64" if arch in _X86 else "aarch64" if arch in {"aarch64", "arm64"} else ""
    if not name:
        return ""
    if machine.os == "windows":
        return f"{name}-pc-windows-msvc"
    if machine.os == "macos":
        return f"{name}-apple-darwin"
    if machine.libc and machine.libc.startswith("musl"):
        return f"{name}-unknown-linux-musl"
    glibc = re.fullmatch(r"2\.(\d+).*", machine.glibc or "2.28")
    fitting = [number for number in _GLIBC if glibc and number <= int(glibc[1])]
    return f"{name}-manylinux_2_{fitting[-1]}" if fitting else ""
