"""Every machine that is shipped replays to what its own file expects, on any system."""

from __future__ import annotations

import json
import re

import pytest

from assistant.catalog import load_catalog
from assistant.detect import detect
from assistant.host.recording import RecordingHost, ReplayHost, read_recording, write_recording
from assistant.machines import label, load, shipped
from assistant.model.errors import BadInput
from assistant.model.finding import Severity
from assistant.model.record import to_json
from assistant.plan import make_plans
from assistant.privacy import redact
from assistant.session.doctor import judged


def part_of(expected, found) -> bool:
    """Tell whether all that is expected is found: keys of objects, and lists item by item."""
    if isinstance(expected, dict):
        return isinstance(found, dict) and all(part_of(value, found.get(key)) for key, value in expected.items())
    if isinstance(expected, list):
        return isinstance(found, list) and len(expected) == len(found) and all(map(part_of, expected, found))
    return expected == found


@pytest.fixture(params=shipped())
def recording(request):
    """Give each shipped machine in turn."""
    return load(request.param)


def test_the_machine_is_what_its_file_expects(recording):
    """Facts and findings are those that the recording's own `expect` names."""
    found = detect(ReplayHost(recording))
    machine = {"gpus": [], "wsl": None, "rosetta": None, **json.loads(to_json(found.machine))}
    assert part_of(recording.expect["machine"], machine), to_json(found.machine, indent=1)
    told = {finding.key for finding in judged(found) if finding.severity is not Severity.OK}
    assert sorted(told - {"gpu-present"}) == sorted(recording.expect["findings"])


def test_the_best_plan_is_what_its_file_expects(recording):
    """The planner chooses the backend, and the index where the file names one; null means that nothing fits."""
    choice = make_plans(detect(ReplayHost(recording)).machine, load_catalog()).choice
    expected = recording.expect["plan"]
    assert (choice is None) == (expected is None)
    assert choice is None or part_of(expected, json.loads(to_json(choice)))


def test_a_replay_always_gives_the_same_text(recording):
    """Replaying twice gives byte-identical JSON."""
    assert to_json(detect(ReplayHost(recording)).machine) == to_json(detect(ReplayHost(recording)).machine)


def test_the_file_says_where_it_comes_from(recording):
    """Each machine has a label, a date, an origin, and a source unless it was recorded on real hardware."""
    assert recording.label
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", recording.date)
    assert recording.source or recording.origin == "recorded"


def test_nothing_private_is_shipped(recording):
    """Redaction would change nothing in any question or answer."""
    assert [said.ask for said in recording.said if redact(said) != said] == []


def test_a_recording_of_it_replays_to_the_same(recording):
    """What is kept of each answer when it is recorded anew is all that detection reads."""
    host = RecordingHost(ReplayHost(recording))
    found = detect(host)
    again = read_recording(write_recording(host, "again"), "again")
    assert to_json(detect(ReplayHost(again))) == to_json(found)
    assert {said.ask for said in again.said} == {said.ask for said in host.said()}


def test_the_support_matrix_is_covered():
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
