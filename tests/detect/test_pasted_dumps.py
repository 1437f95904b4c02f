"""Dumps and reports as people paste them, in every wrapping seen: after published ones, shortened, without names."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from assistant.detect import detect, read_report
from assistant.host.base import ReplayHost
from assistant.machines import load
from assistant.model.errors import BadInput
from assistant.model.machine import Vendor
from assistant.model.record import to_json


def parts(file):
    """Read the parts of a file: `=== name`, one line of what the text says, then the text."""
    text = (Path(__file__).parent / file).read_text(encoding="utf-8")
    split = (part.partition("\n") for part in re.split(r"^=== ", text, flags=re.MULTILINE)[1:])
    return {name: rest.partition("\n") for name, _end, rest in split}


DUMPS, REPORTS = parts("pasted_dumps.txt"), parts("pasted_reports.txt")
LISTINGS = parts("pasted_listings.txt")
WRAPS = (
    lambda text: text.replace("\n", "\r\n"),
    lambda text: f"It fails, see here:\n\n```\n{text}```\nThanks!\n",
    lambda text: "".join(f"    {line}\n" for line in text.splitlines()),
    lambda text: "".join(f"> {line}\n" for line in text.splitlines()),
    lambda text: text.replace(" ", "&nbsp;"),
)


def differing(what, table):
    """Return what a check says of each text of a table that it fails for."""
    found = {}
    for name, (told, _end, text) in table.items():
        try:
            what(json.loads(told), read_report(text).machine)
        except (AssertionError, BadInput) as error:
            found[name] = repr(error)
    return found


def test_all_that_a_dump_says_is_read():
    """System, WSL, Python, torch, driver and each GPU are read as a person reads them, and no more."""

    def dump(wanted, machine):
        assert machine.os == wanted.get("os")
        assert bool(machine.wsl) is wanted.get("wsl", False)
        assert machine.python == wanted["python"]
        assert machine.packages.get("torch") == wanted.get("torch")
        assert machine.nvidia_driver == wanted.get("driver")
        cards = [gpu for gpu in machine.gpus or () if gpu.vendor is not Vendor.APPLE]
        assert [gpu.name for gpu in cards] == wanted["gpus"]
        assert [gpu.gfx for gpu in cards] == wanted.get("gfx", [gpu.gfx for gpu in cards])

    assert differing(dump, DUMPS) == {}


@pytest.mark.parametrize("line_end", ["\r\n", "\r", "\n\n", "  \n", "<br>\n"])
def test_line_ends_do_not_matter(line_end):
    """Windows' and old line ends, doubled lines, blanks and HTML breaks change no fact."""
    for _told, _end, dump in DUMPS.values():
        assert read_report(dump.replace("\n", line_end)).machine == read_report(dump).machine


def test_what_tools_and_programs_say_is_read():
    """What a tool lists or a program says of its machine is read; what it does not say is not made up."""

    def report(wanted, machine):
        assert bool(machine.wsl) is wanted.get("wsl", False)
        read = {
            "driver": machine.nvidia_driver,
            "cuda": machine.cuda_driver_api,
            "torch": machine.packages.get("torch"),
        }
        for key in wanted.keys() & {"os", "arch", "python", "rosetta", *read}:
            assert read.get(key, getattr(machine, key, None)) == wanted[key]
        names = [gpu.name for gpu in machine.gpus]
        assert all(name is None or name in names for name in wanted.get("gpus", ()))
        assert len(names) == len(wanted.get("ids", wanted.get("gpus", names)))
        for key, field in (("ids", "pci_id"), ("gfx", "gfx"), ("vram", "vram_gb")):
            assert set(wanted.get(key, ())) <= {getattr(gpu, field) for gpu in machine.gpus}

    assert differing(report, REPORTS) == {}


def test_what_tools_list_is_read_in_any_shape():
    """Tables, CSV, JSON and keys of the tools that are read give each GPU once with what they say of it."""

    def listing(wanted, machine):
        read = {
            "version": machine.os_version,
            "memory": machine.memory_gb,
            "driver": machine.nvidia_driver,
            "cuda": machine.cuda_driver_api,
            "rocm": machine.rocm_version,
            "torch": machine.packages.get("torch"),
        }
        for key in wanted.keys() & {"os", "wsl", "arch", "python", *read}:
            assert read.get(key, getattr(machine, key, None)) == wanted[key]
        gpus = machine.gpus
        if "names" in wanted:
            assert sorted(gpu.name or "" for gpu in gpus) == sorted(wanted["names"])
        if "vendors" in wanted:
            assert [gpu.vendor.value for gpu in gpus] == wanted["vendors"]
        assert len(gpus) == wanted.get("count", max(len(wanted.get(key, ())) for key in ("names", "vendors", "ids")))
        for key, field in (("ids", "pci_id"), ("gfx", "gfx"), ("vram", "vram_gb")):
            assert set(wanted.get(key, ())) <= {getattr(gpu, field) for gpu in gpus}

    assert differing(listing, LISTINGS) == {}


def test_the_assistants_own_answer_is_read():
    """What `detect --json` printed is the machine again, alone or in a fence of an issue."""
    for name in ("linux-ubuntu2404-rtx4090", "windows11-rx7800xt", "macos15-m3max"):
        machine = detect(ReplayHost(load(name))).machine
        text = to_json(machine, indent=2)
        assert read_report(text).machine == machine
        assert read_report(f"Here it is:\n\n```json\n{text}\n```\nThanks!\n").machine == machine


def test_what_is_said_in_passing_alone_is_said_to_be_that():
    """Where no report is known, the answer names what was read and the command that says the rest."""
    first = read_report("OS: Windows 11\nGPU: NVIDIA GeForce RTX 4070\nPython 3.12.4").findings[0]
    assert first.key == "report-read"
    assert "gpus" in str(first.text)
    assert "assistant detect --json" in str(first.text)


@pytest.mark.parametrize("wrap", WRAPS, ids=["crlf", "fence", "indented", "quoted", "entities"])
def test_what_stands_around_a_listing_does_not_matter(wrap):
    """Windows' line ends, an issue and its fence, indentation, marks of quotation and entities change nothing."""
    changed = {
        name
        for name, (_told, _end, text) in LISTINGS.items()
        if read_report(wrap(text)).machine != read_report(text).machine
    }
    assert changed == set()
