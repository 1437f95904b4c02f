"""Every machine that is shipped replays to what its own file expects, on any system."""

from __future__ import annotations

import pytest
from machines.replays import faults

from assistant.detect import detect
from assistant.host.recording import ReplayHost
from assistant.machines import label, load, shipped
from assistant.model.errors import BadInput
from assistant.model.record import to_json


@pytest.fixture(params=shipped())
def name(request):
    """Give the name of each shipped machine in turn."""
    return request.param


def test_the_file_is_whole_and_its_replay_is_what_it_expects(name):
    """Facts, findings and plan are those of its `expect`; it says where it is from, and holds nothing private.

    What is kept of each answer when it is recorded anew is all that detection reads.
    """
    assert list(faults(load(name), name)) == []


def test_a_replay_always_gives_the_same_text(name):
    """Replaying twice gives byte-identical JSON."""
    recording = load(name)
    assert to_json(detect(ReplayHost(recording)).machine) == to_json(detect(ReplayHost(recording)).machine)


def test_each_vendor_and_system_is_shipped():
    """At least forty machines are shipped, and each vendor, system and architecture is among them."""
    machines = [detect(ReplayHost(load(name))).machine for name in shipped()]
    assert len(machines) >= 40
    assert {machine.os for machine in machines} == {"linux", "windows", "macos"}
    assert {gpu.vendor.value for machine in machines for gpu in machine.gpus} >= {"nvidia", "amd", "intel", "apple"}
    majors = {(gpu.compute_capability or "").partition(".")[0] for machine in machines for gpu in machine.gpus}
    assert majors >= {"3", "5", "6", "7", "8", "9", "10", "12"}


def test_people_choose_by_label():
    """Each label is told once, so that a list of labels can be chosen from."""
    labels = [label(name) for name in shipped()]
    assert len(set(labels)) == len(labels)


def test_an_unknown_name_is_one_clear_sentence():
    """A name that is not shipped is bad input that lists the names."""
    with pytest.raises(BadInput, match="no shipped machine named x") as raised:
        load("x")
    assert shipped()[0] in str(raised.value.hint)
