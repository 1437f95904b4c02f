"""Real requirement sets on real kinds of machines, a part of what `tests/benchmarks/joint_decision.py` judges."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from addons.projects.joint.cases import read_expected, read_machines, read_sets
from addons.projects.joint.judge import GOOD, Judge, judge

EXPECTED, SETS = read_expected(), {one.name: one for one in read_sets()}
MACHINES = {one.name: one for one in read_machines()}
# One of each kind: an easy set, a pin of torch, torch pulled down, code missing for the card, another Python, a set
# that is older with a newer torch, a wheel for one system alone, a contradiction, a name that no index has, a
# misspelt one, and one that another Python would open but for what comes only as source.
CASES = (
    ("comfyui-2025-10", "linux-rtx4090"),
    ("nanochat", "linux-gtx1080"),
    ("whisperx-3.8.6", "windows-rtx5090"),
    ("xformers-0.0.29.post3", "windows-rtx5090"),
    ("xformers-0.0.29.post3", "linux-rtx4090"),
    ("unsloth", "linux-rtx4090"),
    ("vllm", "macos-m3max"),
    ("mismatched-pair", "linux-cpu"),
    ("no-such-name", "linux-cpu"),
    ("misspelt-transformers", "linux-rx7900xtx"),
    ("metricx", "linux-rtx4090"),
)


@pytest.fixture(scope="module")
def judging() -> Iterator[Judge]:
    """Serve the indexes while the cases are planned."""
    with judge() as made:
        yield made


@pytest.mark.process
@pytest.mark.parametrize(("name", "box"), CASES)
def test_a_real_set_is_planned_right_or_refused_with_a_proof(judging: Judge, name: str, box: str) -> None:
    """The plan is the build that brute force found, and uv resolves all it names; a refusal names what is asked for."""
    result = judging.result(MACHINES[box], SETS[name], EXPECTED[box, name], rounds=0)
    assert result.verdict in GOOD, result.why
