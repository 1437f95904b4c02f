"""Real environments made by the real uv from a real index on loopback, and what is left when that fails."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from install.workbench import Bench

from assistant.host.live import LiveHost
from assistant.host.process import running
from assistant.install.environments import check_disk, check_target
from assistant.install.installation import find_reusable, list_commands
from assistant.install.site import Site, interpreter, is_ours
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.record import replace
from assistant.model.report import LogLine, Progress

pytestmark = pytest.mark.process


def test_an_environment_is_made_and_known_as_a_kernel(bench: Bench, tmp_path: Path) -> None:
    """It imports what was resolved and has a kernel; every package is counted, every line of uv is logged."""
    made = bench.make(bench.resolution())
    with running([made.python, "-c", "import torch, numpy; print(torch.__version__)"]) as child:
        assert list(child) == ["9.0"]
    assert made.packages == {"ipykernel": "7.0", "numpy": "1.0", "torch": "9.0"}
    assert (tmp_path / "JUPYTER_DATA_DIR" / "kernels" / "torch-cpu-9.0" / "kernel.json").is_file()
    assert is_ours(bench.target)
    last = [event for event in bench.events if isinstance(event, Progress) and event.unit == "packages"][-1]
    assert (last.done, last.total, last.unit) == (4, 4, "packages")  # with pip
    assert any(isinstance(event, LogLine) and "torch==9.0" in str(event.text) for event in bench.events)


def test_sizes_are_known_before_anything_is_fetched(bench: Bench) -> None:
    """The resolution tells the sum of the wheels that the index serves."""
    resolution = bench.resolution()
    assert resolution.download == sum(path.stat().st_size for path in bench.index.folder.rglob("*.whl"))


def test_an_environment_is_looked_at_again_only_when_it_changed(bench: Bench) -> None:
    """Between a look and the installation its Python is not started twice, unless something came or went."""
    bench.make(bench.resolution())
    seen = Site.ask(bench.target, LiveHost())
    assert seen.ask_again(LiveHost()) is seen
    (package,) = bench.target.glob("lib/*/site-packages/numpy-1.0.dist-info")
    package.rename(package.with_name("gone"))
    assert "numpy" not in seen.ask_again(LiveHost()).versions


def test_a_second_installation_finds_the_first(bench: Bench) -> None:
    """The same packages in the same place are not installed again; other packages are not taken for the same."""
    resolution = bench.resolution()
    made = bench.make(resolution)
    here = Site.ask(bench.target, LiveHost())
    assert find_reusable(bench.target, here, resolution) == made
    other = replace(resolution, packages=resolution.packages[:-1])
    assert find_reusable(bench.target, here, other) is None
    replaced = tuple(replace(one, version="10.0") if one.name == "torch" else one for one in here.distributions)
    assert find_reusable(bench.target, replace(here, distributions=replaced), resolution) is None


def test_an_existing_environment_is_untouched(bench: Bench) -> None:
    """Somebody's environment, or any folder with something in it, is refused before anything happens."""
    resolution = bench.resolution()
    bench.target.mkdir(parents=True)
    (bench.target / "pyvenv.cfg").write_text("home = /somewhere", encoding="utf-8")
    with pytest.raises(BadInput, match="already holds an environment"):
        bench.make(resolution)
    assert [path.name for path in bench.target.iterdir()] == ["pyvenv.cfg"]


def test_a_folder_of_other_things_is_refused(tmp_path: Path) -> None:
    """A folder that is no environment is named as such, and so is a file in the way."""
    (tmp_path / "thesis.tex").write_text("x", encoding="utf-8")
    with pytest.raises(BadInput, match="is not an environment"):
        check_target(tmp_path)
    with pytest.raises(BadInput, match="is a file"):
        check_target(tmp_path / "thesis.tex" / "env")


def test_an_index_without_the_wheel_says_so(bench: Bench) -> None:
    """A requirement that cannot be met is told in the resolver's words, and nothing is made."""
    bench.plan = replace(bench.plan, requirements=("torch==10.0",))
    with pytest.raises(WorkFailed, match=r"torch==10\.0"):
        bench.resolution()
    assert not bench.target.exists()


def test_an_index_that_is_down_says_so(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index that nobody answers at is told from a requirement that nobody meets, without colours in a notebook."""
    for name in ("FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.setenv(name, "1")
    bench.index.close()
    asked = "(torch|numpy|ipykernel)"  # all at once: any of them may be the first that has no answer
    with pytest.raises(WorkFailed, match=f"cannot be reached: {bench.index.url}/{asked}/: ") as failure:
        bench.resolution()
    assert "\x1b" not in str(failure.value)
    assert "\x1b" not in str(bench.events)


def test_a_full_disk_is_told_before_anything_is_fetched(tmp_path: Path) -> None:
    """More than the file system has free is refused with both figures."""
    with pytest.raises(WorkFailed, match="free, and this environment needs"):
        check_disk(LiveHost(), tmp_path / "env", 10**15)


def test_the_commands_do_the_same_in_a_terminal(bench: Bench, tmp_path: Path) -> None:
    """As they are shown, in a folder with the lock, they make the environment, also in place of one that stands."""
    (tmp_path / "pylock.toml").write_text(bench.resolution().lock, encoding="utf-8")
    target, variables = tmp_path / "env", {**os.environ, **bench.uv().environment}
    for _time in range(2):
        for command in list_commands(bench.uv(), target, None):
            subprocess.run(command, cwd=tmp_path, env=variables, check=True, capture_output=True)
        subprocess.run([interpreter(target), "-c", "import torch"], check=True)
        assert not (tmp_path / ".env.new").exists()
    assert interpreter(tmp_path / ".env.old").exists()
