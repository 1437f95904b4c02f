"""From a machine and the catalogue to plans: pure, explained, and honest about what would help."""

from __future__ import annotations

from assistant.plan.planner import (
    DEFAULT_BUILD,
    NIGHTLY,
    PlanInputs,
    brings_cuda,
    explain,
    make_plans,
    nothing_fits,
    without_unused_facts,
)
from assistant.plan.requirements import requested_packages
from assistant.plan.target import USUAL_PYTHON, Target, card_name, find_target, known_gpus
