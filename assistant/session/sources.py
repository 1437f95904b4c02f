"""Where packages come from on this machine: the plan's own index, and what the user's pip is configured with."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

from assistant.host.base import Host
from assistant.host.index import Network, find_wheels
from assistant.install.pip_settings import PipSettings, index_sources, read_pip_settings, uv_environment
from assistant.model.machine import Machine
from assistant.model.plan import Plan, Planning
from assistant.model.record import replace
from assistant.plan.settle import Look, settle

__all__ = ["Sources", "settled"]

LOOK_SECONDS = 5.0
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


class Sources:
    """The package sources of this user; pip is asked for its settings once.

    `index_url` replaces the index of every plan, `find_links` adds folders of wheels, `offline` stays off the network.
    """

    def __init__(
        self, host: Host, *, index_url: str = "", find_links: Iterable[str] = (), offline: bool = False
    ) -> None:
        self._host = host
        self.index_url = index_url
        self.offline = offline
        self._find_links = tuple(find_links)

    @cached_property
    def settings(self) -> PipSettings:
        """Read pip's settings from the pip of the Python underneath, else from the one on PATH."""
        base = str(self._host.facts("platform").get("base_executable", "python3"))
        said = self._host.run(base, "-m", "pip", "config", "list") or self._host.run("pip", "config", "list")
        found = read_pip_settings(said.text if said else "")
        return dataclasses.replace(found, find_links=(*found.find_links, *self._find_links))

    @cached_property
    def environment(self) -> dict[str, str]:
        """Give the variables that make uv look where pip would."""
        said = {name: self._host.variable(name) for name in UV_NAMES}
        known = {name: answer.text for name, answer in said.items() if answer}
        return uv_environment(self.settings, known) | ({"UV_OFFLINE": "1"} if self.offline else {})

    def look(self, plan: Plan, machine: Machine, index_url: str | None) -> Look:
        """Look for torch wheels that fit the plan and the machine in one index, or in pip's own sources (None)."""
        sources = index_sources(self.settings)
        found = find_wheels(
            "torch",
            index_urls=sources.index_urls if index_url is None else [index_url],
            find_links=sources.find_links if index_url is None else [],
            python=plan.python,
            machine_os=machine.os or "linux",
            machine_arch=machine.arch or "x86_64",
            glibc=machine.glibc,
            timeout=LOOK_SECONDS,
            where="configured" if index_url is None else "official",
            network=self._network,
        )
        return Look(wheels=found.wheels, reason=next((asked.reason for asked in found.asked if asked.reason), ""))

    @property
    def _network(self) -> Network:
        own = self.settings
        return Network(proxy=own.proxy, cert=own.cert, client_cert=own.client_cert, trusted_hosts=own.trusted_hosts)


def settled(planning: Planning, machine: Machine, sources: Sources) -> Planning:
    """Ask the sources what they hold, all at once, and fit the plans to it; nothing is asked when offline."""
    plans = tuple(replace(plan, index_url=sources.index_url or plan.index_url) for plan in planning.plans)
    if not plans:
        return planning
    with ThreadPoolExecutor(max_workers=8) as pool:
        configured = pool.submit(sources.look, plans[-1], machine, None)
        asked = {
            plan.index_url: pool.submit(sources.look, plan, machine, plan.index_url)
            for plan in plans
            if plan.index_url and not sources.offline
        }
        official = {url: look.result() for url, look in asked.items()}
        return settle(replace(planning, plans=plans), official, configured.result())
