"""VS Code's tasks: by its schema, and with a problem matcher that finds what `assistant check` prints."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from export.setups import BOARDS

pytestmark = [pytest.mark.process, pytest.mark.full]

SCHEMA = json.loads(Path(__file__).with_name("vscode_tasks.schema.json").read_text("utf-8"))
OTHER = "linux-ubuntu2404-rtx4090"
COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")  # VS Code matches what its terminal shows


def tasks_of(folder: Path) -> list[dict[str, object]]:
    """Read the tasks below the comment, after a look whether VS Code takes them."""
    text = (folder / ".vscode" / "tasks.json").read_text("utf-8")
    found = json.loads(text.partition("\n")[2])
    jsonschema.validate(found, SCHEMA, jsonschema.Draft7Validator, format_checker=jsonschema.FormatChecker())
    return found["tasks"]


def problems(patterns: list[dict[str, object]], lines: list[str]) -> list[tuple[str, str]]:
    """Find file and message of each problem as `MultiLineMatcher` of VS Code's problemMatcher.ts does."""
    first, loop = (re.compile(str(pattern["regexp"])) for pattern in patterns)
    found, file = [], ""
    for before, line in zip(["", *lines], lines, strict=False):
        begins, here = first.search(before), loop.search(line)
        file = begins[patterns[0]["file"]] if begins and here else file if here else ""
        if file:
            found.append((file.strip(), here[patterns[1]["message"]].strip()))
    return found


def shown(command: list[str], environment: dict[str, str]) -> list[str]:
    """Run a command in a terminal of 40 columns, as far as the system has any; give the lines that it shows."""
    if sys.platform == "win32":
        done = subprocess.run(command, env=environment, capture_output=True, text=True, encoding="utf-8", check=False)
        return done.stdout.splitlines()
    import fcntl  # noqa: PLC0415 - not on Windows
    import pty  # noqa: PLC0415
    import struct  # noqa: PLC0415
    import termios  # noqa: PLC0415

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    child = subprocess.Popen(command, env=environment, stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL)
    os.close(theirs)
    pieces = []
    try:
        while piece := os.read(ours, 65536):
            pieces.append(piece)
    except OSError:  # Linux: nobody holds the other end any more
        pass
    os.close(ours)
    assert child.wait() == 1
    return COLOURS.sub("", b"".join(pieces).decode()).replace("\r\n", "\n").splitlines()


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


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_each_difference_becomes_a_problem_of_the_configuration(exports: dict[str, Path], language: str) -> None:
    """Whole, in either language, however narrow the panel is."""
    name = next(one for one in BOARDS if one != OTHER)
    config = str(exports[name] / "assistant.toml")
    task = tasks_of(exports[name])[0]
    command = [sys.executable, "-m", "assistant", "--lang", language, "check", config, "--replay", OTHER]
    environment = {**os.environ, **task["options"]["env"], "TERM": "xterm-256color"}
    told = subprocess.run([*command, "--json"], env=environment, capture_output=True, check=False)
    drift = json.loads(told.stdout)["drift"]
    assert {one["kind"] for one in drift} == {"driver", "system", "gpu"}
    found = problems(task["problemMatcher"]["pattern"], shown(command, environment))
    assert found == [(config, one["text"]) for one in drift]
