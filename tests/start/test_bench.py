"""`python3 start.py bench` runs benchmarks by name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process
BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def test_an_unknown_name_is_refused_with_those_there_are():
    """One sentence, exit code 2, and every benchmark by its name."""
    done = subprocess.run([sys.executable, BENCHMARKS, "nothing"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    names = {file.stem for file in BENCHMARKS.glob("*.py")} - {"__main__"}
    assert all(name in done.stderr for name in names)


def test_a_benchmark_runs_alone():
    """Its figures are printed, and its exit code is the answer."""
    done = subprocess.run([sys.executable, BENCHMARKS, "plan_machines"], capture_output=True, text=True, check=False)
    assert "processor time" in done.stdout, done.stderr
