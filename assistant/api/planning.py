"""What plans are made of, for an add-on that decides which builds and packages go together."""

from __future__ import annotations

from assistant.catalog import AMD_INDEX, JETSON_INDEX, Catalog, carried_by_torch_index, load_catalog, number
from assistant.catalog.catalog import (
    Bundle,
    bundles,
    find_bundle,
    is_known_index,
    is_pypi,
    is_pypi_mirror,
    launch_line,
    launchers,
    similar_keys,
)
from assistant.catalog.companions import (
    Companion,
    VersionRange,
    all_companions,
    all_names,
    bounds_beside,
    bounds_between,
    can_overlap,
    describe_needs,
    find_clashes,
    find_companion,
    is_required_by_torch,
    system_needs,
    unpaired_warnings,
    version_ranges,
    wheel_sources,
    with_underlying,
)
from assistant.catalog.tables import CORE, FAMILY, SystemNeed, Table, TorchRelease, Trial
from assistant.host.files import local_path
from assistant.install import RemotePlan, Tools, Unsolved
from assistant.model.plan import ProjectSummary, index_fault, name_of, requirement
from assistant.plan.candidates import applicable_requirements, read_pins, reject
from assistant.plan.candidates import best_companion as companion_for
from assistant.plan.planner import PlanInputs, make_plans, other_pythons, plans_for, with_python_reason
from assistant.plan.requirements import requested_packages
from assistant.plan.rocm import device_targets, with_device_code
from assistant.plan.target import (
    USUAL_PYTHON,
    Refusal,
    Target,
    card_name,
    find_cards,
    find_target,
    is_driven_by,
    short_name,
)
from assistant.session.planning import warn_unchecked
from assistant.views import rejection_reason, system_name
