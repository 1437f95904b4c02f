"""VS Code's tasks, held to its schema."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from export.setups import BOARDS

pytestmark = [pytest.mark.process, pytest.mark.full]

SCHEMA = json.loads(Path(__file__).with_name("vscode_tasks.schema.json").read_text("utf-8"))


def tasks_of(folder: Path) -> list[dict[str, object]]:
    """Read the tasks below the comment, after a look whether VS Code takes them."""
    text = (folder / ".vscode" / "tasks.json").read_text("utf-8")
    found = json.loads(text.partition("\n")[2])
    jsonschema.validate(found, SCHEMA, jsonschema.Draft7Validator, format_checker=jsonschema.FormatChecker())
    return found["tasks"]


@pytest.mark.parametrize("name", BOARDS)
def test_the_tasks_are_what_vs_code_takes(exports: dict[str, Path], name: str) -> None:
    """Every key is known to it; no path names a home folder; the configuration that is checked lies beside them."""
    for task in tasks_of(exports[name]):
        assert task["args"][:2] == ["check", "${workspaceFolder}/assistant.toml"]
        assert "jane" not in json.dumps(task)
        first, loop = task["problemMatcher"]["pattern"]
        # What VS Code's ProblemPatternParser asks beyond the schema: the kind first, a file and a message, a last loop.
        assert (first["kind"], "file" in first, "message" in loop, loop["loop"]) == ("file", True, True, True)
    assert (exports[name] / "assistant.toml").is_file()
