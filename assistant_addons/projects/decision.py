"""One decision of hardware and packages: what the planner allows, in its order, is put to the resolver as a whole."""

from __future__ import annotations

from assistant.api import NothingFits, WorkFailed, replace
from assistant.api.planning import PlanInputs, Tools, warn_unchecked, with_python_reason
from assistant.api.records import Planning
from assistant_addons.projects.companions import with_needs
from assistant_addons.projects.proof import explained, refused
from assistant_addons.projects.search import Search


def decide(planning: Planning, case: PlanInputs, tools: Tools) -> Planning:
    """Search for the whole set, for the Python of the best plan; else add what is known where nobody can tell.

    Of a nightly build nobody knows what goes with it.
    """
    planning = with_needs(planning, case)
    choice = planning.choice
    if choice is None or case.request.nightly:
        return planning
    own = replace(case.request, python=choice.python)
    search = Search(case._replace(request=own), tools, planning)
    try:
        outcome = search.run() or search.answer([choice])
        if outcome.plan is None and not outcome.trial.unchecked:
            return refused(search, outcome.trial, case)
    except NothingFits:
        raise
    except WorkFailed as error:  # uv knows no such platform, or may not be used
        return warn_unchecked(planning, error.message)
    if outcome.plan is None:
        return warn_unchecked(planning, outcome.trial.unchecked)
    found = explained(search, outcome)
    here = case.machine.python
    if here and not case.request.python and not here.startswith(choice.python):
        return with_python_reason(found, here, case.request)
    return found
