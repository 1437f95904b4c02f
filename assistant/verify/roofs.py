"""The most that a device can reach: what its vendor publishes, and where nothing is known, the best of the run."""

from __future__ import annotations

from assistant.catalog.limits import limits_of
from assistant.model.report import Report
from assistant.model.speed import Limit

__all__ = ["roofs"]


def roofs(report: Report) -> dict[str, Limit]:
    """Give the limits of memory and of each type of a device whose speed was measured."""
    seen = {speed.dtype: speed.flops / speed.best for key, speed in report.speeds.items() if "matmul" in key}
    copying = report.speeds.get("speed.bandwidth")
    if copying is not None:
        seen["bandwidth"] = copying.bytes / copying.best
    measured = {name: Limit(value=most / 1e9) for name, most in seen.items()}
    size = report.facts.get("device memory", "").partition(" GiB")[0]
    published = limits_of(report.facts.get("device name", ""), float(size) if size else None)
    return measured | published if measured else {}
