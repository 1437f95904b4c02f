"""`assistant contribute`: a real environment is verified, all is shown, and what is written the project takes in."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import forked
import pytest
from refused import refused

from assistant.host.recording import read_recording
from assistant.model.record import from_json
from assistant.model.report import Environment
from assistant.session.contribution import Contribution
from assistant.session.recordings import faults
from assistant.session.seen import SeenTables

ROOT = Path(__file__).parents[2]
TABLE = "assistant/catalog/data/seen.json"


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """Give the variables of a user who has never set anything up."""
    homes = ("HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "JUPYTER_DATA_DIR")
    return {**os.environ, **{name: str(tmp_path / "home") for name in homes}, "LANGUAGE": "en", "COLUMNS": "300"}


@pytest.mark.torch
def test_what_is_made_here_is_taken_in(home: dict[str, str], tmp_path: Path, cpu_environment: Environment) -> None:
    """The real command verifies with the real torch; what it showed is the file, and the real script counts it once."""
    file, root = tmp_path / "contribution.json", tmp_path / "checkout"
    command = ("contribute", "--target", cpu_environment.path, "--to", file)
    done = forked.run(*command, "--yes", env=home)
    assert done.returncode == 0, done.stderr
    assert file.read_text("utf-8").strip() in done.stdout
    told = from_json(file.read_bytes(), Contribution, "it")
    assert told.report.usable
    assert told.packages["torch"] == cpu_environment.packages["torch"]
    assert "executable" not in told.report.facts
    assert ("kernels",) not in [said.ask for said in told.recording.said]
    for folder in ("catalogue", "assistant/machines", "assistant/catalog/data"):
        (root / folder).mkdir(parents=True)
    shutil.copy(ROOT / TABLE, root / TABLE)
    again = tmp_path / "again.json"
    assert forked.run(*command[:-1], again, "--yes", "--json", env=home).returncode == 0
    script = [sys.executable, ROOT / "catalogue/take_in.py", "--root", root]
    env = {**home, "PYTHONPATH": str(ROOT)}
    taken = subprocess.run([*script, file], env=env, capture_output=True, text=True, check=False)
    assert (taken.returncode, taken.stderr) == (0, "")
    twice = subprocess.run([*script, again], env=env, capture_output=True, text=True, check=False)
    assert "This machine counts for this build already." in twice.stderr
    (row,) = from_json((root / TABLE).read_bytes(), SeenTables, TABLE).seen.rows
    assert (row.backend.value, row.variant, row.torch, row.machines) == ("cpu", "cpu", told.plan.torch, 1)
    (machine,) = (root / "assistant/machines").glob("*.json")
    recording = read_recording(machine.read_text("utf-8"), machine.name)
    assert [str(fault) for fault in faults(recording, machine.stem)] == []


@pytest.mark.torch
def test_without_consent_nothing_is_written(home: dict[str, str], tmp_path: Path, cpu_environment: Environment) -> None:
    """All of it is shown, and no answer writes no file; with --json nobody is asked, and --yes is what agrees."""
    file = tmp_path / "contribution.json"
    command = ("contribute", "--target", cpu_environment.path, "--to", file)
    done = forked.run(*command, env=home)
    assert done.returncode == 130
    assert '"recording"' in done.stdout
    assert "Nothing is sent" in done.stdout
    answer = json.loads(forked.run(*command, "--json", env=home).stdout)
    assert answer["file"] is None
    assert answer["contribution"]["report"]["device"] == "cpu"
    assert not file.exists()


@pytest.mark.process
def test_what_cannot_be_contributed_is_refused(home: dict[str, str], tmp_path: Path) -> None:
    """No environment, none that was ever made, one without torch or with half of it, and a file that would be lost."""
    file = tmp_path / "contribution.json"
    refused(forked.run("contribute", "--to", file, "--yes", env=home), 2, "no environment to verify")
    refused(forked.run("contribute", "--target", tmp_path, "--to", file, "--yes", env=home), 2, "environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    done = forked.run("contribute", "--target", tmp_path / "bare", "--to", file, "--yes", env=home)
    refused(done, 2, "no environment with PyTorch")
    (packages,) = (tmp_path / "bare").glob("[Ll]ib/**/site-packages")
    (packages / "torch-2.13.0.dist-info").mkdir()
    (packages / "torch-2.13.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: torch\nVersion: 2.13.0\n"
    )
    done = forked.run("contribute", "--target", tmp_path / "bare", "--to", file, "--yes", env=home)
    refused(done, 2, "cannot be told which device")
    assert not file.exists()
    file.write_text("notes")
    done = forked.run("contribute", "--target", tmp_path / "bare", "--to", file, "--yes", env=home)
    refused(done, 2, "is there already")
    assert file.read_text() == "notes"
