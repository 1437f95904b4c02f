"""The assistant's own planning, as `assistant plan` does it, with every index on loopback."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path

from addons.projects.joint.cases import Wanted
from addons.projects.joint.world import Indexes
from catalogs import catalog_as_of

from assistant.catalog import Catalog
from assistant.host.live import LiveHost
from assistant.host.process import CancelToken
from assistant.i18n import render
from assistant.install import RemotePlan, Sources, Tools
from assistant.model.errors import BadInput, NothingFits
from assistant.model.machine import Machine
from assistant.model.plan import Backend, Plan, Planning, Rejection, Request
from assistant.model.report import Event, Progress, Step
from assistant.plan import PlanInputs
from assistant.session.planning import plan_request


class Mirrored(Catalog):
    """The catalogue, torch's indexes at other addresses."""

    def __init__(self, indexes: Indexes) -> None:
        super().__init__(catalog_as_of("2.15.0").tables)
        self._indexes = indexes

    def index_url(self, variant: str, _torch: str = "") -> str | None:
        """Return the address on loopback that stands for a variant's index."""
        return self._indexes.variant_url(variant)


class Product:
    """Plans for a machine and a set; `runs` counts how often uv was started."""

    def __init__(self, indexes: Indexes, cache: Path) -> None:
        self.runs = 0
        self.catalog = Mirrored(indexes)
        for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
            del os.environ[name]
        # pip and uv know no other index than the one on loopback
        os.environ.update(
            PIP_CONFIG_FILE=os.devnull, PIP_INDEX_URL=indexes.url, UV_CACHE_DIR=str(cache), UV_NO_CONFIG="1"
        )
        host = LiveHost()
        self.tools = Tools(host, Sources(host), self._count, CancelToken())
        self.tools.sources.environment  # noqa: B018 - pip is asked for its settings now, not within the first case

    def plan(self, machine: Machine, wanted: Wanted) -> Planning:
        """Plan as the command does; an error is the refusal that it is shown as."""
        request = Request(pins=wanted.requires, overrides=wanted.overrides, pythons=wanted.pythons)
        case = PlanInputs(machine, self.catalog, request)
        try:
            return plan_request(case, self.tools)
        except (BadInput, NothingFits) as error:
            return Planning(rejected=(Rejection(Backend.CPU, "", error.message, error.hint or ""),))

    def uv_seconds(self, machine: Machine, plan: Plan) -> tuple[float, bool]:
        """Return the seconds that uv takes for an answer, asked as it is installed, and whether all of it holds."""
        uv = RemotePlan(plan, machine).uv(self.tools, also=())
        with tempfile.TemporaryDirectory() as folder:
            argv = uv.resolve_command(plan, Path(folder), {}, None)
            environment = {**os.environ, **uv.environment}
            start = time.perf_counter()
            done = subprocess.run(argv, env=environment, capture_output=True, check=False)
            return time.perf_counter() - start, done.returncode == 0

    def _count(self, event: Event) -> None:
        """Count the questions to uv: each is told as progress of the planning."""
        self.runs += isinstance(event, Progress) and event.step is Step.PLAN

    @staticmethod
    def words(planning: Planning) -> str:
        """Return all that a refusal says."""
        return " ".join(f"{render(one.why)} {render(one.would_help)}" for one in planning.rejected)

    @staticmethod
    def remarks(plan: Plan) -> str:
        """Return all that a plan says beside what it is."""
        return " ".join(map(render, (*plan.reasons, *plan.warnings)))
