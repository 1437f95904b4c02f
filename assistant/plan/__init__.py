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
from assistant.plan.ladder import Band, Ladder, bands, for_other_cuda, ladder, pairs, question, requested, satisfied
from assistant.plan.memory import Estimate, Shape, Verdict, estimate, judge, largest_card, read_shape
from assistant.plan.planner import NIGHTLY, explain, kind_of, nothing_fits, other_pythons, with_python_reason
from assistant.plan.recipes import make_plans, memory_warning, with_recipe
from assistant.plan.requirements import wheel_pages, without_overwritten
from assistant.plan.target import USUAL_PYTHON

__all__ = [
    "NIGHTLY",
    "USUAL_PYTHON",
    "Band",
    "Estimate",
    "Ladder",
    "Lookup",
    "PlanInputs",
    "Shape",
    "Verdict",
    "bands",
    "brings_cuda",
    "card_name",
    "companions_to_find",
    "estimate",
    "explain",
    "for_other_cuda",
    "judge",
    "kind_of",
    "ladder",
    "largest_card",
    "make_plans",
    "memory_warning",
    "nothing_fits",
    "other_pythons",
    "pairs",
    "question",
    "read_shape",
    "requested",
    "satisfied",
    "settle",
    "wheel_pages",
    "with_companions",
    "with_python_reason",
    "with_recipe",
    "with_sizes",
    "without_overwritten",
]
