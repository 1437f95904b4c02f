"""Requirement files and environments of real projects are read line by line as a person reads them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assistant.i18n import render
from assistant.model.errors import BadInput
from assistant_addons.projects.read import read_project

# What 32 repositories ask for, with source and date; comments are cut, and of the file with hashes five packages are
# kept. `expect` was written by hand before the reader had seen any of them; `told` are parts of the sentences.
SETS = json.loads(Path(__file__).with_name("sets.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", SETS, ids=[row["name"] for row in SETS])
def test_a_real_project_is_read(row: dict, tmp_path: Path) -> None:
    """Requirements, overrides and the range of Pythons are those that stand there; what is left out is told."""
    for name, text in row["files"].items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    expect = row["expect"]
    if expect.get("refused"):
        with pytest.raises(BadInput):
            read_project(str(tmp_path / row["path"]))
        return
    found = read_project(str(tmp_path / row["path"]))
    told = [f"{render(text)} {dict(text.params).get('option', '')}" for text in found.left_out]
    assert list(found.requires) == expect["requires"]
    assert list(found.overrides) == expect.get("overrides", [])
    assert found.pythons == expect.get("pythons", "")
    assert found.constraints == found.indexes == found.links == ()
    expected = [words for words in expect["told"] if words.rpartition("/")[2] not in found.builds]  # torch's indexes
    assert [words for words in expected if not any(words in sentence for sentence in told)] == []
    assert len(told) == len(expected), told
