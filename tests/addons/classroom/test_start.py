"""From `start.sh` to a verified environment, on an empty home and without a network; and what may stand in the way."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import forked
import pytest
from bubblewrap import sandbox

from assistant_addons.classroom.folder import read_bundle

__all__ = ["sandbox"]  # a fixture

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(sys.platform != "linux", reason="a network is taken away by bubblewrap, which is on Linux only"),
    pytest.mark.full,
]
PYTHON = "{}.{}".format(*sys.version_info)


class Pc:
    """A machine with an empty home and no network that has a bundle on a folder which it can only read."""

    def __init__(self, home: Path, bundle: Path) -> None:
        self.home, self.bundle = home, bundle
        home.mkdir()

    @property
    def data(self) -> Path:
        """The assistant's folder."""
        return self.home / ".local" / "share" / "pytorch-setup-assistant"

    def run(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Start from the bundle."""
        path = f"{Path(sys.base_prefix) / 'bin'}:/usr/bin:/bin"
        known = {"HOME": str(self.home), "PATH": path, "LANG": "C.UTF-8", "LANGUAGE": "en", **more}
        shut = ["bwrap", "--unshare-net", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--clearenv"]
        shut += [word for name, value in known.items() for word in ("--setenv", name, value)]
        shut += ["--tmpfs", tempfile.gettempdir(), "--ro-bind", str(self.bundle), str(self.bundle)]
        shut += ["--bind", str(self.home), str(self.home), "--die-with-parent", "--"]
        command = [*shut, "sh", str(self.bundle / "start.sh"), *words]
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=400, check=False
        )


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a bundle for this machine's CPU, from where this user's packages come."""
    folder = tmp_path_factory.mktemp("stick") / "U 盘"
    words = ["bundle", "make", folder, "--here", "--backend", "cpu", "--python", PYTHON]
    done = forked.run(*words, env={**os.environ, "UV_PYTHON_INSTALL_MIRROR": "file:///nowhere"})
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def pc(tmp_path: Path, bundle: Path, sandbox: None) -> Pc:  # noqa: ARG001 - it must be there
    """Have such a machine, whose user has a Chinese name."""
    return Pc(tmp_path / "张 三", bundle)


def test_an_empty_home_without_a_network_ends_verified(pc):
    """One start does all, asks nothing and logs; a second changes nothing; other commands run, too."""
    first = pc.run("--json")
    assert first.returncode == 0, first.stderr
    answer = json.loads(first.stdout)
    assert answer["changed"] is True
    locked = (pc.bundle / read_bundle(pc.bundle).kinds[0].lock).read_text("utf-8")
    for name, version in answer["environment"]["packages"].items():
        assert f'name = "{name}"\nversion = "{version}"' in locked
    assert Path(answer["environment"]["path"]).parent == pc.data / "envs"
    torch = answer["environment"]["packages"]["torch"].partition("+")[0]
    assert torch == read_bundle(pc.bundle).kinds[0].plan.torch
    assert {check["status"] for check in answer["report"]["checks"]} - {"slow", "skipped"} == {"passed"}
    log = (pc.data / "start.log").read_text("utf-8")
    assert str(pc.bundle) in log
    second = pc.run("--yes")
    assert second.returncode == 0, second.stderr
    assert "already there" in second.stdout
    assert "In JupyterLab, choose the kernel “PyTorch" in second.stdout  # to fetch one needs a network
    assert 'start.sh" lab' not in second.stdout
    assert "already there" in (pc.data / "start.log").read_text("utf-8")
    found = pc.run("which", "--help")
    assert found.returncode == 2  # no command of the assistant
    found = pc.run("detect", "--json")
    assert json.loads(found.stdout)["os"] == "linux"


def test_a_damaged_file_is_refused(pc, tmp_path):
    """A changed wheel ends it before anything is installed."""
    copy = shutil.copytree(pc.bundle, tmp_path / "copy", copy_function=os.link)
    pc.bundle = copy
    shown = pc.run("--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert "nothing was changed" in shown.stdout
    damage(next(copy.glob("wheels/numpy-*")))
    refused = pc.run("--yes")
    assert refused.returncode == 1
    assert "is not as it was made" in refused.stderr
    assert not (pc.data / "envs").exists() or not list((pc.data / "envs").glob("cpu*"))
    for kept in (pc.data, pc.home / ".cache"):  # uv keeps what it has unpacked once
        shutil.rmtree(kept)
    damage(next(copy.glob("wheels/click-*")))
    refused = pc.run("--yes")
    assert refused.returncode == 1
    assert "could not be made ready" in refused.stderr
    assert "安装助手" in refused.stderr
    assert "could not be made ready" in (pc.data / "start.log").read_text("utf-8")
    assert sorted(path.name for path in (pc.data / "bundle").iterdir()) == ["said", "uv"]


def damage(file: Path) -> None:
    """Change a byte of a file, and not of the one that it is linked to."""
    content = bytearray(file.read_bytes())
    file.unlink()
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def test_what_stands_in_the_way_is_said_in_both_languages(pc, tmp_path):
    """No uv for this machine, no Python, no folder: a sentence, a next step, and the exit code."""
    bare = tmp_path / "bare"
    (bare / "assistant").mkdir(parents=True)
    for path in ("start.sh", "assistant/says", "uv"):
        where = pc.bundle / path
        shutil.copytree(where, bare / path) if where.is_dir() else shutil.copy(where, bare / path)
    pc.bundle = bare
    (bare / "assistant" / f"linux-{os.uname().machine}-3.99-0123456789ab.txt").touch()
    faults = [
        ({}, 1, "There is no Python for the assistant", "没有"),
        ({"XDG_DATA_HOME": "/proc/nothing"}, 1, "cannot be written", "无法写入"),
    ]
    for more, code, english, chinese in faults:
        done = pc.run("--yes", **more)
        assert (done.returncode, english in done.stderr, chinese in done.stderr) == (code, True, True), done.stderr
    shutil.rmtree(bare / "uv")
    done = pc.run("--yes")
    assert (done.returncode, "holds nothing for the system" in done.stderr) == (3, True)


def test_a_stick_that_knows_no_rights_to_run_starts_all_the_same(bundle):
    """The programs may be run where a file system says so; `sh start.sh` needs no right at all, and brings uv."""
    assert (bundle / "start.sh").stat().st_mode & stat.S_IXUSR
    script = (bundle / "start.sh").read_text("utf-8")
    assert 'chmod +x "$uv.$$"' in script
