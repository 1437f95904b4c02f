"""An index with torch's name on it, a plan for it, and everything that was told."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from loopback import LoopbackIndex

from assistant.host.download import Patience
from assistant.host.live import LiveHost
from assistant.host.lock import Lock
from assistant.host.process import CancelToken
from assistant.install import Prepared, Site, Sources, Tools
from assistant.install.uv import Resolution, Uv, resolve
from assistant.model.plan import Backend, Plan
from assistant.model.report import Environment, Event

Verify = Callable[[Environment, Lock | None], None]
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


def imports_torch(made: Environment, _lock: Lock | None) -> None:
    """Verify as much as a torch without mathematics allows, and leave no compiled files behind."""
    subprocess.run([made.python, "-B", "-c", "import torch"], check=True, capture_output=True)


@dataclass(frozen=True)
class UvTools(Tools):
    """What a step works with; each environment is made by the uv that is given."""

    given: Uv | None = None

    def uv(self, _plan: Plan, _site: Site | None) -> Uv:
        """Give it."""
        assert self.given
        return self.given


def install(plan: Plan, resolution: Resolution, target: Path, site: Site | None, uv: Uv, verify: Verify) -> Environment:
    """Install a resolution with this uv."""
    tools = UvTools(LiveHost(), Sources(LiveHost()), uv.sink, uv.cancel, given=uv)
    return installed(Prepared(plan=plan, target=str(target), resolution=resolution, site=site), verify, tools)


def installed(prepared: Prepared, verify: Verify, tools: Tools) -> Environment:
    """Install what was prepared, unless `verify` refuses it."""
    with prepared.install(tools) as built:
        verify(built.now, built.lock)
    return built.environment


class Bench:
    """An index with torch's name on it, a plan for it, and everything that was told."""

    def __init__(self, index: LoopbackIndex, folder: Path) -> None:
        self.index = index
        self.target = folder / "made" / "for us" / "环境"
        self.events: list[Event] = []
        self.cancel = CancelToken()
        self.plan = Plan(
            backend=Backend.CPU,
            variant="cpu",
            torch="9.0",
            python=PYTHON,
            index_url=index.url,
            requirements=("torch==9.0",),
        )
        index.add("torch", "9.0", requires=("numpy",))
        index.add("numpy", "1.0")
        index.add("ipykernel", "7.0")

    def uv(self) -> Uv:
        """Give uv; the default index is the loopback index as well, so nothing leaves the machine."""
        cache = str(self.index.folder.parent / "cache")
        environment = {"UV_DEFAULT_INDEX": self.index.url, "UV_CACHE_DIR": cache, "UV_HTTP_RETRIES": "0"}
        return Uv(
            python=sys.executable,
            environment=environment,
            sink=self.events.append,
            cancel=self.cancel,
            patience=Patience(timeout=5, tries=2, pause=0.01),
        )

    def resolution(self) -> Resolution:
        """Resolve the plan."""
        return resolve(self.plan, self.uv())

    def make(self, resolution: Resolution) -> Environment:
        """Make the environment, its torch imported before it counts as made."""
        return install(self.plan, resolution, self.target, None, self.uv(), imports_torch)
