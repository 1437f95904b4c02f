"""Plans for a setup: what the planner allows, and searched where more is asked for than torch's own family.

An add-on brings what goes beyond torch's own family. The reader `project` is a module: its
`with_project_of(request, trusted)` reads the project that a request names, `read_project` and `agreed` do so for the
terminal. The task `decide` is a function `(planning, case, tools) -> Planning`, which finds the build with which all
packages go together.
"""

from __future__ import annotations

import re
from typing import Any

from packaging.utils import canonicalize_name

from assistant import addons
from assistant.catalog import AMD_INDEX, AMD_NIGHTLY, load_catalog
from assistant.catalog.bundles import is_recipe, recipe_reader
from assistant.catalog.rows import CORE
from assistant.i18n import Text, _
from assistant.install import Tools
from assistant.model.errors import WorkFailed
from assistant.model.plan import Backend, Plan, Planning
from assistant.model.record import replace
from assistant.plan import NIGHTLY, PlanInputs, card_name, make_plans, nothing_fits, requested
from assistant.session.state import Planned, State, required


def card_of(state: State) -> str:
    """Return the GPU that the chosen plan computes on, as people call it; "" for the CPU."""
    return card_name(required(state.detection).machine, required(state.plan).backend)


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
    case = PlanInputs(required(state.detection).machine, load_catalog(), request)
    planning = decided(case, tools)
    if planning.choice is None:
        raise nothing_fits(planning)
    return Planned(planning=planning, project=project)


def decided(case: PlanInputs, tools: Tools) -> Planning:
    """Return the plans for a request: builds that the hardware runs, with which all that is asked for installs.

    A resolver is asked only where the request names more than torch's own family. Where nobody can tell whether all
    packages go together, the plans say so. Raises `Cancelled`, and `BadInput` as the planner does.
    """
    if is_recipe(case.request.bundle):
        case = case._replace(request=recipe_reader().with_recipe(case.request))
    planning = make_plans(*case)
    searches = planning.choice and _asks_more(case)
    return _searched(planning, case, tools) if searches else _of_own_index(planning, tools)


def _of_own_index(planning: Planning, tools: Tools) -> Planning:
    """Let plans take torch from the index that the user named: one of their own may hold several builds."""
    own = tools.sources.index_url
    if not own:
        return planning
    plans = tuple(replace(_named(plan), index_url=own) if plan.index_url else plan for plan in planning.plans)
    return replace(planning, plans=plans, choice=plans[0] if plans else None)


def _named(plan: Plan) -> Plan:
    """Let a plan name its build of torch by the local tag."""
    if not has_builds(plan):
        return plan
    return replace(plan, requirements=with_torch(plan, f"torch=={plan.torch}+{local_of(plan)}"))


def has_builds(plan: Plan) -> bool:
    """Return whether a plan's build is one of several that releases of torch have, told apart by their local tags."""
    return plan.variant not in {AMD_INDEX, AMD_NIGHTLY} and not plan.variant.startswith(NIGHTLY)


def local_of(plan: Plan) -> str:
    """Return the local tag of the torch that a plan is for, such as "cu130"; DirectML's computes on the CPU."""
    return "cpu" if plan.backend is Backend.DIRECTML else plan.variant


def with_torch(plan: Plan, line: str) -> tuple[str, ...]:
    """Return a plan's requirements with another line for torch; its extras stay."""
    exact = rf"torch\g<extras>{line.removeprefix('torch')}"
    return tuple(re.sub(r"^torch(?P<extras>(?:\[[^]]*])?)\s*[=>]=.*$", exact, one) for one in plan.requirements)


def _asks_more(case: PlanInputs) -> bool:
    """Return whether a request may ask for what does not go with any torch."""
    request = case.request
    names = {canonicalize_name(need.name) for need in requested(*case)}
    beside = request.constraints or request.overrides or request.indexes or request.links
    return bool(names - CORE or beside)


def _searched(planning: Planning, case: PlanInputs, tools: Tools) -> Planning:
    """Have the add-on search for the whole set; without it the plans stay as they are."""
    try:
        decide = addons.load_from_extra(addons.TASKS, "decide", extra="projects")
    except WorkFailed as error:
        return unchecked(_of_own_index(planning, tools), error.message)
    found: Planning = decide(planning, case, tools)
    return found


def unchecked(planning: Planning, reason: Text) -> Planning:
    """Keep the plans as they are, and say that nobody could tell whether all that is asked for goes with them."""
    warning = _("It could not be checked whether all packages go together: {reason}", reason=reason)
    plans = tuple(replace(plan, warnings=(*plan.warnings, warning)) for plan in planning.plans)
    return replace(planning, plans=plans, choice=plans[0] if plans else None)
