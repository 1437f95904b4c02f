"""A newcomer adds a rule and a machine by doing literally what the page says."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import forked
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "contributing.md"
BLOCK = re.compile(
    r"(?:Save this as `(?P<file>[\w.-]+)`:\n\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL
)


def followed(title: str, folder: Path) -> list[str]:
    """Do what the code blocks of a section say, in an empty folder and an empty home; return what was printed."""
    section = PAGE.read_text("utf-8").partition(f"## {title}\n")[2].partition("\n## ")[0]
    places = {name: str(folder / "home") for name in ("HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")}
    printed, edited = [], ""
    for block in BLOCK.finditer(section):
        text = block["text"]
        if block["kind"] == "console" and "failure.log" not in text:  # the last one is of a log of one's own
            for line in text.splitlines():
                words = shlex.split(line.removeprefix("$ assistant "))
                edited = next((word for word in words if word.endswith(".json")), edited)
                done = forked.run(*words, cwd=folder, env={**os.environ, **places, "LANGUAGE": "en"})
                assert done.returncode == 0 or words[0] == "doctor", f"{line}\n{done.stdout}\n{done.stderr}"
                printed.append(done.stdout)
        elif block["kind"] == "diff":
            for old, new in zip(text.splitlines()[::2], text.splitlines()[1::2], strict=True):
                before = (folder / edited).read_text("utf-8")
                assert before.count(old[1:]) == 1
                (folder / edited).write_text(before.replace(old[1:], new[1:]), "utf-8")
        elif block["file"]:
            (folder / block["file"]).write_text(text, "utf-8")
    return printed


@pytest.mark.process
def test_a_rule_is_added_by_following_the_page(tmp_path: Path) -> None:
    """The template is written, the page's own rule lacks nothing, and the diagnosis and the doctor know it."""
    made, tested, diagnosed, _doctor = followed("Add a rule", tmp_path)
    assert "vpn-cuts-downloads.toml" in made
    assert "Nothing is missing" in tested
    assert diagnosed.startswith("✗ The university's VPN cut the download")


@pytest.mark.process
def test_a_machine_is_added_by_following_the_page(tmp_path: Path) -> None:
    """It is recorded, labelled, and its replay gives what its file expects."""
    _recorded, tested = followed("Add a machine", tmp_path)
    assert "gives all that the file expects" in tested
    assert '"findings": [' in (tmp_path / "classroom-pc.json").read_text("utf-8")
