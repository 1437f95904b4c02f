"""Every row has a source and a day; rows that nobody has compared with their source for long are found."""

from __future__ import annotations

import json
from datetime import date, timedelta

import pytest

from assistant.catalog.ages import OLD_DAYS, old_rows
from assistant.catalog.editions import data_files, shipped_text

TABLES = {f"{name}.{title}": table for name in data_files() for title, table in json.loads(shipped_text(name)).items()}


def days_of(name: str) -> list[str]:
    """Give the day of each row of a table."""
    rows = TABLES[name]["rows"]
    return [(row.get("as_of") if isinstance(row, dict) else "") or TABLES[name]["as_of"] for row in rows]


@pytest.mark.parametrize("name", TABLES)
def test_every_row_has_a_source_and_a_day(name):
    """A table names where it was read and when; a row with a day of its own has one that is a day."""
    assert TABLES[name]["source"]
    assert days_of(name) or name == "seen.seen"  # which users fill, and so far there are none
    assert all(date.fromisoformat(day).year > 2020 for day in days_of(name))


def test_rows_count_from_their_own_day():
    """Only what is past the limit is told: nothing on a table's own day, every row of every table a year later."""
    day = date.fromisoformat(max(day for name in TABLES for day in days_of(name)))
    assert "torch.releases" not in {row.table for row in old_rows(day)}
    aged = {row.table: row for row in old_rows(day + timedelta(days=OLD_DAYS + 30))}
    assert {*aged} == {*TABLES} - {"seen.seen"}  # what happened does not grow old
    assert aged["torch.releases"].rows == len(days_of("torch.releases"))
    assert all(row.days > OLD_DAYS for row in aged.values())
    some = next(row for row in old_rows(day) if row.table == "companions.companions")
    assert 0 < some.rows < aged["companions.companions"].rows
    assert some.as_of == aged["companions.companions"].as_of
