"""The test command stays quick: what its last whole run cost in processor time."""

from __future__ import annotations

import pytest
from cpu_seconds import CACHE_KEY

ALL_SECONDS = 1000
FILE_SECONDS = 60


def test_a_whole_run_costs_little(pytestconfig):
    """Ten minutes on two cores: the sum and the dearest file of the last run of `python3 start.py test` here."""
    by_file = pytestconfig.cache.get(CACHE_KEY, None)
    if by_file is None:
        pytest.fail("No figures yet: run `python3 start.py test` once, then this again.", pytrace=False)
    assert {file: round(seconds) for file, seconds in by_file.items() if seconds > FILE_SECONDS} == {}
    assert sum(by_file.values()) <= ALL_SECONDS
