"""What the terminal shows can be read and copied in any width: no word, path or address is broken in its midst."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each
from terminals import can_be_read_when_narrow

from assistant.cli.draw import column_widths, fold_command
from assistant.cli.terminal import columns, fold_lines

pytestmark = pytest.mark.full

WORDS = st.text("ab/=,.。，中文字：· ✓1", max_size=120)


@given(WORDS, st.integers(10, 90))
def test_nothing_is_lost_or_too_long(text: str, width: int) -> None:
    """Folded lines hold the same signs in the same order; only a piece that has no place to be broken is too long."""
    lines = list(fold_lines(text, width))
    assert "".join("".join(lines).split()) == "".join(text.split())
    for line in lines:
        assert columns(line.rstrip()) <= width or re.fullmatch(r"\s*([✓·] +|1\. )?[^\s中文字：。，]*[：。，]*", line), (
            line
        )


@each(
    ("text", "width", "shown"),
    [
        ("! its program /tmp/env/bin/python is gone", 30, ["! its program", "  /tmp/env/bin/python is gone"]),
        (
            "    · it is at /home/ada/environments/torch/bin/python3.12",
            40,
            ["    · it is at", "      /home/ada/environments/torch/bin/python3.12"],
        ),
        (
            "  2. see https://example.org/a/very/long/page",
            30,
            ["  2. see", "     https://example.org/a/very/long/page"],
        ),
        ("内核无法启动：它的程序已不存在，请重新安装。", 24, ["内核无法启动：它的程序已", "不存在，请重新安装。"]),
        ("", 30, [""]),
    ],
)
def test_a_line_goes_on_below_what_it_says(text: str, width: int, shown: list[str]) -> None:
    """Behind its sign; a path or an address moves as a whole, and no line begins with a comma."""
    assert list(fold_lines(text, width)) == shown


@pytest.mark.skipif(os.name == "nt", reason="there a command stays one line")
@given(st.lists(st.text("ab-/ '\"$", min_size=1, max_size=30), min_size=1, max_size=9), st.integers(20, 90))
def test_a_command_of_several_lines_is_the_same_command(words: list[str], width: int) -> None:
    """A shell that reads them gets the same words."""
    lines = list(fold_command(shlex.join(words), width))
    assert shlex.split("\n".join(lines).replace("\\\n", "")) == words


def test_columns_share_what_there_is_and_break_no_word() -> None:
    """The widest give way; where words would have to be broken there is no layout."""
    rows = [["Check", "Result"], ["Solve linear systems with shared right-hand sides", "passed"]]
    assert column_widths(rows, 60) == [49, 6]
    narrow = column_widths(rows, 30)
    assert narrow is not None
    assert sum(narrow) <= 30
    assert narrow[1] == 6
    assert column_widths(rows, 12) is None


COMMANDS = {
    "plan": ("plan", "--replay", "windows11-rx7800xt"),
    "why": ("plan", "--replay", "linux-ubuntu2404-rtx4090", "--why"),
    "detect": ("detect", "--replay", "linux-mint22-laptop-780m-rtx4070"),
    "doctor": ("doctor", "--replay", "linux-arch-rx6700xt-directml"),
    "refusal": ("verify", "--target", "/a/folder/that/is/nowhere/on/this/machine/and/has/a/long/name/indeed"),
}


@pytest.mark.process
@pytest.mark.parametrize("language", ["en", "zh_CN"])
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_can_be_read_in_a_narrow_terminal(name: str, language: str, tmp_path: Path) -> None:
    """At 80 and 60 columns each word of the wide output stands whole, and nothing but an address is too long."""
    can_be_read_when_narrow(COMMANDS[name], language, tmp_path)
