"""The main job in the terminal: from nothing to a verified CPU environment and its exported configuration."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from assistant.model.report import Environment, check_title

pytestmark = pytest.mark.process


def folder_of(setup: dict[str, object]) -> Path:
    """Name the folder of the exported files."""
    return Path(setup["exported"][0]).parent


def test_the_environment_computes(cpu_environment: Environment) -> None:
    """Its own Python imports the CPU build of torch that was planned."""
    code = "import torch; print(torch.__version__, torch.version.cuda, torch.linalg.solve(torch.eye(2), torch.ones(2)))"
    done = subprocess.run([cpu_environment.python, "-c", code], capture_output=True, text=True, check=True)
    assert "None tensor([1., 1.])" in done.stdout


def test_the_report_lists_every_check_as_passed(cpu_setup: dict[str, object]) -> None:
    """The exported report names the device and each check."""
    report = (folder_of(cpu_setup) / "report.md").read_text(encoding="utf-8")
    checks = cpu_setup["report"]["checks"]
    assert len(checks) >= 10
    for check in checks:
        assert f"| {check_title(check['key'])} | passed | cpu |" in report


def test_the_configuration_is_on_disk(cpu_setup: dict[str, object]) -> None:
    """All formats are there, the picture too, and the configuration holds machine, plan and verification."""
    names = {path.name for path in folder_of(cpu_setup).iterdir()}
    assert names >= {".env", "assistant.toml", "report.md", "requirements.txt"}
    config = tomllib.loads((folder_of(cpu_setup) / "assistant.toml").read_text(encoding="utf-8"))
    assert config["schema"] == 1
    assert config["plan"]["backend"] == "cpu"


def test_jupyter_knows_the_kernel(cpu_setup: dict[str, object], cpu_environment: Environment) -> None:
    """The kernelspec leads to the environment's Python, which can run a kernel."""
    data = folder_of(cpu_setup).parent / "JUPYTER_DATA_DIR"
    spec = (data / "kernels" / str(cpu_environment.kernel) / "kernel.json").read_text(encoding="utf-8")
    assert cpu_environment.python in spec
    subprocess.run([cpu_environment.python, "-c", "import ipykernel"], check=True)


@pytest.fixture
def again(cpu_setup: dict[str, object], cpu_environment: Environment) -> subprocess.CompletedProcess[str]:
    """Run the same setup a second time."""
    folder = folder_of(cpu_setup).parent
    places = {name: str(folder / name) for name in ("XDG_STATE_HOME", "XDG_DATA_HOME", "JUPYTER_DATA_DIR")}
    return subprocess.run(
        [sys.executable, "-m", "assistant", "setup", "--yes", "--backend", "cpu", "--target", cpu_environment.path],
        env={**os.environ, **places, "LANGUAGE": "en", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_second_setup_finds_the_first(again: subprocess.CompletedProcess[str]) -> None:
    """Nothing is installed twice: what is there is verified and exported again."""
    assert again.returncode == 0, again.stderr
    assert "already there" in again.stdout


def test_ctrl_c_in_the_middle_takes_everything_back(tmp_path: Path) -> None:
    """An interrupted setup ends with code 130 and one sentence, and its folder is gone."""
    target = tmp_path / "made" / "env"
    places = {name: str(tmp_path / name) for name in ("XDG_STATE_HOME", "JUPYTER_DATA_DIR", "UV_CACHE_DIR")}
    child = subprocess.Popen(
        [sys.executable, "-m", "assistant", "setup", "--yes", "--backend", "cpu", "--target", str(target)],
        env={**os.environ, **places, "LANGUAGE": "en"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    while child.poll() is None and not list(tmp_path.glob("made/.env.new/pyvenv.cfg")):
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    _out, said = child.communicate(timeout=60)
    assert (child.returncode, said.count("\n")) == (130, 1), said
    assert f"{target} is as it was before" in said
    assert not (tmp_path / "made").exists()
    assert not (tmp_path / "JUPYTER_DATA_DIR").exists()
