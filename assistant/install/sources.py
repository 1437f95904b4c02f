"""Where packages come from, by the settings of pip and uv and by options; what the user agreed to, and should know.

`Tools` are what each step of an installation works with.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from assistant.catalog import load_catalog
from assistant.catalog.catalog import known_index
from assistant.host.base import Host
from assistant.host.parallel import Ahead
from assistant.host.pip_settings import (
    PipSettings,
    ask_pip,
    pip_environment,
    uv_default,
    uv_environment,
    uv_indexes,
    uv_strategy,
)
from assistant.host.process import CancelToken
from assistant.i18n import Message, _
from assistant.install.inspect_env import Site
from assistant.install.uv import Uv
from assistant.model.event import Sink
from assistant.model.finding import Finding, Remedy, Severity
from assistant.model.plan import Plan
from assistant.model.record import Record
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


class Consent(Record, frozen=True):
    """What the user agreed to beforehand.

    `indexes` are trusted although only a project or a configuration names them.
    """

    indexes: tuple[str, ...] = ()


class Sources:
    """The package sources of this user; pip is asked for its settings only once.

    `index_url` replaces the index of every plan, `find_links` adds folders of wheels, `offline` stays off the network.
    `keep` and `locked` are the versions to be kept where they fit, and those that must hold.
    """

    def __init__(
        self,
        host: Host,
        *,
        index_url: str = "",
        find_links: Iterable[str] = (),
        offline: bool = False,
        consent: Consent | None = None,
    ) -> None:
        self._host = host
        self.index_url = index_url
        self.offline = offline
        self.consent = consent or Consent()
        self.keep: dict[str, str] = {}
        self.locked: dict[str, str] = {}
        self._find_links = tuple(find_links)
        self._asking = threading.Lock()

    def warm_up(self) -> None:
        """Ask pip for its settings on another thread while the machine is detected: it needs a third of a second."""
        Ahead(lambda: self.settings)

    @property
    def settings(self) -> PipSettings:
        """Pip's settings, asked for once, whichever thread wants them first."""
        with self._asking:
            return self._settings

    @cached_property
    def _settings(self) -> PipSettings:
        """Read pip's settings from the pip of the Python underneath, else from the one on PATH; see `ask_pip`."""
        base = str(self._host.facts("platform").get("base_executable", "python3"))
        found = self._settings_of(base, "-m", "pip") or self._settings_of("pip") or PipSettings()
        return dataclasses.replace(found, find_links=(*found.find_links, *self._find_links))

    def _settings_of(self, *pip: str) -> PipSettings | None:
        def run(*words: str) -> tuple[bool, str]:
            said = self._host.run(*pip, *words)
            return bool(said), said.text

        return ask_pip(run)

    @cached_property
    def environment(self) -> dict[str, str]:
        """The variables that make uv look where pip would, and the pip of a fix where the user's options say."""
        answers = {name: self._host.variable(name) for name in UV_NAMES}
        users_own = {name: answer.text for name, answer in answers.items() if answer}
        variables = uv_environment(dataclasses.replace(self.settings, extra_index_urls=self._beside_default), users_own)
        variables |= pip_environment(self._find_links and self.settings.find_links)
        variables |= self._uv_configuration | ONLY_WHEELS
        variables["PYTHONSAFEPATH"] = "1"  # `python -m pip` would take a `pip` that lies in the current folder
        return variables | ({"UV_OFFLINE": "1", "PIP_NO_INDEX": "1"} if self.offline else {})

    def environment_for(self, plan: Plan) -> dict[str, str]:
        """Return the variables with the indexes and pages of wheels that a plan's project names beside the user's."""
        variables, indexes = self.environment, self._beside_torchs(plan)
        if not (indexes or plan.links):
            return variables
        more = variables.get("UV_INDEX") or self.variable("UV_INDEX") or self.variable("UV_EXTRA_INDEX_URL")
        before = variables.get("UV_FIND_LINKS") or self.variable("UV_FIND_LINKS")
        more_variables = {
            "UV_INDEX": " ".join(dict.fromkeys([*more.split(), *indexes])),
            "UV_FIND_LINKS": ",".join(filter(None, [before, *plan.links])),
        }
        return {**variables, **{name: value for name, value in more_variables.items() if value}}

    @cached_property
    def _uv_configuration(self) -> dict[str, str]:
        """The variable that keeps uv to the user's own configuration: one in the current folder may be a stranger's."""
        if self._host.variable("UV_CONFIG_FILE").text or self._host.variable("UV_NO_CONFIG").text:
            return {}
        # Where uv looks: the user's file, then the system's (docs.astral.sh/uv/concepts/configuration-files).
        user = self._host.variable("APPDATA").text or self._host.variable("XDG_CONFIG_HOME").text
        user = user or f"{self._host.variable('HOME').text}/.config"
        system = self._host.variable("PROGRAMDATA").text or "/etc"
        files = (f"{folder}/uv/uv.toml" for folder in (user, system))
        found = next((path for path in files if self._host.read(path)), None)
        return {"UV_CONFIG_FILE": found} if found else {"UV_NO_CONFIG": "1"}

    @cached_property
    def uv_indexes(self) -> tuple[str, ...]:
        """The indexes of uv's own configuration: their files need the passwords that stand there."""
        return uv_indexes(self._uv_toml)

    @cached_property
    def _uv_toml(self) -> str:
        """The text of uv's own configuration, "" where there is none."""
        file = self._host.variable("UV_CONFIG_FILE").text or self._uv_configuration.get("UV_CONFIG_FILE")
        return self._host.read(file).text if file else ""

    def consulted(self, plan: Plan) -> tuple[str, ...]:
        """Return the indexes that uv asks for any package of a plan, in order of priority.

        The one that the plan takes torch from it asks for torch's family alone.
        """
        if self.settings.no_index:
            return ()
        *extra, default = self._configured
        urls = dict.fromkeys((*extra, *self._beside_torchs(plan), default))
        return tuple(filter(self.may_ask, urls))

    @property
    def takes_first_index(self) -> bool:
        """Whether uv takes a package from the first index that has its name, and looks at no other."""
        said = self.variable("UV_INDEX_STRATEGY") or uv_strategy(self._uv_toml)
        return said in {"", "first-index"}

    @property
    def _beside_default(self) -> tuple[str, ...]:
        """The further indexes of pip's settings but torch's, which uv would prefer to PyPI for all that is there."""
        catalog = load_catalog()
        return tuple(url for url in self.settings.extra_index_urls if not known_index(url, catalog))

    def _beside_torchs(self, plan: Plan) -> tuple[str, ...]:
        """Return the indexes that a plan's project names, without torch's: there the plan's own decides.

        One that the user's settings name, too, is theirs, with its password.
        """
        catalog = load_catalog()
        own = {without_credentials(url).rstrip("/"): url for url in (*self.settings.index_urls, *self._configured)}
        return tuple(own.get(url.rstrip("/"), url) for url in plan.indexes if not known_index(url, catalog))

    @property
    def _configured(self) -> tuple[str, ...]:
        """The indexes that uv asks for any package whatever the plan, in order of priority."""
        variables = {name: self._host.variable(name).text for name in UV_NAMES}
        default, others = uv_default(self._uv_toml), uv_indexes(self._uv_toml, explicit=False)
        configured = self.settings.index_url or default or DEFAULT_INDEX
        first = variables["UV_DEFAULT_INDEX"] or variables["UV_INDEX_URL"] or configured
        extra = variables["UV_INDEX"] or variables["UV_EXTRA_INDEX_URL"]
        more = extra.split() if extra else self._beside_default
        named = (*more, *(url for url in others if url != default), first)
        # uv allows names before addresses: UV_INDEX="torch=https://download.pytorch.org/whl/cpu"
        return tuple(dict.fromkeys(url.rpartition("=")[2] if "=" in url.partition("://")[0] else url for url in named))

    def variable(self, name: str) -> str:
        """Return the value of an environment variable, "" where it is not set."""
        return self._host.variable(name).text

    @property
    def trusted(self) -> tuple[str, ...]:
        """The indexes and the places of wheels that the user names: by options or in the settings of pip and uv.

        They come without passwords, as somebody else would name them.
        """
        named = (self.index_url, *self.consent.indexes, *self.settings.index_urls, *self._configured)
        return tuple(without_credentials(one) for one in (*named, *self.settings.find_links) if one)

    def indexes(self, own: str | None = None) -> tuple[str, ...]:
        """Return one index (`own`), or those that pip asks; its default is among them unless another is configured."""
        if own is not None:
            return (own,)
        named = self.settings.index_urls
        default = not (self.settings.index_url or self.settings.no_index)
        return (DEFAULT_INDEX, *named) if default else named

    def may_ask(self, source: str) -> bool:
        """Return whether a source may be asked: only folders when offline."""
        on_disk = source.startswith("file:") or ("://" not in source and source != DEFAULT_INDEX)
        return on_disk or not self.offline


@dataclass(frozen=True)
class Tools:
    """What a step works with: the machine at hand, its package sources, where events go, a request to stop.

    `ask` puts a question to the user and waits for the answer; False where nobody is there to ask.
    """

    host: Host
    sources: Sources
    sink: Sink
    cancel: CancelToken
    ask: Callable[[Message], bool] = lambda _question: False

    def uv(self, plan: Plan, site: Site | None) -> Uv:
        """Return uv for an existing environment (`site`), or for a new one of the plan's Python.

        For a new one that is the assistant's base Python where it has the plan's version, else one that uv finds.
        """
        facts = self.host.facts("platform")
        base, numbers = str(facts["base_executable"]), str(facts.get("python", "")).split(".")
        version = ".".join(numbers[:2]) + "t" * bool(facts.get("free_threaded"))
        new = base if version == plan.python else plan.python
        return self.uv_of(site.python if site else new, self.sources.environment_for(plan))

    def uv_of(self, python: str, environment: Mapping[str, str] | None = None) -> Uv:
        """Return uv for an interpreter, with the user's settings."""
        sources = self.sources
        return Uv(
            python=python,
            environment=sources.environment if environment is None else environment,
            settings=sources.settings,
            uv_indexes=sources.uv_indexes,
            sink=self.sink,
            cancel=self.cancel,
        )


def index_findings(plan: Plan, sources: Sources) -> tuple[Finding, ...]:
    """Say which index a package comes from where several are asked: who may publish in one could take any name."""
    indexes = sources.consulted(plan)
    if len(indexes) < 2:  # noqa: PLR2004 - of one index nothing need be said
        return ()
    named = ", ".join(redact(url, Policy.USABLE) or "PyPI" for url in indexes)
    if sources.takes_first_index:
        text = _(
            "Several indexes are asked: {indexes}. uv takes each package from the first of them that has its name, so "
            "that no later one can offer another file under that name.",
            indexes=named,
        )
        return (Finding(key="several-indexes", severity=Severity.INFO, text=text),)
    text = _(
        "Several indexes are asked: {indexes}. The best version of all of them is taken, so that whoever may publish "
        "in one can offer another file under any name.",
        indexes=named,
    )
    fix = Remedy(text=_("Remove the index that you do not trust from pip's and uv's settings."))
    return (Finding(key="several-indexes", severity=Severity.WARNING, text=text, remedies=(fix,)),)
