"""Parsers answer a value or None whatever they are given, in time proportional to the text."""

from __future__ import annotations

import contextlib
import inspect
import pkgutil
import random
import time
from collections import deque
from collections.abc import Iterator
from importlib import import_module

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import each

from assistant import parsers
from assistant.detect import read_report
from assistant.machines import load, shipped
from assistant.model.errors import BadInput
from assistant.model.record import to_json


def readers():
    """Return each public function of the parsers that reads one text."""
    for place in pkgutil.iter_modules(parsers.__path__, f"{parsers.__name__}."):
        for name, found in vars(import_module(place.name)).items():
            if inspect.isroutine(found) and found.__module__ == place.name and not name.startswith("_"):
                parameters = inspect.signature(found).parameters.values()
                if [one.annotation for one in parameters if one.default is one.empty] == ["str"]:
                    yield found


READERS = tuple(readers())

PIECES = """PyTorch version: 2.5
OS: Ubuntu
Is debug build: No
Python version: 3.1
GPU models and configuration:
GPU 0: X
NVIDIA-SMI 580 Driver Version: 5.5
|   0  X  Off | 0000:01:00.0 Off |
NVSMI LOG
GPU 0000:01:00.0
Product Name : X
HSA Agents
*******
Agent 1
Device Type: GPU
Name: gfx90a
Size: 9 KB
---------------
Display Devices
Card name: X
Device Key: PCI\\VEN_10DE&DEV_2206
Graphics/Displays:
    X:
      Chipset Model: X
{"SPDisplaysDataType":[
{}
]}
{"gpu_data":[{"gpu":0,"asic":{"device_id":"0x744c"},"vram":{"size":{"value":9}}}
{"device_list":[{"pci_bdf_address":"0000:03:00.0","device_id":0}]}
GPU[0]		: Card Series: 		X
"card0": {"Card Model": "0x744c"}
01:00.0 VGA compatible controller [0300]: X [10de:2684] (rev a1)
GPU 0: Tesla T4 (UUID: GPU-0
Tesla T4, 535.104.05, 15360 MiB
- **PyTorch Version:** 2.6.0+cu126
- **Name:** cuda:0 NVIDIA X : native
GPU 0,1: NVIDIA X
gfx_target_version 110000
simd_count 9
    DriverDesc    REG_SZ    X
>>> import torch as t
>>> t.__version__, [t]
('2.1', [0])
PCI_ID=10DE:2684
PCI_CLASS=30000
""".splitlines(keepends=True)
HOSTILE = ["\u202e", "\x1b[31m", "\r", "\x00"]
texts = st.one_of(st.text(max_size=300), st.lists(st.sampled_from(PIECES + HOSTILE), max_size=25).map("".join))


@pytest.mark.parametrize(
    "reader", READERS, ids=lambda reader: f"{reader.__module__.rpartition('.')[2]}.{reader.__name__}"
)
@settings(max_examples=60, deadline=None)
@given(text=texts)
def test_a_reader_never_raises(reader, text):
    """Random text and shuffled pieces of real reports give a value or None."""
    read(reader, text)


def read(reader, text):
    """Let a reader read it all; some answer piece by piece."""
    if isinstance(answer := reader(text), Iterator):
        deque(answer, maxlen=0)


@settings(max_examples=150, deadline=None)
@given(text=texts, data=st.data())
def test_a_report_is_read_or_refused(text, data):
    """Whatever is pasted gives a machine that JSON can hold, or bad input; nothing else."""
    answers = [said.answer.text for said in load(data.draw(st.sampled_from(shipped()))).said if said.answer.text]
    answer = data.draw(st.sampled_from(answers))
    cut = data.draw(st.integers(0, len(answer)))
    try:
        to_json(read_report(answer[:cut] + text + answer[cut:]).machine)
    except BadInput as refused:
        assert refused.message  # noqa: PT017 - either way out is right


REPEATED = (
    "x",
    "-",
    " ",
    "\n",
    "|",
    "> - * PyTorch version",
    "PyTorch version: 1\n",
    "PyTorch version: 1\nOS: x\nPython version: 3\nIs debug build: No\n[pip3] a==1\n",
    "NVIDIA-SMI |   0  " + "a " * 20,
    "GPU 00000000:01:00.0\n",
    "HSA Agents\n*******\nAgent 1\n*******\nDevice Type: GPU\nName: " + " " * 50,
    "-----\nDisplay Devices\n-----\n Card name: X\n",
    "Graphics/Displays:\n    X:\n      Chipset Model: X\n",
    '{"SPDisplaysDataType":[',
    "NVSMI LOG Product Name " + " " * 30,
    "\n> &gt;",
    "HSA Agents\n*******\nAgent 1\n*******\nDevice Type: GPU\nName:" + " " * 10**6,
    "HSA Agents\n*******\nAgent 1\n*******\nDevice Type: GPU\nName" + " " * 10**6,
    "PyTorch version: 1\nGPU 0: " + "a" * 10**5,
    "OS" + " " * 10**5,
    "01:00.0 VGA compatible controller [0300]: X [10de:2684]\n\t",
    "GPU[0]\t\t: Card Series: \t\tX\n",
    "- **PyTorch Version:** 2.6\n- **Python Version:** 3.1\nOS: nt\nGPU 0,1,: NVIDIA\n",
    "NVIDIA Tesla T4, 1, ",
)


@each("unit", REPEATED, ids=lambda unit: repr(unit[:24]))
def test_a_longer_report_is_read_in_linear_time(unit):
    """Ten times as long a text takes some ten times as long; what is quadratic takes a hundred times, each time."""
    for fewer in range(3):  # a machine may stand still for a moment, and what was just read may be remembered
        short, longer = (seconds(unit, length - fewer) for length in (10**4, 10**5))
        if longer < 20 * max(short, 0.02):
            return
    pytest.fail(f"{longer:.2f} s for ten times of what takes {short:.2f} s")


@pytest.mark.full
@pytest.mark.parametrize("most", [10**6, 10**7], ids=["1 MB", "10 MB"])
@each("unit", REPEATED, ids=lambda unit: repr(unit[:24]))
def test_megabytes_are_read_in_linear_time(unit, most):
    """So many times as long a text takes at most so many times as long, and a little."""
    longer, longest = (seconds(unit, length) for length in (10**5, most))
    assert longest < most / 10**5 * max(longer, 0.1)


def seconds(unit, length):
    """Tell how long the processor works on a report of a fragment repeated up to a length."""
    text = (unit * (length // len(unit) + 1))[:length]
    started = time.thread_time()
    with contextlib.suppress(BadInput):
        read_report(text)
    return time.thread_time() - started


@pytest.mark.heavy
@pytest.mark.parametrize(
    "reader", READERS, ids=lambda reader: f"{reader.__module__.rpartition('.')[2]}.{reader.__name__}"
)
def test_a_hundred_thousand_mutations(reader):
    """Real answers with characters dropped, doubled, swapped or spliced give a value or None, 10**5 times over."""
    chance = random.Random(7)  # noqa: S311 - repeatable noise, not a secret
    seeds = [said.answer.text for name in shipped() for said in load(name).said if said.answer.text] + PIECES
    for _round in range(10**5):
        read(reader, mutated(chance, chance.choice(seeds), chance.choice(seeds)))


def mutated(chance, text, other):
    """Splice two texts and damage up to five places."""
    letters = list(text[: chance.randrange(400)] + other[chance.randrange(len(other)) :][:400])
    for _place in range(chance.randrange(6)):
        if letters:
            at = chance.randrange(len(letters))
            letters[at : at + chance.randrange(3)] = chance.choices(
                "\x00\n\r :|=()[]{}0xé\u202e9", k=chance.randrange(3)
            )
    return "".join(letters)
