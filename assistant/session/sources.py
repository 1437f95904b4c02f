"""What this user's package sources hold: plans fitted to it, and the builds listed for the catalogue's upkeep."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from assistant.catalog import Catalog, load_catalog
from assistant.catalog.refresh import Seen
from assistant.i18n import Message, _
from assistant.install import Sources, Tools
from assistant.model.machine import Machine
from assistant.model.plan import Planning, Wheel
from assistant.model.record import replace
from assistant.plan import (
    Lookup,
    PlanInputs,
    card_name,
    companions_to_find,
    make_plans,
    nothing_fits,
    settle,
    with_companions,
    with_sizes,
)
from assistant.session.state import Planned, State, known

# The build of "torch-2.9.1+cu130-cp312-cp312-manylinux_2_28_x86_64.whl" is cu130.
_BUILD = re.compile(r"-[^-+]+\+(cpu|xpu|cu\d+|rocm\d+(?:\.\d+)+)-")


def planned(state: State, tools: Tools) -> Planned:
    """Plan for the machine that was detected; raise `NothingFits` where no plan does."""
    case = PlanInputs(known(state.detection).machine, load_catalog(), state.request)
    planning = make_plans(*case)
    planning = planning if state.machine else settled(planning, case, tools.sources)
    if planning.choice is None:
        raise nothing_fits(planning)
    return Planned(planning=planning)


def card_of(state: State) -> str:
    """Return the GPU that the chosen plan computes on, as people call it; "" for the CPU."""
    return card_name(known(state.detection).machine, known(state.plan).backend)


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
    wanted = companions_to_find(planning)
    found = {(name, python): _look(sources, None, python, case.machine, name) for name, python in wanted}
    planning = with_companions(planning, found, case)
    return with_sizes(planning, sources.sizes(planning), case)


def _look(sources: Sources, index_url: str | None, python: str, machine: Machine, project: str = "torch") -> Lookup:
    """Sum up how the sources answered: one that could not be asked stands for them all."""
    found = sources.find(index_url, python, machine, project)
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


class Listing(NamedTuple):
    """What the indexes listed, and a sentence for each that could not be asked."""

    seen: tuple[Seen, ...]
    unchecked: tuple[Message, ...]


def list_builds(sources: Sources, known: Catalog, projects: tuple[str, ...]) -> Listing:
    """List the wheels of torch, on its own index (or the one named), and of other projects, on pip's."""
    own = sources.index_url or known.index_url("")
    asked = [("torch", own), *((project, None) for project in projects)]
    with ThreadPoolExecutor(max_workers=len(asked)) as pool:
        found = list(pool.map(lambda question: sources.listing(*question), asked))
    seen = (_seen(wheel) for answer in found for wheel in answer.wheels)
    unchecked = [
        _("Not checked: {source} cannot be reached ({reason}).", source=asked.source, reason=asked.reason)
        for answer in found
        for asked in answer.asked
        if asked.status == "unreachable"
    ]
    return Listing(tuple(filter(None, seen)), tuple(dict.fromkeys(unchecked)))


def _seen(wheel: Wheel) -> Seen | None:
    """Read the build off the version's local part, as on an index of all builds; one without is PyPI's."""
    if "+" not in wheel.filename:
        return Seen("pypi", wheel.filename, wheel.size)
    build = _BUILD.search(wheel.filename)
    return Seen(build[1], wheel.filename, wheel.size) if build else None
