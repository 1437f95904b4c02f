"""Where packages come from: by the settings of pip and uv, by options, and by what the user agreed to.

`Tools` bundles what each step of an installation works with.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial

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
from assistant.host.process import Background, CancelToken
from assistant.i18n import Message, _
from assistant.install.contents import delete_downloads
from assistant.install.site import Site
from assistant.install.uv import Package, Uv, check_index_url, find_single_package
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.plan import Plan
from assistant.model.record import replace
from assistant.model.report import Sink
from assistant.privacy import Policy, redact, without_credentials

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
