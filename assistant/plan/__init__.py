"""From a machine and the catalogue to plans: pure, explained, and honest about what would help."""

from __future__ import annotations

from assistant.plan.availability import Lookup, PlanInputs, brings_cuda, settle, with_sizes
from assistant.plan.companions import companions_to_find, with_companions
from assistant.plan.explain import explain, nothing_fits
from assistant.plan.gpus import card_name
from assistant.plan.nightly import NIGHTLY
from assistant.plan.planner import make_plans

__all__ = [
    "NIGHTLY",
    "Lookup",
    "PlanInputs",
    "brings_cuda",
    "card_name",
    "companions_to_find",
    "explain",
    "make_plans",
    "nothing_fits",
    "settle",
    "with_companions",
    "with_sizes",
]
