"""A bundle that was made on this system sets Windows up, without a network and under a Chinese name."""

from __future__ import annotations

import json
import os
from pathlib import Path

import forked
import pytest
from bubblewrap import sandbox
from windows.wine import Done, Wine, as_windows

__all__ = ["sandbox"]  # a fixture

pytestmark = pytest.mark.timeout(1800)

# The bundle brings no Python, as where uv's own cannot be had: the PC has one on its PATH.
PC = {"name": "pc-01", "os": "windows", "arch": "x86_64", "os_version": "Windows 10 22H2 build 19045", "python": "3.11"}
SETTINGS = {"WINEPATH": r"C:\Python311", "UV_CACHE_DIR": r"C:\uv"}
COMPUTES = "import torch; print(torch.ones(3).sum().item())"


@pytest.fixture(scope="module")
def stick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a bundle for the processor of such a PC, from where this user's packages come."""
    folder = tmp_path_factory.mktemp("stick")
    (folder / "pc.jsonl").write_text(json.dumps(PC), encoding="utf-8")
    words = ["bundle", "make", str(folder / "U 盘"), "--machines", str(folder / "pc.jsonl"), "--backend", "cpu"]
    done = forked.run(*words, env={**os.environ, "UV_PYTHON_INSTALL_MIRROR": "file:///nowhere"})
    assert done.returncode == 0, done.stderr
    return folder / "U 盘"


@pytest.mark.usefixtures("sandbox")
def test_an_empty_home_without_a_network_ends_verified(stick: Path, windows: Wine) -> None:
    """One start does all, asks nothing and logs; a second changes nothing; other commands run, too."""

    def start(*words: str) -> Done:
        script = as_windows(str(stick / "start.bat"))
        return windows.run("cmd", "/c", script, *words, network=False, environment=SETTINGS)

    first = start("--json")
    assert first.code == 0, first
    answer = json.loads(first.out)
    assert answer["changed"] is True
    done = windows.run(answer["environment"]["python"], "-c", COMPUTES)
    assert done.out.split() == ["3.0"], done
    assert {check["status"] for check in answer["report"]["checks"]} - {"slow", "skipped"} == {"passed"}
    log = windows.path(rf"C:\users\{windows.user}\AppData\Local\pytorch-setup-assistant\start.log")
    assert stick.name in log.read_text("utf-8")
    second = start("--yes")
    assert second.code == 0, second
    assert "环境已存在" in second.out
    found = start("detect", "--json")
    assert json.loads(found.out)["os"] == "windows", found
