"""Real requirement sets on six machines beside the right answers: `python tests/benchmarks/joint_decision.py`.

Each case is planned as `assistant plan --machine` plans it, with a real uv, against indexes on loopback with real
names and real metadata, and compared with the answer that was found by brute force and looked through by a person
(`world.py` and `cases.py` in `tests/addons/projects/joint`). A plan counts when it is the expected build and uv,
asked anew and as the installation asks it, resolves all that it names; a refusal counts when none was possible and its
words name what the set asks for. uv's own time for the same set, by `uv pip compile` from PyPI's index, is measured
beside ours, both with a warm cache. The limit on time is for what uv alone resolves, too: a refusal also looks for what
would help.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
from collections import Counter
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).parents[1]))
from addons.projects.joint.judge import GOOD, Result, chosen, judge

LIMIT_RIGHT, LIMIT_TIME = 0.98, 1.2  # chosen


def main(arguments: list[str]) -> int:
    """Print every miss, then the sums; answer 1 where a limit is missed."""
    parser = argparse.ArgumentParser(description="Judge the assistant's plans for real requirement sets.")
    parser.add_argument("names", nargs="*", help="sets and machines (default: all)")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="take each Nth case")
    parser.add_argument("--json", action="store_true", help="print one line for each case")
    given = parser.parse_args(arguments)
    results = []
    with judge() as made:
        for box, wanted, expected in itertools.islice(chosen(given.names), 0, None, given.every):
            result = made.result(box, wanted, expected)
            results.append(result)
            if given.json:
                print(msgspec.json.encode(result._asdict()).decode(), flush=True)
            elif result.verdict not in GOOD:
                print(f"{result.verdict}: {result.case}: {result.why}{' (uv does better)' * result.worse}", flush=True)
    return summed_up(results)


def summed_up(results: list[Result]) -> int:
    """Print the sums; answer 1 where a limit is missed."""
    counts = Counter(result.verdict for result in results)
    good = sum(counts[verdict] for verdict in GOOD)
    worse = sum(result.worse for result in results)
    runs = Counter(result.runs for result in results)
    print(f"{len(results)} cases: {', '.join(f'{count} {verdict}' for verdict, count in counts.most_common())}")
    print(f"installable and right, or refused with a proof: {100 * good / len(results):.1f} %; worse than uv: {worse}")
    print(f"unknown names planned: {counts['unknown name planned']}")
    both = [result for result in results if result.uv_solved]
    kept = timed("what uv alone resolves, too", both)
    timed("what uv alone finds nothing for", [result for result in results if not result.uv_solved])
    planned = [result for result in both if result.lines]
    own, lines = sum(result.ours for result in planned), sum(result.lines for result in planned)
    if lines:
        print(f"{len(planned)} of them planned: ours {own:.1f} s, uv for all that the plans name {lines:.1f} s", end="")
        print(f", ratio {own / lines:.2f}")
    print("runs of uv per case: " + ", ".join(f"{number}: {count}" for number, count in sorted(runs.items())))
    return int(good < LIMIT_RIGHT * len(results) or worse > 0 or counts["unknown name planned"] > 0 or not kept)


def timed(what: str, results: list[Result]) -> bool:
    """Print the seconds of some cases; tell whether ours keep the limit."""
    if not results:
        return True
    ours, uv = [result.ours for result in results], [result.uv for result in results]
    ratio = sum(ours) / sum(uv)
    print(f"{what}, {len(results)} cases: ours {sum(ours):.1f} s, uv {sum(uv):.1f} s, ratio {ratio:.2f}", end="; ")
    print(f"medians {statistics.median(ours):.2f} s and {statistics.median(uv):.2f} s")
    return ratio <= LIMIT_TIME


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
