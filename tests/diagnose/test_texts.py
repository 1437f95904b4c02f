"""Whole texts as people post them, labelled by what really helped: how often the first cause is right.

texts.jsonl was written from issues by somebody who had not seen the program. At first sight it had 122 of 175 right.
Each row names its source, the causes that are right (the best first, none for a clean text), and the real remedy.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from assistant.diagnose import read_log
from assistant.model.finding import Diagnosis
from assistant.model.machine import Machine
from assistant.model.record import from_plain
from assistant.session.diagnosis import find_causes

ROWS = [json.loads(line) for line in Path(__file__).with_name("texts.jsonl").read_text("utf-8").splitlines()]


@cache
def answers() -> tuple[Diagnosis | None, ...]:
    """Return the first diagnosis of each row."""
    found = []
    for row in ROWS:
        log, machine = read_log(row["log"]), from_plain(row["machine"], Machine, row["id"])
        found.append(next(iter(find_causes(log, machine)), None))
    return tuple(found)


def share(rows: list[bool]) -> float:
    """Return how many of some rows are right."""
    return sum(rows) / len(rows)


def test_the_first_cause_is_right_for_nine_in_ten() -> None:
    """Of what programs print and of what people tell, in both languages."""
    for lang in ("en", "zh"):
        for prose in (False, True):
            right = [
                bool(found and found.key in row["keys"])
                for row, found in zip(ROWS, answers(), strict=True)
                if row["keys"] and (row["lang"], row["prose"]) == (lang, prose)
            ]
            assert share(right) >= 0.88, (lang, prose, len(right))


def test_texts_without_trouble_are_left_alone() -> None:
    """Questions, success and wishes get no cause."""
    assert [row["id"] for row, found in zip(ROWS, answers(), strict=True) if not row["keys"] and found] == []


def test_confidence_says_how_often_it_is_right() -> None:
    """In each band the share of right answers is at least its lower end."""
    for low, high in ((0.7, 0.8), (0.8, 0.9), (0.9, 1.01)):
        band = [
            found.key in row["keys"]
            for row, found in zip(ROWS, answers(), strict=True)
            if found and low <= found.confidence < high
        ]
        assert share(band) >= low, (low, len(band))
