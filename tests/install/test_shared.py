"""One environment for all users of a machine: they read it, they find its kernel, and only its owner changes it."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from install.workbench import Bench, imports_torch

from assistant.host.files import closed_part
from assistant.host.live import LiveHost
from assistant.install.environments import remove_environment
from assistant.install.inspect_env import look_at
from assistant.install.installation import install
from assistant.install.installer import Installer
from assistant.install.kernel import kernel_folder, kernels_for_all, note_kernel, put_kernel_back
from assistant.install.place import check_open, check_shared
from assistant.install.target import read_marker
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.record import replace
from assistant.model.report import Environment

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(os.name == "nt", reason="Windows keeps who may read in access lists, which folders hand on"),
]
OTHERS = stat.S_IWGRP | stat.S_IWOTH


@pytest.fixture(autouse=True)
def _careful(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Work as an administrator whose files nobody else can read; the tests' own Python may be such a file."""
    monkeypatch.setattr("assistant.install.installation.check_open", lambda _python: None)
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    """Name a folder of kernelspecs that is not there yet."""
    return tmp_path / "prefix" / "share" / "jupyter" / "kernels"


@pytest.fixture
def share(bench: Bench, kernels: Path) -> Callable[..., Environment]:
    """Give a function that makes an environment for all users, or changes the one that stands."""

    def shared(verify: Callable[..., None] = imports_torch) -> Environment:
        site = look_at(bench.target, LiveHost()) if bench.target.exists() else None
        resolution, installer = bench.resolution(), bench.installer()
        installer = replaced_python(installer, site.python) if site else installer
        return install(bench.plan, resolution, bench.target, site, LiveHost(), installer, verify, kernels=str(kernels))

    return shared


def replaced_python(installer: Installer, python: str) -> Installer:
    """Let an installer work for the Python of an environment that stands."""
    return Installer(**{**vars(installer), "python": python})


def closed(folder: Path) -> list[Path]:
    """List what others could change or not read, or not start though its owner can."""
    modes = {path: path.stat().st_mode for path in (folder, *folder.rglob("*")) if not path.is_symlink()}
    bad = {
        path: mode & OTHERS or not mode & 0o004 or (mode & 0o100 and not mode & 0o001) for path, mode in modes.items()
    }
    return [path for path, wrong in bad.items() if wrong]


def test_others_read_it_and_cannot_change_it(share: Callable[..., Environment], kernels: Path, tmp_path: Path) -> None:
    """Environment and kernelspec, with the folders made for them; this user's own kernels stay as they are."""
    made = share()
    assert not closed(tmp_path / "made")
    assert not closed(tmp_path / "prefix")
    spec = json.loads((kernels / "torch-cpu-9.0" / "kernel.json").read_text("utf-8"))
    assert spec["argv"][0] == made.python
    assert not kernel_folder("torch-cpu-9.0").exists()


def test_what_comes_later_is_open_too(
    bench: Bench, share: Callable[..., Environment], kernels: Path, tmp_path: Path
) -> None:
    """Another installation into it leaves nothing closed, and it is still known for whom it is."""
    share()
    bench.index.add("numpy", "2.0")
    bench.plan = replace(bench.plan, requirements=("torch==9.0", "numpy==2.0"))
    made = share()
    assert look_at(bench.target, LiveHost()).versions["numpy"] == "2.0"
    assert not closed(tmp_path / "made")
    marker = read_marker(Path(made.path))
    assert marker
    assert marker.environment.kernels == str(kernels)


def test_a_failure_leaves_no_kernel(share: Callable[..., Environment], kernels: Path) -> None:
    """What was written is put back, the new kernelspec among it."""

    def refused(_made: Environment, _lock: object) -> None:
        raise WorkFailed("It does not compute.")

    with pytest.raises(WorkFailed, match="does not compute"):
        share(refused)
    assert not list(kernels.glob("*"))


def test_a_kernelspec_of_before_comes_back(share: Callable[..., Environment], kernels: Path) -> None:
    """As a user's own does."""
    made = share()
    file = kernels / str(made.kernel) / "kernel.json"
    before = file.read_text("utf-8")
    note = note_kernel(str(made.kernel), Path(made.python), str(kernels))
    file.write_text(before.replace("PyTorch", "Torch"), "utf-8")
    put_kernel_back(note)
    assert file.read_text("utf-8") == before


def test_its_kernel_goes_with_it(share: Callable[..., Environment], kernels: Path) -> None:
    """Although no Jupyter of this user looks there."""
    made = share()
    remove_environment(made.path)
    assert not Path(made.path).exists()
    assert not list(kernels.glob("*"))


def test_what_others_could_not_reach_is_refused(tmp_path: Path) -> None:
    """A closed folder above the environment or the kernels, or a closed Python, is named with the way out."""
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    with pytest.raises(BadInput, match="is closed to other users, so they could not use") as refused:
        check_shared(private / "env", "3.12", "/usr/local/share/jupyter/kernels")
    assert "/opt/pytorch" in str(refused.value.hint)
    assert closed_part(Path("/usr/local/share")) is None
    (private / "python").write_text("")
    with pytest.raises(BadInput, match="is closed to other users") as refused:
        check_open(private / "python")
    assert "UV_PYTHON_INSTALL_DIR=/opt/python" in str(refused.value.hint)


def test_every_jupyter_looks_where_no_prefix_is_named() -> None:
    """Below a prefix, kernels lie where an environment's own Jupyter looks."""
    assert kernels_for_all() == "/usr/local/share/jupyter/kernels"
    assert kernels_for_all("/opt/tljh/user") == "/opt/tljh/user/share/jupyter/kernels"
