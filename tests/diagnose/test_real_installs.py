"""Installations that fail for real on loopback indexes; the first remedy is carried out, then the same line works."""

from __future__ import annotations

import shutil
import sys

import pytest
from stage import PYPI, TORCH, Stage
from torch_wheels import WINDOWS, add_torch

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="these failures are made on Linux"),
    pytest.mark.full,
]
both = pytest.mark.parametrize("tool", ["python -m pip", "uv pip"])
PLANNED = ("torch", "numpy", "onnx", "onnxruntime")


@both
@pytest.mark.parametrize(
    ("slip", "right"),
    [
        (f"{TORCH}/cu127", f"{TORCH}/cu126"),
        (f"{TORCH}/rocm6.5", f"{TORCH}/rocm6.4"),
        (f"{TORCH}/xpus", f"{TORCH}/xpu"),
        ("https://download.pytorch.org/cu126", f"{TORCH}/cu126"),
        ("https://mirrors.nju.edu.cn/pytorch/cu126", "https://mirrors.nju.edu.cn/pytorch/whl/cu126"),
        ("https://pypi.tuna.tsinghua.edu.cn/simpel", "https://pypi.tuna.tsinghua.edu.cn/simple"),
    ],
)
def test_the_address_that_was_meant_has_the_package(stage: Stage, tool: str, slip: str, right: str) -> None:
    """A tag that never was, a path without a part and a mirror's misspelt page lead to the right address."""
    stage.torch.add("torch", "2.9.0")
    stage.stands_for = {stage.torch.url.replace("/simple", "/gone"): slip, stage.torch.url: right, stage.pypi.url: PYPI}
    found = stage.fails(f"{tool} install torch --index-url {slip}")
    assert found.key == "index-wrong"
    stage.carried_out(found.remedies[0])
    stage.does('python -c "import torch"')


@both
@pytest.mark.parametrize(
    ("asked", "right"),
    [
        ("torch-vision", "torchvision"),
        ("pytorch-cpu", "torch"),
        ("flash-attention", "flash-attn"),
        ("transfomers", "transformers"),
        ("onnxruntime-cuda", "onnxruntime-gpu"),
        ("sklearn", "scikit-learn"),
    ],
)
def test_the_name_that_was_meant_is_installed(stage: Stage, tool: str, asked: str, right: str) -> None:
    """Names that people guess, and a slip of the pen, lead to the package that was meant."""
    stage.pypi.add(right, "1.0")
    found = stage.fails(f"{tool} install {asked} --index-url {PYPI}")
    assert found.key == "obsolete-package-name"
    stage.carried_out(found.remedies[0])
    stage.does(f"python -m pip show {right}")
    stage.does(f"uv pip uninstall {right}")


@both
@pytest.mark.parametrize(("package", "version"), [("torch", "2.6.1"), ("torchvision", "0.21.5")])
def test_the_nearest_release_is_installed(stage: Stage, tool: str, package: str, version: str) -> None:
    """A release that nobody published is answered with one that there is."""
    stage.pypi.add(package, version.rpartition(".")[0] + ".0")
    found = stage.fails(f"{tool} install {package}=={version} --index-url {PYPI}")
    assert found.key == "release-not-on-index"
    nearest = found.remedies[0].commands[0].split('"')[1].partition("==")[2]
    stage.pypi.add(package, nearest)
    stage.carried_out(found.remedies[0])
    stage.does(f'python -c "import {package}"')


@pytest.mark.parametrize("package", ["onnxruntime-directml", "torch-directml"])
@both
def test_what_is_for_windows_is_left_for_the_plan_of_this_system(stage: Stage, tool: str, package: str) -> None:
    """DirectML is not to be had on Linux; what is planned instead is installed."""
    stage.pypi.add(package, "1.20.0", "cp311-cp311-win_amd64")
    found = stage.fails(f"{tool} install {package} --index-url {PYPI}")
    assert found.key == "directml-on-native-linux"
    planned(stage, found.remedies[0].plan.requirements if found.remedies[0].plan else ())
    stage.carried_out(found.remedies[0])
    stage.does('python -c "import torch"')
    stage.does(f"uv pip uninstall {' '.join(PLANNED)}")


@both
def test_a_file_of_another_system_is_left_for_the_plan_of_this_one(stage: Stage, tool: str) -> None:
    """A wheel in hand is for Windows; what is planned instead is installed."""
    wheel = add_torch(stage.torch, "2.9.0", "cu130", python="311", platform=WINDOWS)
    found = stage.fails(f"{tool} install {wheel}")
    assert found.key == "wheel-not-for-platform"
    planned(stage, found.remedies[0].plan.requirements if found.remedies[0].plan else ())
    stage.carried_out(found.remedies[0])
    stage.does('python -c "import torch"')
    stage.does(f"uv pip uninstall {' '.join(PLANNED)}")


def planned(stage: Stage, requirements: tuple[str, ...]) -> None:
    """Put what a plan installs on the index that stands for PyPI."""
    for one in requirements:
        name, _is, version = one.partition("==")
        stage.pypi.add(name, version or "1.0")


def test_an_environment_of_venv_gets_pip(stage: Stage) -> None:
    """An environment that venv made without pip gets it by its own Python."""
    stage.does("python -m venv --without-pip bare")
    command = f"{stage.folder}/bare/bin/python -m pip --version"
    found = stage.fails(command)
    assert found.key == "pip-missing-in-env"
    stage.carried_out(found.remedies[0])
    stage.does(command)


@both
def test_a_file_that_is_no_archive_is_had_anew(stage: Stage, tool: str) -> None:
    """A download that was cut off is no wheel; once the server is well, the remedy brings a whole one."""
    wheel = stage.pypi.add("torch", "2.9.0")
    whole = wheel.read_bytes()
    wheel.write_bytes(whole[: len(whole) // 2])
    found = stage.fails(f"{tool} install torch --index-url {PYPI}")
    assert found.key == "download-hash-mismatch"
    wheel.write_bytes(whole)
    for command in found.remedies[0].commands:
        stage.run(f"PIP_INDEX_URL={stage.pypi.url} UV_DEFAULT_INDEX={stage.pypi.url} {command}")
    stage.does('python -c "import torch"')


@pytest.mark.parametrize("broken", ["deleted", "moved"])
def test_an_environment_whose_python_is_gone_is_made_anew(stage: Stage, broken: str) -> None:
    """Uv finds no Python behind the environment's link; in a new environment the plan is installed."""
    stage.does("python -m venv --without-pip old")
    python = stage.folder / "old" / "bin" / "python"
    python.unlink()
    if broken == "moved":
        python.symlink_to(stage.folder / "gone" / "python3.11")
    found = stage.fails(f"uv pip install --python {python} torch")
    assert found.key == "stale-venv"
    plan = found.remedies[0].plan
    assert plan
    planned(stage, plan.requirements)
    shutil.rmtree(stage.folder / "old")
    stage.does(f'uv venv --python "{sys.executable}" old')
    packages = " ".join(plan.requirements)
    stage.does(f"uv pip install --index-url {PYPI} --python {python} {packages}")
    stage.does(f'{python} -c "import torch"')


def test_wheels_are_copied_over_where_no_name_is_resolved(stage: Stage) -> None:
    """Uv cannot resolve the server's name; wheels that were fetched where there is a network are installed."""
    stage.pypi.add("torch", "2.9.0")
    found = stage.fails("uv pip install torch --index-url http://pypi.nowhere.invalid/simple")
    assert found.key == "name-resolution-failed"
    stage.carried_out(found.remedies[0])
    stage.does('python -c "import torch"')
