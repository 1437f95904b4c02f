"""Sums up the rows of `onnx_real.py` in Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from typing import Any

Row = dict[str, Any]

CLOSE = 1e-2  # of an output's largest number, and of the share of whole numbers that may change
OURS = "assistant"


def agrees(row: Row, field: str = "errors") -> bool:
    """Return whether a model ran on all inputs and came close on each."""
    return bool(row.get(field)) and len(row[field]) == row["runs"] and max(row[field]) <= CLOSE


def passes(row: Row) -> bool:
    """Return whether nothing is to be said against a converted model."""
    good = row.get("converted") and row.get("checked") and row.get("loads")
    return bool(good and agrees(row) and agrees(row, "strict_errors"))


def markdown(rows: Iterable[Row]) -> str:
    """Write a table for each group, the tools one below another, and what is asked of ours alone."""
    rows = list(rows)
    parts = []
    for group in ("real", "exported"):
        mine = [row for row in rows if row["group"] == group and row["runs"] and not row["random"]]
        if mine:
            parts += [f"### {group}", "", _table(mine), "", *_ours(mine), ""]
    return "\n".join(parts)


def _table(rows: list[Row]) -> str:
    head = (
        "Tool", "n", "converted", "full_check", "loads", "agrees", "strict", "ALL", "I/O kept", "FP16 share",
        "s, median", "s, p95", "MB, median",
    )  # fmt: skip
    lines = [f"| {' | '.join(head)} |", f"|---|{'---:|' * (len(head) - 1)}"]
    for tool in dict.fromkeys(row["tool"] for row in rows):
        some = [row for row in rows if row["tool"] == tool]
        good = sum(map(passes, some))
        cells = (
            tool, len(some), _count(some, lambda row: row.get("converted")),
            _count(some, lambda row: row.get("checked")),
            _count(some, lambda row: row.get("loads")), _count(some, agrees),
            _count(some, lambda row: agrees(row, "strict_errors")), f"**{good} ({good / len(some):.0%})**",
            _count(some, lambda row: row.get("io")), _share(some), *_seconds(some), _middle(some, "peak_mb", ".0f"),
        )  # fmt: skip
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def _count(rows: list[Row], holds: Callable[[Row], object]) -> int:
    return sum(bool(holds(row)) for row in rows)


def _share(rows: list[Row]) -> str:
    parts = [row["half"] / row["able"] for row in rows if row.get("able")]
    return f"{statistics.mean(parts):.2f}" if parts else ""


def _seconds(rows: list[Row]) -> tuple[str, str]:
    times = sorted(row["seconds"] for row in rows if row.get("converted"))
    return (f"{statistics.median(times):.2f}", f"{_late(times):.2f}") if times else ("", "")


def _middle(rows: list[Row], field: str, form: str) -> str:
    found = [row[field] for row in rows if row.get("converted") and field in row]
    return f"{statistics.median(found):{form}}" if found else ""


def _late(ordered: list[float]) -> float:
    """Return the value that 95 of 100 do not exceed."""
    return ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]


def _ours(rows: list[Row]) -> list[str]:
    mine = [row for row in rows if row["tool"] == OURS]
    wrote = [row for row in mine if row.get("converted")]
    if not wrote:
        return []
    theirs = {row["model"]: row["seconds"] for row in rows if row["tool"] == "onnxruntime" and row.get("converted")}
    ratios = sorted(row["seconds"] / theirs[row["model"]] for row in wrote if theirs.get(row["model"]))
    lines = [
        f"- `try` runs unaided: {_count(wrote, lambda row: row.get('tried'))} of {len(wrote)}",
        f"- proved by a run: {_count(wrote, lambda row: row.get('proved'))} of {len(wrote)}",
        f"- memory at most 3 × the file + 300 MB: {_count(wrote, lambda row: row.get('bounded'))} of {len(wrote)}",
    ]
    if ratios:
        lines.append(
            f"- time beside onnxruntime's converter ({len(ratios)} models): median {statistics.median(ratios):.1f}, "
            f"p95 {_late(ratios):.1f}"
        )
    return lines
