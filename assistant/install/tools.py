"""What a step works with: the machine at hand, its package sources, where events go, a request to stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from assistant.host.base import Host
from assistant.host.process import CancelToken
from assistant.i18n import Message
from assistant.install.inspect_env import Site
from assistant.install.installer import Installer
from assistant.install.sources import Sources
from assistant.model.event import Sink
from assistant.model.plan import Plan


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

    def installer(self, plan: Plan, site: Site | None) -> Installer:
        """Return the installer for an environment that stands (`site`), or for a new one with the plan's Python.

        A new one is made with the Python underneath the assistant where that has the plan's version.
        """
        facts, sources = self.host.facts("platform"), self.sources
        base = str(facts["base_executable"])
        own = base if str(facts.get("python", "")).startswith(f"{plan.python}.") else plan.python
        return Installer(
            python=site.python if site else own,
            environment=sources.environment_for(plan),
            settings=sources.settings,
            uv_indexes=sources.uv_indexes,
            sink=self.sink,
            cancel=self.cancel,
        )
