"""The report that a machine leaves when it was set up from a bundle: whose file it is, and what is in it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from assistant.bundle import report_on, write_report
from assistant.bundle.report import MachineReport
from assistant.detect import detect
from assistant.host.recording import ReplayHost
from assistant.machines import load
from assistant.model.record import from_json
from assistant.session.state import State

RTX4090 = "linux-ubuntu2404-rtx4090"


def report(name: str, machine: str = RTX4090) -> MachineReport:
    """Return the report of a recorded machine that is called `name`."""
    when, facts = datetime(2026, 11, 27, 12, tzinfo=UTC), detect(ReplayHost(load(machine))).machine
    return MachineReport(schema=1, name=name, when=when, assistant="1", machine=facts)


def test_nothing_of_another_machine_is_lost(tmp_path: Path) -> None:
    """A machine's own file is replaced; one of the same name with other hardware, or of somebody else, stays."""
    first = write_report(report("pc-07"), tmp_path)
    assert write_report(report("pc-07"), tmp_path) == first == tmp_path / "pc-07.json"
    assert write_report(report("pc-07", "windows11-rtx3060"), tmp_path) == tmp_path / "pc-07-2.json"
    (tmp_path / "pc-08.json").write_text("notes")
    assert write_report(report("pc-08"), tmp_path) == tmp_path / "pc-08-2.json"
    assert (tmp_path / "pc-08.json").read_text() == "notes"


@pytest.mark.parametrize("name", ["../../etc/x", "..", "/", "a\0b", "C:\\x", "-rf"])
def test_a_name_leads_nowhere_else(tmp_path: Path, name: str) -> None:
    """Whatever a machine calls itself, its file lies in the folder."""
    written = write_report(report(name), tmp_path / "share")
    assert written.parent == tmp_path / "share"
    assert from_json(written.read_bytes(), MachineReport, "the report") == report(name)


def test_a_setup_that_got_nowhere_is_reported() -> None:
    """Where nothing was planned or installed, the report holds the facts, and what the doctor says of them."""
    found = report_on(State(), ReplayHost(load("linux-ubuntu2404-rtx3090-hidden")))
    assert (found.plan, found.environment, found.report) == (None, None, None)
    assert [gpu.name for gpu in found.machine.gpus]
    assert "devices-hidden" in {finding.key for finding in found.findings}
