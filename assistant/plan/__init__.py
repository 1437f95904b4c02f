"""From a machine and the catalogue to plans: pure, explained, and honest about what would help."""

from __future__ import annotations

from assistant.plan.availability import Lookup, PlanInputs, brings_cuda, settle, with_sizes
from assistant.plan.companions import companions_to_find, with_companions
from assistant.plan.explain import explain, nothing_fits
from assistant.plan.gpus import card_name
from assistant.plan.ladder import Band, bands, for_other_cuda, ladder, pairs, proves, question, wishes
from assistant.plan.memory import Estimate, Verdict, card_memory, estimate, judge
from assistant.plan.model_config import Shape, read_shape
from assistant.plan.nightly import NIGHTLY
from assistant.plan.pins import name_of
from assistant.plan.pythons import other_pythons, with_python_reason
from assistant.plan.recipes import make_plans, memory_warning, spelled_out
from assistant.plan.surroundings import without_overwritten

__all__ = [
    "NIGHTLY",
    "Band",
    "Estimate",
    "Lookup",
    "PlanInputs",
    "Shape",
    "Verdict",
    "bands",
    "brings_cuda",
    "card_memory",
    "card_name",
    "companions_to_find",
    "estimate",
    "explain",
    "for_other_cuda",
    "judge",
    "ladder",
    "make_plans",
    "memory_warning",
    "name_of",
    "nothing_fits",
    "other_pythons",
    "pairs",
    "proves",
    "question",
    "read_shape",
    "settle",
    "spelled_out",
    "wishes",
    "with_companions",
    "with_python_reason",
    "with_sizes",
    "without_overwritten",
]
