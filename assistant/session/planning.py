"""Plans for a setup: what the planner allows, fitted to the user's sources, and searched where that may matter.

An add-on brings what goes beyond torch's own family. The reader `project` is a module: its
`with_project_of(request, trusted)` reads the project that a request names, `read_project` and `agreed` do so for the
terminal. The task `decide` is a function `(planning, case, tools, looks) -> Planning`, which finds the build with which
all packages go together.
"""

from __future__ import annotations

from typing import Any

from packaging.utils import canonicalize_name

from assistant import addons
from assistant.catalog import load_catalog
from assistant.catalog.bundles import is_recipe, recipe_reader
from assistant.catalog.rows import CORE
from assistant.i18n import Text, _
from assistant.install import Tools
from assistant.model.errors import WorkFailed
from assistant.model.plan import Planning
from assistant.model.record import replace
from assistant.plan import PlanInputs, make_plans, nothing_fits, requested
from assistant.session.sources import Looks, fitted, sized
from assistant.session.state import Planned, State, known


def project_reader() -> Any:  # noqa: ANN401 - the module that is described above
    """Return what reads projects; raise `WorkFailed` with the extra that is missing."""
    return addons.ours(addons.READERS, "project", extra="projects")


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
        decide = addons.ours(addons.TASKS, "decide", extra="projects")
    except WorkFailed as error:
        return unchecked(planning, error.message)
    found: Planning = decide(planning, case, tools, looks)
    return found


def unchecked(planning: Planning, reason: Text) -> Planning:
    """Keep the plans as they are, and say that nobody could tell whether all that is asked for goes with them."""
    warning = _("It could not be checked whether all packages go together: {reason}", reason=reason)
    plans = tuple(replace(plan, warnings=(*plan.warnings, warning)) for plan in planning.plans)
    return replace(planning, plans=plans, choice=plans[0] if plans else None)
