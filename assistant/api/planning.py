"""What plans are made of, for an add-on that decides which builds and packages go together."""

from __future__ import annotations

from assistant.catalog import AMD_INDEX, Catalog, carried_by_torch_index, load_catalog, number
from assistant.catalog.bundles import Bundle, bundle_of, bundles, nearest
from assistant.catalog.catalog import is_pypi, known_index, mirrors_pypi
from assistant.catalog.companions import (
    Companion,
    VersionRange,
    between,
    bounds_beside,
    clashes,
    companion,
    every_companion,
    in_words,
    known_names,
    needs,
    overlap,
    required_by_torch,
    unpaired,
    version_ranges,
    wheel_sources,
    with_those_below,
)
from assistant.catalog.launchers import launchers, written
from assistant.catalog.rows import CORE, FAMILY, SystemNeed, TorchRelease, Trial
from assistant.catalog.tables import Table
from assistant.host.download import local_path
from assistant.install import Elsewhere, Tools, Unsolved
from assistant.model.plan import ProjectSummary
from assistant.model.requirement import index_fault, name_of, requirement
from assistant.plan.candidates import applicable_requirements, read_pins, reject
from assistant.plan.candidates import companion as companion_for
from assistant.plan.planner import PlanInputs, make_plans, other_pythons, plans_for, with_python_reason
from assistant.plan.requirements import requested
from assistant.plan.rocm import targets_of, with_device_code
from assistant.plan.target import USUAL_PYTHON, Refusal, Target, card_name, cards_of, driven_by, short_name, target_of
from assistant.session.planning import warn_unchecked
from assistant.views import rejection_reason, system_name
