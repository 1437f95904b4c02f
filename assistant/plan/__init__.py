"""From a machine and the catalogue to plans: pure, explained, and honest about what would help."""

from __future__ import annotations

from assistant.plan.planner import (
    DEFAULT_BUILD,
    NIGHTLY,
    PlanInputs,
    brings_cuda,
    explain,
    kind_of,
    make_plans,
    nothing_fits,
)
from assistant.plan.requirements import requested
from assistant.plan.target import USUAL_PYTHON, Target, card_name, target_of
