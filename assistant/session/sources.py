"""The plans fitted to what the package sources of this user hold."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from assistant.catalog import load_catalog
from assistant.i18n import _
from assistant.install import Sources, Tools
from assistant.model.machine import Machine
from assistant.model.plan import Planning
from assistant.model.record import replace
from assistant.plan import Lookup, PlanInputs, make_plans, nothing_fits, settle, with_sizes
from assistant.session.nouns import Planned, State, known


def planned(state: State, tools: Tools) -> Planned:
    """Plan for the machine that was detected; raise `NothingFits` where no plan does."""
    case = PlanInputs(known(state.detection).machine, load_catalog(), state.request)
    planning = make_plans(*case)
    planning = planning if state.machine else settled(planning, case, tools.sources)
    if planning.choice is None:
        raise nothing_fits(planning)
    return Planned(planning=planning)


def settled(planning: Planning, case: PlanInputs, sources: Sources) -> Planning:
    """Ask the sources what they hold, all at once, and fit the plans to it; only folders are asked when offline."""
    plans = tuple(replace(plan, index_url=sources.index_url or plan.index_url) for plan in planning.plans)
    addresses = {(address, plan.python) for plan in plans for address in (plan.index_url, None)}
    if not plans:
        return planning
    with ThreadPoolExecutor(max_workers=8) as pool:
        asked = {key: pool.submit(_look, sources, *key, case.machine) for key in addresses}
        looks = {key: look.result() for key, look in asked.items()}
    planning = settle(replace(planning, plans=plans), looks, case)
    return with_sizes(planning, sources.sizes(planning), case)


def _look(sources: Sources, index_url: str | None, python: str, machine: Machine) -> Lookup:
    """Sum up how the sources answered: one that could not be asked stands for them all."""
    found = sources.find(index_url, python, machine)
    if skipped := [url for url in sources.indexes(index_url) if not sources.may_ask(url)]:
        reason = _("you asked to stay offline")
        return Lookup(source=skipped[0] or "PyPI", wheels=found.wheels, reason=reason)
    silent = next((asked for asked in found.asked if asked.status == "unreachable"), None)
    official = bool(index_url) and index_url != sources.index_url
    return Lookup(
        source=silent.source if silent else ", ".join(asked.source for asked in found.asked),
        wheels=found.wheels,
        reason=silent.reason if silent else "",
        leaks=() if official else tuple(server for asked in found.asked for server in asked.foreign),
    )
