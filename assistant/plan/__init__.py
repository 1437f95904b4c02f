"""From a machine and the catalogue to plans: pure, explained, and honest about what would help."""

from __future__ import annotations

from assistant.plan.explain import explain, nothing_fits
from assistant.plan.planner import make_plans

__all__ = ["explain", "make_plans", "nothing_fits"]
