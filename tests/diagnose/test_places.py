"""A remedy fits the place that a text shows: its Python, distribution, container, and what was done there already."""

from __future__ import annotations

import pytest

from assistant.diagnose import read_log
from assistant.i18n import render
from assistant.model.finding import Remedy
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.session.diagnosis import causes_for_log_python, explain_unknown, find_causes_and_lines, machine_of_log

FAULT = (
    "Memory access fault by GPU node-1 (Agent handle: 0x1) on address 0x7f1e2c5a6000.\namdgpu: MES failed to respond"
)
OLD = "The NVIDIA driver on your system is too old (found version 12060)."
SM = "RuntimeError: CUDA error: no kernel image is available for execution on the device"
PTXAS = "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'\ntriton.runtime.errors.PTXASError"
NVIDIA = Machine(os="windows", wsl=False, gpus=(Gpu(vendor=Vendor.NVIDIA, name="NVIDIA GeForce RTX 5090"),))
LINUX = Machine(os="linux", wsl=False, os_version="Ubuntu 24.04")


def remedies(text: str, machine: Machine) -> tuple[Remedy, ...]:
    """Return the remedies of a text's first cause, as users read them."""
    log = read_log(text)
    here = machine_of_log(log, machine)
    causes = causes_for_log_python(find_causes_and_lines(log, here), log, here)
    return causes[0][0].remedies if causes else ()


def typed(text: str, machine: Machine) -> str:
    """Return the first remedy's sentence and commands."""
    first = remedies(text, machine)[0]
    return "\n".join((render(first.text), *first.commands))


@pytest.mark.parametrize(
    ("line", "manager", "foreign"),
    [
        ("$ rpm -q linux-firmware\nlinux-firmware-20251125-1.fc43.noarch", "dnf", ("apt", "pacman")),
        ("$ pacman -Q linux-firmware", "pacman", ("apt", "dnf")),
        ("Setting up linux-firmware", "apt", ("pacman",)),
    ],
)
def test_the_tools_in_a_text_name_the_distribution(line: str, manager: str, foreign: tuple[str, ...]) -> None:
    """A colleague's log tells whose package manager it is; the machine at hand is another."""
    commands = typed(f"posting for a colleague\n{FAULT}\n{line}", Machine(os="macos"))
    assert f"sudo {manager}" in commands
    assert not [other for other in foreign if f"sudo {other} " in commands]


@pytest.mark.parametrize(
    ("path", "python"),
    [
        (r"E:\forge\system\python\lib\site-packages\torch\cuda\__init__.py", r"E:\forge\system\python\python.exe"),
        (r"D:\demo\.env\lib\site-packages\torch\cuda\__init__.py", r"D:\demo\.env\Scripts\python.exe"),
        (r"D:\mods\py\Lib\site-packages\torch\cuda\__init__.py", r"D:\mods\py\python.exe"),
    ],
)
def test_the_python_is_that_of_the_path(path: str, python: str) -> None:
    """Lower case, other names of environments, and folders without Scripts are understood."""
    assert python in typed(f'  File "{path}", line 9, in f\n{SM}', NVIDIA)


def test_a_release_is_left_for_the_nearest_that_fits() -> None:
    """Who has 2.6 gets 2.7 for a new card, not the newest; the build is one for CUDA 12."""
    machine = Machine(
        os="linux",
        wsl=False,
        python="3.12",
        gpus=NVIDIA.gpus,
        nvidia_driver="576.02",
        packages={"torch": "2.6.0+cu124"},
    )
    commands = typed(f'  File "/srv/venv/lib/python3.12/site-packages/torch/x.py", line 1\n{SM}', machine)
    assert "torch==2.7" in commands
    assert "/whl/cu128" in commands


def test_variables_go_where_the_program_is_started() -> None:
    """A compose file has them under environment:, as the host's shell does not reach the service."""
    assert "TRITON_PTXAS_PATH: /usr" in typed(f"docker compose up\n{PTXAS}", LINUX)


def test_a_program_without_python_gets_no_pip() -> None:
    """A Rust program that lacks CUDA's library is not told to install Python packages."""
    text = (
        "Running `target/debug/scorer`\nFailed to load library libonnxruntime_providers_cuda.so with error:"
        " libcublasLt.so.12: cannot open shared object file: No such file or directory"
    )
    assert remedies(text, LINUX)
    assert not any("pip install" in command for remedy in remedies(text, LINUX) for command in remedy.commands)


def test_nobody_without_nvidia_is_sent_to_its_driver() -> None:
    """A question whose answer cannot help is not asked."""
    amd = Machine(
        os="windows", gpus=(Gpu(vendor=Vendor.AMD, name="AMD Radeon RX 6800 XT"),), packages={"torch": "2.9.0+rocm7"}
    )
    asked = explain_unknown(read_log("torch says there is no gpu now, the gpu is not used"), amd).question
    assert asked is None or "nvidia-smi" not in asked.commands
