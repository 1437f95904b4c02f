"""No command names a distribution that neither the text nor a table names, whatever broke the text's lines."""

from __future__ import annotations

import random
import re

import pytest
from diagnose.logs import invented, rows
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.diagnose import diagnose
from assistant.model.machine import Machine
from assistant.model.record import from_plain

_NAMES = re.compile(r"requires|depends on|distribution|install|import|wheel|version|undefined symbol")
TEXTS = [
    row
    for table in ("cases", "answers", "rounds")
    for row in rows(table)
    if _NAMES.search(row["log"]) and "fault" not in row
]


def cut(text: str, width: int) -> tuple[str, str]:
    """Cut lines, and names in them, as a narrow terminal does; what was pasted is the text as it was."""
    return "\n".join(line[at : at + width] for line in text.split("\n") for at in range(0, len(line) or 1, width)), text


def joined(text: str, seed: int) -> tuple[str, str]:
    """Break and join one line in five somewhere, with a space or none between them; nothing else was pasted."""
    dice = random.Random(seed)  # noqa: S311 - no secret
    by = dice.choice([" ", ""])
    changed = re.sub(r"[ \n]", lambda old: (by if old[0] == "\n" else "\n") if dice.random() < 0.2 else old[0], text)
    return changed, changed


@pytest.mark.parametrize("many", [200, pytest.param(5000, marks=pytest.mark.full)])
@pytest.mark.parametrize("broken", [cut, joined])
def test_broken_lines_invent_no_distribution(broken, many: int) -> None:
    """Each name in a command is a whole one of the text."""

    @given(st.sampled_from(TEXTS), st.integers(30, 160))
    @settings(max_examples=many, deadline=None)
    def every_name_was_pasted(row: dict, how: int) -> None:
        changed, pasted = broken(row["log"], how)
        assert not invented(diagnose(changed, from_plain(row.get("machine", {}), Machine, "row")), pasted)

    every_name_was_pasted()
