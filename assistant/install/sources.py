"""Where packages come from on this machine, as the user's pip, uv and options say, and what the user agreed to."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterable
from functools import cached_property
from typing import Literal

from assistant.catalog import Catalog
from assistant.host.base import Host
from assistant.host.index import DEFAULT_INDEX, Found, find_wheels, list_wheels, warm_up, wheel_sizes
from assistant.host.parallel import Ahead
from assistant.host.pip_settings import (
    PipSettings,
    pip_environment,
    read_pip_settings,
    uv_default,
    uv_environment,
    uv_indexes,
)
from assistant.model.machine import Machine
from assistant.model.plan import Planning
from assistant.model.record import Record

LOOK_SECONDS = 5.0
SIZE_SECONDS = 2.0
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


# Also for the ways out that a diagnosis carries out: no line that we start builds a package that nobody agreed to.
ONLY_WHEELS = {"UV_NO_BUILD": "1", "PIP_ONLY_BINARY": ":all:"}


class Consent(Record, frozen=True):
    """What the user agreed to beforehand, and whether anything may be asked.

    `built` names packages whose source may be built; without `builds` none is, and nobody is asked. `indexes` may win a
    name that others hold, too; without `asks` such a name is told and nothing more, for a look that installs nothing.
    """

    built: tuple[str, ...] = ()
    builds: bool = True
    indexes: tuple[str, ...] = ()
    asks: bool = True


class Sources:
    """The package sources of this user; pip is asked for its settings once.

    `index_url` replaces the index of every plan, `find_links` adds folders of wheels, `offline` stays off the network,
    `installer` is the program that installs. `seconds` is the most that a look at all sources may take. `keep` and
    `locked` are the versions to be kept where they fit, and those that must hold.
    """

    def __init__(
        self,
        host: Host,
        *,
        index_url: str = "",
        find_links: Iterable[str] = (),
        offline: bool = False,
        installer: Literal["uv", "pip"] = "uv",
        seconds: float = LOOK_SECONDS,
        consent: Consent | None = None,
    ) -> None:
        self._host = host
        self._seconds = seconds
        self.index_url = index_url
        self.offline = offline
        self.consent = consent or Consent()
        self.keep: dict[str, str] = {}
        self.locked: dict[str, str] = {}
        self.installer = installer
        self._find_links = tuple(find_links)
        self._asking = threading.Lock()

    def look_ahead(self) -> None:
        """Get ready on another thread, while a machine is detected, for the plan's look at the indexes."""
        Ahead(lambda: self.settings)  # pip needs a third of a second to tell its settings
        Ahead(warm_up)

    @property
    def settings(self) -> PipSettings:
        """Give pip's settings, asked for once, whichever thread wants them first."""
        with self._asking:
            return self._settings

    @cached_property
    def _settings(self) -> PipSettings:
        """Read pip's settings from the pip of the Python underneath, else from the one on PATH."""
        base = str(self._host.facts("platform").get("base_executable", "python3"))
        said = self._host.run(base, "-m", "pip", "config", "list") or self._host.run("pip", "config", "list")
        found = read_pip_settings(said.text if said else "")
        return dataclasses.replace(found, find_links=(*found.find_links, *self._find_links))

    @cached_property
    def environment(self) -> dict[str, str]:
        """Give the variables that make uv look where pip would, and pip where the user's options say."""
        said = {name: self._host.variable(name) for name in UV_NAMES}
        known = {name: answer.text for name, answer in said.items() if answer}
        told = uv_environment(self.settings, known) | pip_environment(self._find_links and self.settings.find_links)
        told |= self._uv_configuration | ONLY_WHEELS
        told["PYTHONSAFEPATH"] = "1"  # `python -m pip` would take a `pip` that lies in the folder where we stand
        return told | ({"UV_OFFLINE": "1", "PIP_NO_INDEX": "1"} if self.offline else {})

    @cached_property
    def _uv_configuration(self) -> dict[str, str]:
        """Keep uv to the user's own configuration: a `uv.toml` of the folder that we stand in may be a stranger's."""
        if self._host.variable("UV_CONFIG_FILE").text or self._host.variable("UV_NO_CONFIG").text:
            return {}
        found = next((path for path in self._uv_files if self._host.read(path)), None)
        return {"UV_CONFIG_FILE": found} if found else {"UV_NO_CONFIG": "1"}

    @property
    def _uv_files(self) -> tuple[str, ...]:
        """Name where uv looks for its user's configuration, and then for the system's."""
        home = self._host.variable("APPDATA").text or self._host.variable("XDG_CONFIG_HOME").text
        system = self._host.variable("PROGRAMDATA").text or "/etc"
        return tuple(
            f"{folder}/uv/uv.toml" for folder in (home or f"{self._host.variable('HOME').text}/.config", system)
        )

    @cached_property
    def uv_indexes(self) -> tuple[str, ...]:
        """Name the indexes of uv's own configuration: their files need the passwords that stand there."""
        return uv_indexes(self._uv_told)

    @cached_property
    def _uv_told(self) -> str:
        """Read uv's own configuration."""
        told = self._host.variable("UV_CONFIG_FILE").text or self._uv_configuration.get("UV_CONFIG_FILE")
        return self._host.read(told).text if told else ""

    def in_play(self, own: str | None) -> tuple[str, ...]:
        """Name the indexes that the installer asks for any package, the first one first; `own` is that of the plan.

        uv asks the plan's index for torch's family alone, pip for everything.
        """
        if self.offline:
            return tuple(filter(self.may_ask, self.indexes()))
        if self.installer == "pip":
            return tuple(dict.fromkeys((*self.indexes(), *filter(None, [own]))))
        said = {name: self._host.variable(name).text for name in UV_NAMES}
        default, others = uv_default(self._uv_told), uv_indexes(self._uv_told, explicit=False)
        first = said["UV_DEFAULT_INDEX"] or said["UV_INDEX_URL"] or self.settings.index_url or default or DEFAULT_INDEX
        told = said["UV_INDEX"] or said["UV_EXTRA_INDEX_URL"]
        more = told.split() if told else self.settings.extra_index_urls
        named = (url.rpartition("=")[2] if "=" in url.partition("://")[0] else url for url in (first, *more))
        return (
            () if self.settings.no_index else tuple(dict.fromkeys((*named, *(url for url in others if url != default))))
        )

    def find(self, index_url: str | None, python: str, machine: Machine) -> Found:
        """Find torch wheels that fit a machine and a Python in one index, or in pip's own sources (None)."""
        return find_wheels(
            "torch",
            machine,
            python,
            index_urls=filter(self.may_ask, self.indexes(index_url)),
            find_links=filter(self.may_ask, self.settings.find_links) if index_url is None else [],
            timeout=self._seconds,
            where="official" if index_url and index_url != self.index_url else "configured",
            network=self.settings.network,
        )

    def listing(self, project: str, index_url: str | None = None) -> Found:
        """List all wheels of a project in one index, or in pip's own indexes (None)."""
        wanted = filter(self.may_ask, self.indexes(index_url))
        return list_wheels(project, index_urls=wanted, timeout=self._seconds, network=self.settings.network)

    def sizes(self, planning: Planning) -> dict[str, int]:
        """Ask for the sizes of the wheels that were found, in bytes by address."""
        wheels = [plan.wheel for plan in planning.plans if plan.wheel and plan.wheel.size is None]
        return wheel_sizes([wheel.url for wheel in wheels], timeout=SIZE_SECONDS, network=self.settings.network)

    def variable(self, name: str) -> str:
        """Give the value of an environment variable, "" where it is not set."""
        return self._host.variable(name).text

    @property
    def own_indexes(self) -> tuple[str, ...]:
        """Name the indexes that the user's pip or command line names."""
        return (self.index_url, *self.settings.index_urls)

    def indexes(self, own: str | None = None) -> tuple[str, ...]:
        """Name one index, or those that pip asks: where none is configured as the first, that is its default."""
        if own is not None:
            return (own,)
        named = self.settings.index_urls
        default = not (self.settings.index_url or self.settings.no_index)
        return (DEFAULT_INDEX, *named) if default else named

    def may_ask(self, source: str) -> bool:
        """Tell whether a source may be asked: only folders when offline."""
        on_disk = source.startswith("file:") or ("://" not in source and source != DEFAULT_INDEX)
        return on_disk or not self.offline


def known_index(url: str, catalog: Catalog, own: Iterable[str] = ()) -> bool:
    """Tell whether an index is in the catalogue, or one that the user's own pip or command line names."""
    if url.rstrip("/") in {address.rstrip("/") for address in own if address}:
        return True
    listed = [catalog.index_url(variant) or "" for variant in ("cpu", "nightly/cpu", "amd-index")]
    listed += [mirror.url.replace("{variant}", "cpu") for mirror in catalog.mirrors if mirror.serves != "pypi"]
    return any(_below(url, known) for known in listed)


def _below(url: str, known: str) -> bool:
    """Compare with the folder above a variant's own, scheme and server included."""
    folder = known.rstrip("/").removesuffix("/cpu").removesuffix("/nightly") + "/"
    return f"{url}/".startswith(folder) and ".." not in url and "%" not in url
