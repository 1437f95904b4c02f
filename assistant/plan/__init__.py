"""From a machine and the catalogue to plans: pure, explained, and honest about what would help."""

from __future__ import annotations

from assistant.plan.availability import (
    Lookup,
    PlanInputs,
    brings_cuda,
    companions_to_find,
    settle,
    with_companions,
    with_sizes,
)
from assistant.plan.gpus import card_name
from assistant.plan.planner import NIGHTLY, explain, kind_of, make_plans, nothing_fits
from assistant.plan.requirements import requested
from assistant.plan.target import USUAL_PYTHON
