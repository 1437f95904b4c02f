"""Every machine that is shipped replays to what its own file expects, on any system."""

from __future__ import annotations

import pytest
from recorded import recorded

from assistant.machines import label, load, shipped
from assistant.model.errors import BadInput


def test_each_vendor_and_system_is_shipped():
    """At least forty machines are shipped, and each vendor, system and architecture is among them."""
    machines = [recorded(name).machine for name in shipped()]
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
