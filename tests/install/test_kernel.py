"""Kernels as JupyterLab shows and starts them: their names, their picture, and which environment `!pip` means there."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from string import Template

import pytest
from install.workbench import Bench
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager
from loopback import make_wheel

from assistant.host.files import link_or_copy
from assistant.host.live import LiveHost
from assistant.install.kernel import (
    LOGOS,
    choose_launcher_name,
    kernel_folder,
    kernel_names_by_environment,
    kernel_title,
    record_kernel,
    register_kernel,
    remove_kernel,
    restore_kernel,
    set_variables,
)
from assistant.install.site import Site
from assistant.model.errors import WorkFailed
from assistant.model.plan import Backend, Plan
from assistant.model.record import replace
from assistant.model.report import Environment

PLAN = Plan(backend=Backend.ROCM, variant="rocm7.2", torch="2.14.0", python="3.12")
OURS = sorted(["kernel.json", *(logo.name for logo in LOGOS.iterdir())])


@pytest.fixture(autouse=True)
def _own_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    monkeypatch.setenv("JUPYTER_PATH", "")


def made(folder: Path, name: str = "torch", title: str = "PyTorch 2.14 · ROCm") -> Environment:
    """Describe an environment."""
    return Environment(path=str(folder), python=str(folder / "bin" / "python"), kernel=name, display_name=title)


@pytest.mark.parametrize(
    ("plan", "card", "title"),
    [
        (PLAN, "Radeon RX 7800 XT", "PyTorch 2.14 · Radeon RX 7800 XT"),
        (PLAN, "", "PyTorch 2.14 · ROCm"),
        (replace(PLAN, backend=Backend.CPU, torch="2.13.0"), "", "PyTorch 2.13 · CPU"),
        (replace(PLAN, backend=Backend.CPU), "GeForce RTX 4090", "PyTorch 2.14 · CPU"),
        (replace(PLAN, backend=Backend.CUDA, torch="2.16.0.dev20261121"), "GB10", "PyTorch 2.16 · GB10"),
    ],
)
def test_a_kernel_is_called_after_what_computes(plan: Plan, card: str, title: str) -> None:
    """The release line and the card, or the backend where no card is known; a CPU's build names no card."""
    assert kernel_title(plan, card) == title


def test_no_two_kernels_are_called_alike(tmp_path: Path) -> None:
    """The second is told by its folder, the next in a folder of that name by a number; its own name is kept."""
    titles = []
    for number, place in enumerate(("a/course", "b/course", "c/course", "d/thesis")):
        folder = tmp_path / place
        titles.append(choose_launcher_name(PLAN, folder / "bin" / "python", folder.name))
        register_kernel(PLAN, made(folder, f"torch-{number}", titles[-1]))
    title = "PyTorch 2.14 · ROCm"
    assert titles == [title, f"{title} (course)", f"{title} (course 2)", f"{title} (thesis)"]
    for folder, shown in zip(("a/course", "b/course"), titles, strict=False):
        assert choose_launcher_name(PLAN, tmp_path / folder / "bin" / "python", Path(folder).name) == shown


def test_a_kernel_has_a_picture_that_goes_with_it(tmp_path: Path) -> None:
    """JupyterLab finds the picture; removal leaves nothing, but what somebody else put there stays."""
    one = made(tmp_path / "env")
    register_kernel(PLAN, one)
    folder = kernel_folder("torch")
    assert sorted(path.name for path in folder.iterdir()) == OURS
    spec = KernelSpecManager(kernel_dirs=[str(folder.parent)]).get_kernel_spec("torch")
    assert spec.display_name == "PyTorch 2.14 · ROCm"
    remove_kernel("torch", Path(one.python))
    assert not folder.exists()
    register_kernel(PLAN, one)
    (folder / "logo-svg.svg").write_text("<svg>mine</svg>")
    register_kernel(PLAN, one)
    remove_kernel("torch", Path(one.python))
    assert [path.name for path in folder.iterdir()] == ["logo-svg.svg"]
    assert (folder / "logo-svg.svg").read_text() == "<svg>mine</svg>"


@pytest.mark.parametrize("text", ["", "[]", "null", '{"env": [1]}', '{"env": null}'])
def test_a_kernel_that_somebody_wrote_is_refused_in_a_sentence(text: str) -> None:
    """Its file may hold any JSON, or none."""
    folder = kernel_folder("theirs")
    folder.mkdir(parents=True)
    (folder / "kernel.json").write_text(text)
    with pytest.raises(WorkFailed, match="theirs cannot be read"):
        set_variables("theirs", {"TORCH_HOME": "/models"})
    assert (folder / "kernel.json").read_text() == text


def test_an_undo_puts_the_folder_back(tmp_path: Path) -> None:
    """A new kernel goes with its pictures; a kernel of before has its old text, and no picture that it had not."""
    one = made(tmp_path / "env")
    folder, python = kernel_folder("torch"), Path(one.python)
    note = record_kernel("torch", python)
    register_kernel(PLAN, one)
    restore_kernel(note)
    assert not folder.exists()
    folder.mkdir(parents=True)
    before = json.dumps({"argv": [one.python], "display_name": "mine"})
    (folder / "kernel.json").write_text(before)
    shutil.copy(LOGOS / "logo-svg.svg", folder)
    note = record_kernel("torch", python)
    register_kernel(PLAN, one)
    restore_kernel(note)
    assert (folder / "kernel.json").read_text() == before
    assert sorted(path.name for path in folder.iterdir()) == ["kernel.json", "logo-svg.svg"]


def test_an_undo_takes_away_what_a_kill_left_half_written(tmp_path: Path) -> None:
    """No folder stays that Jupyter would look into for a kernel."""
    note = record_kernel("torch-new", tmp_path / "bin" / "python")
    folder = kernel_folder("torch-new")
    folder.mkdir(parents=True)
    (folder / f".kernel.json.{2**22 + 1}-0123abcd.part").write_text('{"argv": [', encoding="utf-8")
    restore_kernel(note)
    assert not folder.exists()


def test_the_environments_programs_come_first(tmp_path: Path) -> None:
    """Jupyter fills in the PATH of the moment, and leaves a dollar in a folder's name alone."""
    folder = tmp_path / "cash$HOME"
    register_kernel(PLAN, made(folder))
    env = json.loads((kernel_folder("torch") / "kernel.json").read_text(encoding="utf-8"))["env"]
    filled = {name: Template(text).safe_substitute({"PATH": "/usr/bin", "HOME": "/x"}) for name, text in env.items()}
    assert filled["PATH"] == f"{folder / 'bin'}{os.pathsep}/usr/bin"
    assert filled["VIRTUAL_ENV"] == str(folder)
    folder.mkdir()  # one that stands and is no virtual environment, such as conda's
    register_kernel(PLAN, made(folder))
    env = json.loads((kernel_folder("torch") / "kernel.json").read_text(encoding="utf-8"))["env"]
    assert "VIRTUAL_ENV" not in env


@pytest.mark.process
def test_pip_comes_from_the_index_where_python_brings_none(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Debian without python3-venv; where no index has it either, the environment is made and the log says so."""
    monkeypatch.setattr("assistant.install.contents._FIND", "pass")
    bench.make(bench.resolution())
    assert any("has no pip" in str(getattr(event, "text", "")) for event in bench.events)
    assert "pip" not in Site.ask(bench.target, LiveHost()).versions
    bench.index.add("pip", "99.0")
    bench.target = bench.target.with_name("second")
    made_there = bench.make(bench.resolution())
    assert Site.ask(bench.target, LiveHost()).versions["pip"] == "99.0"
    assert "pip" not in made_there.packages  # no lock and no comparison knows of it


class Notebook:
    """A notebook on a kernel: cells are run and their output is read."""

    def __init__(self, kernel: str) -> None:
        self._manager = KernelManager(kernel_name=kernel)
        self._manager.start_kernel()
        self._client = self._manager.blocking_client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=60)

    def run(self, code: str) -> str:
        """Run a cell; give all that it printed."""
        said: list[str] = []

        def hear(message: dict[str, object]) -> None:
            content = message["content"]
            said.append(content.get("text", "") or "\n".join(content.get("traceback", ())))

        self._client.execute_interactive(code, output_hook=hear, timeout=120)
        return "".join(said)

    def close(self) -> None:
        """End the kernel."""
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)


@pytest.fixture
def prefix(cpu_environment: Environment, tmp_path: Path) -> Path:
    """Give a copy of a real CPU environment, as other tests use that one at the same time, and a kernel for it."""
    copy, kernel = tmp_path / "env", Path("kernels", str(cpu_environment.kernel), "kernel.json")
    shutil.copytree(
        cpu_environment.path, copy, symlinks=True, copy_function=lambda file, goal: link_or_copy(Path(file), Path(goal))
    )
    spec = (Path(cpu_environment.path).parent / "JUPYTER_DATA_DIR" / kernel).read_text("utf-8")
    (tmp_path / "data" / kernel).parent.mkdir(parents=True)
    (tmp_path / "data" / kernel).write_text(spec.replace(cpu_environment.path, str(copy)), "utf-8")
    return copy


@pytest.fixture
def notebook(
    prefix: Path, cpu_environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Notebook]:
    """Give a notebook on the kernel of that copy, as the assistant registered it."""
    assert (prefix / "pyvenv.cfg").is_file()
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("PATH", os.pathsep.join(["/nowhere", os.environ["PATH"]]))
    one = Notebook(str(cpu_environment.kernel))
    yield one
    one.close()


@pytest.mark.torch
def test_pip_in_a_notebook_changes_this_environment_and_no_other(
    notebook: Notebook, prefix: Path, tmp_path: Path
) -> None:
    """`!pip` and `%pip` are the environment's own, install into it, and may not replace torch."""
    assert f"from {prefix}" in notebook.run("!pip --version")
    assert notebook.run("!python -c 'import sys; print(sys.prefix)'").strip() == str(prefix)
    assert ":/nowhere:" in notebook.run("import os; print(os.environ['PATH'])")
    wheel = make_wheel(tmp_path, "small-thing", "1.0", "py3-none-any")
    assert "Successfully installed small-thing-1.0" in notebook.run(f"%pip install --no-index {wheel}")
    assert notebook.run("import small_thing; print(small_thing.__file__)").startswith(str(prefix))
    assert "Successfully uninstalled" in notebook.run("!pip uninstall -y small-thing")
    make_wheel(tmp_path, "torch", "1.0", "py3-none-any")
    said = notebook.run(f"%pip install --no-index --find-links {tmp_path} torch==1.0")
    assert "torch==1.0" in said
    assert "constraint" in said
    assert "2.13.0" in notebook.run("import torch; print(torch.__version__)")
    assert Site.ask(Path(prefix), LiveHost()).versions["torch"].startswith("2.13.0")


def test_a_kernel_of_conda_on_windows_is_its_environments(tmp_path: Path) -> None:
    """Conda keeps python.exe in the environment's own folder, not in one below it."""
    environment = tmp_path / "envs" / "tv"
    (environment / "conda-meta").mkdir(parents=True)
    spec = tmp_path / "jupyter" / "kernels" / "tv" / "kernel.json"
    spec.parent.mkdir(parents=True)
    words = [str(environment / "python.exe"), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec.write_text(json.dumps({"argv": words, "display_name": "tv", "language": "python"}))
    assert kernel_names_by_environment() == {environment: ["tv"]}
