"""The most that a device can reach: what its vendor publishes, and where nothing is known, the best of the run."""

from __future__ import annotations

from assistant.catalog.limits import limits_of
from assistant.model.report import Report
from assistant.model.speed import Limit


def roofs(report: Report) -> dict[str, Limit]:
    """Give the limits of memory and of each type of a device whose speed was measured."""
    seen: dict[str, float] = {}
    for speed in report.speeds.values():
        if speed.flops:
            seen[speed.dtype] = max(seen.get(speed.dtype, 0.0), speed.flops / speed.best)
    copying = report.speeds.get("speed.bandwidth")
    if copying is not None:
        seen["bandwidth"] = copying.bytes / copying.best
    measured = {name: Limit(value=most / 1e9) for name, most in seen.items()}
    size = report.facts.get("device memory", "").partition(" GiB")[0]
    published = limits_of(report.facts.get("device name", ""), float(size) if size else None)
    return measured | published if measured else {}
