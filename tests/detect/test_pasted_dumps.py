"""Dumps as people paste them, in every wrapping seen: shortened copies of published ones, without names of people."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from assistant.detect import read_report
from assistant.model.machine import Vendor

# Each part: `=== name`, one line of what the dump says, then the dump.
PARTS = re.split(r"^=== ", (Path(__file__).parent / "pasted_dumps.txt").read_text(encoding="utf-8"), flags=re.MULTILINE)
DUMPS = {name: rest.partition("\n") for name, _end, rest in (part.partition("\n") for part in PARTS[1:])}


@pytest.mark.parametrize("name", DUMPS)
def test_all_that_a_dump_says_is_read(name):
    """System, WSL, Python, torch, driver and each GPU are told as a person reads them, and no more."""
    told, _end, dump = DUMPS[name]
    wanted = json.loads(told)
    machine = read_report(dump).machine
    assert machine.os == wanted.get("os")
    assert bool(machine.wsl) is wanted.get("wsl", False)
    assert machine.python == wanted["python"]
    assert machine.packages.get("torch") == wanted.get("torch")
    assert machine.nvidia_driver == wanted.get("driver")
    cards = [gpu for gpu in machine.gpus or () if gpu.vendor is not Vendor.APPLE]
    assert [gpu.name for gpu in cards] == wanted["gpus"]
    assert [gpu.gfx for gpu in cards] == wanted.get("gfx", [gpu.gfx for gpu in cards])


@pytest.mark.parametrize("line_end", ["\r\n", "\r", "\n\n", "  \n", "<br>\n"])
def test_line_ends_do_not_matter(line_end):
    """Windows' and old line ends, doubled lines, blanks and HTML breaks change no fact."""
    for _told, _end, dump in DUMPS.values():
        assert read_report(dump.replace("\n", line_end)).machine == read_report(dump).machine
