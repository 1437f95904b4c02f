"""One decision of hardware and packages: what the planner allows, in its order, is put to the resolver as a whole."""

from __future__ import annotations

from packaging.utils import canonicalize_name

from assistant.catalog import load_catalog
from assistant.catalog.rows import CORE
from assistant.i18n import Text, _
from assistant.install import Tools
from assistant.model.errors import NothingFits, WorkFailed
from assistant.model.plan import Planning
from assistant.model.record import replace
from assistant.plan import Band, PlanInputs, make_plans, nothing_fits, requested, with_python_reason, with_recipe
from assistant.project import read_project, with_project
from assistant.session.proof import explained, refused
from assistant.session.search import Search
from assistant.session.sources import Looks, fitted, sized
from assistant.session.state import Planned, State, known


def planned(state: State, tools: Tools) -> Planned:
    """Plan for the machine that was detected, and for the project that the user named, which is read first.

    Raises `NothingFits` where no plan does, and `BadInput` for a project that cannot be read.
    """
    request, project = state.choices.request, None
    if request.project:
        project = read_project(request.project, trusted=tools.sources.trusted)
        request = with_project(request, project, project.sure)
    case = PlanInputs(known(state.detection).machine, load_catalog(), request)
    planning = decided(case, tools, look=not state.machine)
    if planning.choice is None:
        raise nothing_fits(planning)
    return Planned(planning=planning, project=project)


def decided(case: PlanInputs, tools: Tools, *, look: bool = True) -> Planning:
    """Return the plans for a request: builds that the hardware runs, with which all that is asked for installs.

    The resolver is asked only where the request names more than torch's own family. With `look`, plans are fitted to
    what the user's sources hold. Where an index cannot be reached, the plans say that they were not checked. Raises
    `Cancelled`, and `BadInput` as the planner does.
    """
    case = case._replace(request=with_recipe(case.request))
    planning = make_plans(*case)
    looks = Looks(case.machine, tools.sources) if look else None
    planning = fitted(planning, case, looks) if looks else planning
    if planning.choice and _asks_more(case):
        planning = _searched(planning, case, tools, looks)
    return sized(planning, case, tools.sources) if looks else planning


def _asks_more(case: PlanInputs) -> bool:
    """Return whether a request may ask for what does not go with any torch; of a nightly's nobody knows."""
    request = case.request
    names = {canonicalize_name(need.name) for need in requested(*case)}
    beside = request.constraints or request.overrides or request.indexes or request.links
    return not request.nightly and bool(names - CORE or beside)


def _searched(planning: Planning, case: PlanInputs, tools: Tools, looks: Looks | None) -> Planning:
    """Search for the whole set, for the Python of the best plan; the plans stay as they are where nobody can tell."""
    choice = planning.choice
    assert choice  # noqa: S101 - see `decided`
    own = replace(case.request, python=choice.python)
    search = Search(case._replace(request=own), tools, looks, planning=planning)
    try:
        outcome = search.run() or search.answer(Band(choice))  # whatever the sources were found to hold
        if outcome.plan is None and not outcome.trial.unchecked:
            return refused(search, outcome.trial, case)
    except NothingFits:
        raise
    except WorkFailed as error:  # uv knows no such platform, or may not be used
        return _unchecked(planning, error.message)
    if outcome.plan is None:
        return _unchecked(planning, outcome.trial.unchecked)
    found = explained(search, outcome)
    here = case.machine.python
    if here and not case.request.python and not here.startswith(choice.python):
        return with_python_reason(found, here, case.request)
    return found


def _unchecked(planning: Planning, reason: Text) -> Planning:
    """Keep the plans as they are, and say that nobody could tell whether all that is asked for goes with them."""
    warning = _("It could not be checked whether all packages go together: {reason}", reason=reason)
    plans = tuple(replace(plan, warnings=(*plan.warnings, warning)) for plan in planning.plans)
    return replace(planning, plans=plans, choice=plans[0] if plans else None)
