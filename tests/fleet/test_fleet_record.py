"""`assistant fleet record`: one machine says what it is, and nothing that is private but its name."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import forked
import pytest
from export.setups import SETUP
from fleet_records import record
from refused import refused

from assistant.export.config import config_text
from assistant.fleet import FleetRecord, write_record
from assistant.model.record import from_json, to_json
from assistant.model.report import Environment

RTX = "linux-ubuntu2404-rtx5090-driver575"


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """Give the variables of a user who has never set anything up."""
    homes = ("HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "JUPYTER_DATA_DIR")
    return {**os.environ, **{name: str(tmp_path / "home") for name in homes}, "LANGUAGE": "en", "COLUMNS": "300"}


def taken(done: subprocess.CompletedProcess[str]) -> FleetRecord:
    """Decode what was printed."""
    assert done.returncode == 0, done.stderr
    return from_json(done.stdout, FleetRecord, "it")


@pytest.mark.process
def test_a_record_holds_what_a_report_needs(home: dict[str, str]) -> None:
    """Facts, plan, what was rejected and why: in ASCII on standard output; the name is said beside it."""
    done = forked.run("fleet", "record", "--replay", RTX, "--name", "教室-07", env=home)
    found = taken(done)
    assert done.stdout.isascii()
    assert "教室-07" in done.stderr
    assert (found.name, found.machine.nvidia_driver, found.environment, found.drift) == (
        "教室-07",
        "575.64.03",
        None,
        None,
    )
    assert found.plan
    assert found.plan.variant == "cu128"
    assert [one.key for one in found.rejected] == ["nvidia-driver-too-old"]
    assert found.machine.evidence == ()


@pytest.mark.process
def test_an_environment_that_is_not_there_is_a_finding(home: dict[str, str], tmp_path: Path) -> None:
    """The record is written all the same: that nothing is set up there is what the report has to say."""
    done = forked.run("fleet", "record", "--replay", RTX, "--target", tmp_path / "none", env=home)
    found = taken(done)
    assert found.findings[0].key == "no-environment"
    assert found.report is found.environment is None


@pytest.mark.process
def test_what_has_changed_since_an_export_is_told(home: dict[str, str], tmp_path: Path) -> None:
    """With a configuration, each difference is a finding; an empty list says that there is none."""
    (tmp_path / "assistant.toml").write_text(config_text(SETUP), encoding="utf-8")
    command = ("fleet", "record", "--config", tmp_path / "assistant.toml", "--replay", RTX, "--name", "pc")
    found = taken(forked.run(*command, env=home))
    assert found.drift
    assert {"drift-gpu", "drift-driver"} <= {one.key for one in found.drift}


@pytest.mark.process
def test_a_record_that_cannot_be_written_is_refused_in_a_sentence(home: dict[str, str], tmp_path: Path) -> None:
    """The work failed: a share that is full or closed must not pass for done."""
    (tmp_path / "file").touch()
    done = forked.run("fleet", "record", "--no-verify", "--name", "pc", "--to", tmp_path / "file/pc.json", env=home)
    assert done.returncode == 1
    assert "cannot be written" in done.stderr
    done = forked.run("fleet", "record", "--name", "x" * 300, "--replay", RTX, env=home)
    refused(done, 2, "253")


@pytest.mark.torch
def test_the_environment_is_verified(home: dict[str, str], tmp_path: Path, cpu_environment: Environment) -> None:
    """It is looked into and computes, whichever machine is played; the file is called as the machine."""
    command = ("fleet", "record", "--replay", RTX, "--name", "lab/07", "--target", cpu_environment.path)
    done = forked.run(*command, "--to", tmp_path / "share", "--json", env=home)
    written = Path(json.loads(done.stdout)["file"])
    assert written == tmp_path / "share" / "lab-07.json"
    found = from_json(written.read_bytes(), FleetRecord, "it")
    assert found.name == "lab/07"
    assert found.environment
    assert found.environment.torch == cpu_environment.packages["torch"]
    assert found.report
    assert found.report.usable


def test_nothing_of_another_machine_is_lost(tmp_path: Path) -> None:
    """A machine's own file is replaced; one of a name-sake with other hardware, or of somebody else, stays."""
    first = write_record(record("pc-07"), tmp_path)
    assert write_record(record("pc-07"), tmp_path) == first == tmp_path / "pc-07.json"
    assert write_record(record("pc-07", "windows11-rtx3060"), tmp_path) == tmp_path / "pc-07-2.json"
    (tmp_path / "pc-08.json").write_text("notes")
    assert write_record(record("pc-08"), tmp_path) == tmp_path / "pc-08-2.json"
    assert (tmp_path / "pc-08.json").read_text() == "notes"


@pytest.mark.parametrize("name", ["../../etc/x", "..", "/", "a\0b", "C:\\x", "-rf"])
def test_a_name_leads_nowhere_else(tmp_path: Path, name: str) -> None:
    """Whatever a machine calls itself, its file lies in the folder."""
    written = write_record(record(name), tmp_path / "share")
    assert written.parent == tmp_path / "share"
    assert written.is_file()
    assert from_json(written.read_bytes(), FleetRecord, "it") == record(name)


def test_a_record_survives_the_way() -> None:
    """It is decoded as it was encoded."""
    one = record("pc-07")
    assert from_json(to_json(one), FleetRecord, "it") == one
