"""One bar for the whole installation: it never goes back, ends at the end, and its time left can be believed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from assistant.i18n import render
from assistant.install import Package, Prepared, Resolution
from assistant.model.event import Part, Progress, Step
from assistant.model.plan import Backend, Plan, Planning
from assistant.model.record import from_plain, replace
from assistant.model.report import Environment, Report
from assistant.session.progress import Meter, Overall, Pace, keep_pace, read_pace, seconds_needed, time_left
from assistant.session.state import State, Task

PLAN = Plan(backend=Backend.CPU, variant="cpu", torch="2.13.0", python="3.11", download_mb=272)
TORCH = Package(name="torch", version="2.13.0", url="file:///torch.whl", size=270_507_776)
PREVIEW = Prepared(plan=PLAN, target="/env", resolution=Resolution(lock="", packages=(TORCH,)), download=46_080_995)
MADE = Environment(path="/env", python="/env/bin/python")
PROOF = Report(device="cpu", checks=())


class Moment(NamedTuple):
    """What the meter says at a time of the recorded installation."""

    at: float
    overall: Overall


@pytest.fixture(autouse=True)
def no_earlier_pace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the pace of this machine out, and what is learned here from it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def recorded() -> Iterator[tuple[float, dict[str, object]]]:
    """Yield what a real installation told: 44 packages on two busy cores, 46 of 270 MB to download (2026-11-22)."""
    lines = Path(__file__).with_name("installation.jsonl").read_text(encoding="utf-8").splitlines()
    yield from map(json.loads, lines)


def replayed(first: Part = Part.RESOLVE, stretched: Callable[[float], float] = lambda at: at) -> list[Moment]:
    """Play the recording to a meter, asked five times a second; `stretched` changes when each event comes."""
    now, moments = 0.0, []
    meter = Meter(first=first, clock=lambda: now)
    state = State(planning=Planning(choice=PLAN, plans=(PLAN,)))
    for at, told in recorded():
        while now + 0.2 < stretched(at):
            now += 0.2
            if overall := meter.overall():
                moments.append(Moment(now, overall))
        now = stretched(at)
        if told["type"] == "begin":
            new = replace(state, running=Task(told["task"]))
        elif told["type"] == "end":
            new = replace(state, running=None, preview=PREVIEW)
            new = replace(new, environment=MADE, proof=PROOF) if state.running is Task.INSTALL else new
        else:
            meter.hear(from_plain(told, Progress, "event"))
            new = state
        meter.watch(state, new)
        state = new
        if overall := meter.overall():
            moments.append(Moment(now, overall))
    return moments


@pytest.mark.parametrize("first", [Part.RESOLVE, Part.DOWNLOAD])
@pytest.mark.parametrize("speed", [0.2, 1, 7])
def test_the_share_never_goes_back_and_ends_at_the_end(first: Part, speed: float) -> None:
    """On this machine, on one five times as fast, on one seven times as slow; from the first second on."""
    moments = replayed(first, lambda at: at * speed)
    shares = [moment.overall.share for moment in moments]
    assert shares == sorted(shares)
    assert shares[0] < 0.05
    assert shares[-1] == 1.0
    assert max(moment.overall.share for moment in moments if moment.overall.rows[-1].status != "done") < 1
    assert all(moment.overall.seconds_left > 0 for moment in moments if moment.overall.share < 1)


@pytest.mark.parametrize(("earlier", "error"), [(0, 0.35), (1, 0.2), (3, 0.1)])
def test_the_time_left_is_near_the_truth(earlier: int, error: float) -> None:
    """At each quarter, even of the first installation, by a part of the whole; the more there were, the better."""
    for _each in range(earlier):
        replayed()
    moments = replayed(Part.DOWNLOAD)
    begun = next(at for at, told in recorded() if told == {"type": "begin", "task": "install"})
    end = next(at for at, told in recorded() if told == {"type": "end", "task": "install"})
    for quarter in (0.25, 0.5, 0.75):
        at, overall = min(moments, key=lambda moment: abs(moment.at - begun - quarter * (end - begun)))
        assert abs(overall.seconds_left - (end - at)) < error * (end - begun), quarter
        assert abs(overall.share - quarter) < error, quarter


def test_a_machine_that_is_much_slower_than_expected_is_believed() -> None:
    """Four times slower than ever before: once the unpacking is late, so is all that comes after it."""
    moments = replayed(Part.DOWNLOAD, lambda at: at * 4)
    begun = 4 * next(at for at, told in recorded() if told == {"type": "begin", "task": "install"})
    end = 4 * next(at for at, told in recorded() if told == {"type": "end", "task": "install"})
    for quarter in (0.5, 0.75):
        at, overall = min(moments, key=lambda moment: abs(moment.at - begun - quarter * (end - begun)))
        assert abs(overall.seconds_left - (end - at)) < 0.3 * (end - begun), quarter


def test_every_part_has_a_row_that_is_ticked_off_in_order() -> None:
    """What is done stays done, one part is at work, and the download says how fast it is."""
    seen: dict[Part, list[str]] = {part: [] for part in Part}
    for _at, overall in replayed():
        assert [row.part for row in overall.rows] == list(Part)
        assert sum(row.status == "running" for row in overall.rows) <= 1
        for row in overall.rows:
            seen[row.part].append(row.status)
            if row.part is Part.DOWNLOAD and row.status == "running" and row.figures:
                assert "MB" in render(row.figures)
    order = ["waiting", "running", "done"]
    assert all(statuses == sorted(statuses, key=order.index) for statuses in seen.values())
    assert all(statuses[-1] == "done" and "running" in statuses for statuses in seen.values())


def test_the_next_installation_knows_the_pace_of_the_last(tmp_path: Path) -> None:
    """What was measured moves what is expected, half of the way; a damaged file is as none."""
    before = seconds_needed(PREVIEW)
    replayed(stretched=lambda at: at * 4)
    slow = read_pace()
    assert slow.check > Pace().check
    assert slow.unpack < Pace().unpack
    assert seconds_needed(PREVIEW) != before
    (file,) = tmp_path.rglob("pace.json")
    file.write_text("{")
    assert read_pace() == Pace()
    keep_pace(replace(Pace(), download=1e6))
    assert seconds_needed(PREVIEW) > 46
    assert seconds_needed(replace(PREVIEW, ready=MADE)) == Pace().check


def test_a_second_try_and_a_later_check_begin_anew() -> None:
    """A failed installation does not leave its share behind, nor does a finished one to a check that is asked for."""
    now = 0.0
    meter = Meter(clock=lambda: now)
    idle = State(planning=Planning(choice=PLAN, plans=(PLAN,)), preview=PREVIEW)
    assert meter.overall() is None
    for _again in range(2):
        meter.watch(idle, replace(idle, running=Task.INSTALL))
        assert meter.overall().share == 0
        now += 30
        meter.hear(Progress(step=Step.INSTALL, text="", part=Part.UNPACK, total=44, unit="packages"))
        assert meter.overall().share > 0.4
        meter.watch(replace(idle, running=Task.INSTALL), idle)
    made = replace(idle, environment=MADE)
    meter.watch(made, replace(made, running=Task.VERIFY, level="full"))
    assert meter.overall().share == 0
    assert meter.overall().seconds_left > 30
    meter.watch(replace(made, running=Task.VERIFY), replace(made, report=PROOF))
    assert meter.overall().share == 1


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.2, "about 1 second left"),
        (7.2, "about 8 seconds left"),
        (31, "about 35 seconds left"),
        (89, "about 90 seconds left"),
        (130, "about 2 minutes left"),
    ],
)
def test_the_time_left_is_said_as_exactly_as_it_is_known(seconds: float, told: str) -> None:
    """Nobody believes 31 seconds."""
    assert render(time_left(seconds)) == told
