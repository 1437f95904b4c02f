"""Dumps and reports as people paste them, in every wrapping seen: after published ones, shortened, without names."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from assistant.detect import read_report
from assistant.model.machine import Vendor


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


@pytest.mark.parametrize("name", REPORTS)
def test_what_tools_and_programs_say_is_read(name):
    """What a tool lists or a program says of its machine is read; what it does not say is not made up."""
    told, _end, text = REPORTS[name]
    wanted = json.loads(told)
    machine = read_report(text).machine
    assert bool(machine.wsl) is wanted.get("wsl", False)
    facts = {"driver": machine.nvidia_driver, "cuda": machine.cuda_driver_api, "torch": machine.packages.get("torch")}
    for key in wanted.keys() & {"os", "arch", "python", "rosetta", *facts}:
        assert facts.get(key, getattr(machine, key, None)) == wanted[key]
    names = [gpu.name for gpu in machine.gpus]
    assert all(name is None or name in names for name in wanted.get("gpus", ()))
    assert len(names) == len(wanted.get("ids", wanted.get("gpus", names)))
    for key, field in (("ids", "pci_id"), ("gfx", "gfx"), ("vram", "vram_gb")):
        assert set(wanted.get(key, ())) <= {getattr(gpu, field) for gpu in machine.gpus}


@pytest.mark.parametrize("name", LISTINGS)
def test_what_tools_list_is_read_in_any_shape(name):
    """Tables, columns, CSV, JSON, numbered lists and keys of tools give each GPU once with what is told of it."""
    told, _end, text = LISTINGS[name]
    wanted = json.loads(told)
    machine = read_report(text).machine
    facts = {
        "version": machine.os_version,
        "memory": machine.memory_gb,
        "driver": machine.nvidia_driver,
        "cuda": machine.cuda_driver_api,
        "rocm": machine.rocm_version,
        "torch": machine.packages.get("torch"),
    }
    for key in wanted.keys() & {"os", "wsl", "arch", "python", *facts}:
        assert facts.get(key, getattr(machine, key, None)) == wanted[key]
    gpus = machine.gpus
    if "names" in wanted:
        assert sorted(gpu.name or "" for gpu in gpus) == sorted(wanted["names"])
    if "vendors" in wanted:
        assert [gpu.vendor.value for gpu in gpus] == wanted["vendors"]
    assert len(gpus) == wanted.get("count", max(len(wanted.get(key, ())) for key in ("names", "vendors", "ids")))
    for key, field in (("ids", "pci_id"), ("gfx", "gfx"), ("vram", "vram_gb")):
        assert set(wanted.get(key, ())) <= {getattr(gpu, field) for gpu in gpus}


@pytest.mark.parametrize("wrap", WRAPS, ids=["crlf", "fence", "indented", "quoted", "entities"])
def test_what_stands_around_a_listing_does_not_matter(wrap):
    """Windows' line ends, an issue and its fence, indentation, marks of quotation and entities change nothing."""
    for _told, _end, text in LISTINGS.values():
        assert read_report(wrap(text)).machine == read_report(text).machine
