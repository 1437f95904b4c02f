"""Plans for a setup: what the planner allows, fitted to the user's sources, and searched where that may matter.

An add-on brings what goes beyond torch's own family. The reader `project` is a module: its
`with_project_of(request, trusted)` reads the project that a request names, `read_project` and `agreed` do so for the
terminal. The task `decide` is a function `(planning, case, tools, looks) -> Planning`, which finds the build with which
all packages go together.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from packaging.utils import canonicalize_name

from assistant import addons
from assistant.catalog import load_catalog
from assistant.catalog.bundles import is_recipe, recipe_reader
from assistant.catalog.catalog import is_pypi
from assistant.catalog.rows import CORE
from assistant.i18n import Text, _
from assistant.install import Sources, Tools
from assistant.model.errors import WorkFailed
from assistant.model.event import Step
from assistant.model.machine import Machine
from assistant.model.plan import Plan, Planning
from assistant.model.record import replace
from assistant.plan import (
    Lookup,
    PlanInputs,
    card_name,
    companions_to_find,
    make_plans,
    nothing_fits,
    requested,
    settle,
    with_companions,
    with_sizes,
)
from assistant.session.state import Planned, State, known


def card_of(state: State) -> str:
    """Return the GPU that the chosen plan computes on, as people call it; "" for the CPU."""
    return card_name(known(state.detection).machine, known(state.plan).backend)


def from_another_index(state: State) -> int | None:
    """Return the place of the best plan whose torch another index was found to hold, where the chosen plan's is down.

    None where what cannot be reached is not torch's own index: any other plan would need it, too.
    """
    plan, address = state.plan, state.status(Step.INSTALL).unreachable
    if state.planning is None or plan is None or not (plan.index_url and address.startswith(plan.index_url)):
        return None
    others = enumerate(state.planning.plans)
    return next((place for place, other in others if other.wheel and other.index_url != plan.index_url), None)


class Looks:
    """What the sources were found to hold of torch and its companions; each is asked once, for one machine."""

    def __init__(self, machine: Machine, sources: Sources) -> None:
        self.sources = sources
        self._machine = machine
        self._found: dict[tuple[str | None, str, str], Lookup] = {}

    def of(
        self, keys: Iterable[tuple[str | None, str]], project: str = "torch"
    ) -> dict[tuple[str | None, str], Lookup]:
        """Return the lookups by index address (None: pip's own sources) and Python; new ones are made all at once."""
        keys = tuple(keys)
        new = [key for key in keys if (*key, project) not in self._found]
        if new:
            with ThreadPoolExecutor(max_workers=8) as pool:
                found = pool.map(lambda key: _look(self.sources, key[0], key[1], self._machine, project), new)
                self._found |= {(*key, project): look for key, look in zip(new, found, strict=True)}
        return {key: self._found[*key, project] for key in keys}

    def silent(self, plan: Plan) -> bool:
        """Return whether a source that may hold a plan's torch could not be asked."""
        return any(look.reason for look in self.of([(plan.index_url, plan.python), (None, plan.python)]).values())


def fitted(planning: Planning, case: PlanInputs, looks: Looks) -> Planning:
    """Ask the sources what they hold, all at once, and fit the plans to it; only folders are asked when offline."""
    own = looks.sources.index_url
    plans = tuple(replace(plan, index_url=own or plan.index_url) for plan in planning.plans)
    if not plans:
        return planning
    addresses = {(address, plan.python) for plan in plans for address in (plan.index_url, None)}
    planning = settle(replace(planning, plans=plans), looks.of(addresses), case)
    wanted = companions_to_find(planning)
    found = {(name, python): looks.of([(None, python)], name)[None, python] for name, python in wanted}
    return with_companions(planning, found, case)


def sized(planning: Planning, case: PlanInputs, sources: Sources) -> Planning:
    """Put the true sizes of the wheels that were found in place of the estimates."""
    return with_sizes(planning, sources.sizes(planning), case) if planning.plans else planning


def _look(sources: Sources, index_url: str | None, python: str, machine: Machine, project: str = "torch") -> Lookup:
    """Sum up how the sources answered: one that could not be asked stands for them all."""
    found = sources.find(index_url, python, machine, project)
    if skipped := [url for url in sources.indexes(index_url) if not sources.may_ask(url)]:
        reason = _("you asked to stay offline")
        return Lookup(source=skipped[0] or "PyPI", wheels=found.wheels, reason=reason)
    silent = next((asked for asked in found.asked if asked.status == "unreachable"), None)
    official = bool(index_url) and index_url != sources.index_url
    mirror = "" if index_url or sources.index_url else sources.settings.index_url
    return Lookup(
        source=silent.source if silent else ", ".join(asked.source for asked in found.asked),
        wheels=found.wheels,
        reason=silent.reason if silent else "",
        nearer=bool(mirror) and not is_pypi(mirror),
        leaks=() if official else tuple(server for asked in found.asked for server in asked.foreign),
    )


def project_reader() -> Any:  # noqa: ANN401 - the module that is described above
    """Return what reads projects; raise `WorkFailed` with the extra that is missing."""
    return addons.load_from_extra(addons.READERS, "project", extra="projects")


def planned(state: State, tools: Tools) -> Planned:
    """Plan for the machine that was detected, and for the project that the user named, which is read first.

    Raises `NothingFits` where no plan does, and `BadInput` for a project that cannot be read.
    """
    request, project = state.choices.request, None
    if request.project:
        request, project = project_reader().with_project_of(request, tools.sources.trusted)
    case = PlanInputs(known(state.detection).machine, load_catalog(), request)
    planning = decided(case, tools, look=not state.machine)
    if planning.choice is None:
        raise nothing_fits(planning)
    return Planned(planning=planning, project=project)


def decided(case: PlanInputs, tools: Tools, *, look: bool = True) -> Planning:
    """Return the plans for a request: builds that the hardware runs, with which all that is asked for installs.

    A resolver is asked only where the request names more than torch's own family. With `look`, plans are fitted to
    what the user's sources hold. Where nobody can tell whether all packages go together, the plans say so. Raises
    `Cancelled`, and `BadInput` as the planner does.
    """
    if is_recipe(case.request.bundle):
        case = case._replace(request=recipe_reader().with_recipe(case.request))
    planning = make_plans(*case)
    looks = Looks(case.machine, tools.sources) if look else None
    planning = fitted(planning, case, looks) if looks else planning
    if planning.choice and _asks_more(case):
        planning = _searched(planning, case, tools, looks)
    return sized(planning, case, tools.sources) if looks else planning


def _asks_more(case: PlanInputs) -> bool:
    """Return whether a request may ask for what does not go with any torch."""
    request = case.request
    names = {canonicalize_name(need.name) for need in requested(*case)}
    beside = request.constraints or request.overrides or request.indexes or request.links
    return bool(names - CORE or beside)


def _searched(planning: Planning, case: PlanInputs, tools: Tools, looks: Looks | None) -> Planning:
    """Have the add-on search for the whole set; without it the plans stay as they are."""
    try:
        decide = addons.load_from_extra(addons.TASKS, "decide", extra="projects")
    except WorkFailed as error:
        return unchecked(planning, error.message)
    found: Planning = decide(planning, case, tools, looks)
    return found


def unchecked(planning: Planning, reason: Text) -> Planning:
    """Keep the plans as they are, and say that nobody could tell whether all that is asked for goes with them."""
    warning = _("It could not be checked whether all packages go together: {reason}", reason=reason)
    plans = tuple(replace(plan, warnings=(*plan.warnings, warning)) for plan in planning.plans)
    return replace(planning, plans=plans, choice=plans[0] if plans else None)
