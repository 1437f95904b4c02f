"""Commands are typed for the Python that a log's program runs in, and a plan changes as little of it as it can."""

from __future__ import annotations

import pytest

from assistant.diagnose import interpreter_of, read_log, with_interpreter
from assistant.i18n import render
from assistant.model.finding import Interpreter, Remedy
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.session.diagnosis import causes_for_log_python, find_causes_and_lines

INSTALL = "python -m pip install torch==2.9.0 --index-url https://download.pytorch.org/whl/cu128"
FAILED = "\nRuntimeError: CUDA error: no kernel image is available for execution on the device"
VENV = 'File "/home/ada/webui/venv/lib/python3.10/site-packages/torch/nn/functional.py", line 1, in x'
CASES = {
    "traceback": (VENV, "linux", "/home/ada/webui/venv/bin/python -m pip install"),
    "system's": ('File "/usr/lib/python3.12/site-packages/torch/x.py"', "linux", "python -m pip install"),
    "portable": (r"D:\ComfyUI_windows_portable>.\python_embeded\python.exe -s main.py", "windows", None),
    "printed": (
        r'venv "D:\my webui\venv\Scripts\Python.exe"',
        "windows",
        r"""powershell -c "& 'D:\my webui\venv\Scripts\Python.exe' -m pip install torch==2.9.0""",
    ),
    "bundled": (r"E:\tts>runtime\python.exe -I webui.py", "windows", r"runtime\python.exe -m pip install"),
    "application": (
        "text-generation-webui, start_linux.sh",
        "linux",
        "./installer_files/env/bin/python -m pip install",
    ),
    "other system's": ("GPT-SoVITS", "linux", "python -m pip install"),
    "base": (r"C:\Users\ada\AppData\Local\Programs\Python\Python312\python.exe app.py", "windows", "python -m pip"),
    "uv pip": ("$ uv pip install torch", "linux", "uv pip install torch==2.9.0 --default-index https://"),
    "pdm": ("$ pdm install", "linux", "pdm run python -m pip install torch==2.9.0 --index-url"),
    "server": (r'File "\\evil.example\share\venv\Lib\site-packages\torch\x.py"', "windows", "python -m pip"),
}


@pytest.mark.parametrize(("text", "system", "begins"), CASES.values(), ids=CASES)
def test_a_command_is_typed_for_the_python_of_the_program(text: str, system: str, begins: str | None) -> None:
    """A path in the log goes before the application's habit, and a Python of the system is nobody's environment."""
    where = interpreter_of(read_log(text), Machine(os=system))
    remedy = with_interpreter(
        Remedy(text="Install it.", commands=(INSTALL,), check=('python -c "import torch"',)), where
    )
    expected = begins or r".\python_embeded\python.exe -s -m pip install"
    assert remedy.commands[0].startswith(expected)
    assert remedy.commands[0].partition(" install ")[2].startswith("torch==2.9.0")


@pytest.mark.parametrize("folder", ["/opt/$(id)/venv", "/opt/a;id;/venv", "/opt/`id`/venv", "/opt/a&b/venv"])
def test_what_a_shell_would_read_is_no_path(folder: str) -> None:
    """A log is a stranger's text: what it calls a folder is not typed into a command unless it is plain."""
    text = (
        f'File "{folder}/lib/python3.10/site-packages/torch/nn/functional.py", line 1, in x\n$ {folder}/bin/python a.py'
    )
    where = interpreter_of(read_log(text), Machine(os="linux"))
    assert with_interpreter(Remedy(text="Install it.", commands=(INSTALL,)), where).commands == (INSTALL,)


def test_a_project_takes_the_change_itself() -> None:
    """What uv or Poetry keeps is changed by their own commands: pip's change would be undone at the next sync."""
    uv = with_interpreter(Remedy(text="Install it.", commands=(INSTALL,)), Interpreter(python="python", project="uv"))
    assert uv.commands == ("uv add --index pytorch-cu128=https://download.pytorch.org/whl/cu128 torch==2.9.0",)
    poetry = with_interpreter(
        Remedy(text="Install it.", commands=(INSTALL,)), Interpreter(python="python", project="Poetry")
    )
    assert poetry.commands == (
        "poetry source add --priority=explicit pytorch-cu128 https://download.pytorch.org/whl/cu128",
        "poetry add --source pytorch-cu128 torch==2.9.0",
    )
    assert render(uv.text).startswith("Install it. In pyproject.toml write explicit = true")
    assert "undoes it" not in render(poetry.text)


def test_conda_exchanges_its_own_pytorch() -> None:
    """What conda installed is neither removed nor replaced by pip; the environment is the one that the log names."""
    listed = "$ conda list -n tv\npytorch    2.6.0   cpu_generic_py312_h5a8bb4a_3    conda-forge\n"
    where = interpreter_of(read_log(listed), Machine(os="linux"))
    commands = ("python -m pip uninstall -y torch torchvision", f"{INSTALL} torchvision==0.24.0")
    remedy = with_interpreter(Remedy(text="Install it.", commands=commands, check=('python -c "import torch"',)), where)
    assert remedy.commands == ("conda install -n tv -c conda-forge pytorch-gpu torchvision",)
    assert remedy.check == ('conda run -n tv python -c "import torch"',)


def test_what_a_project_cannot_take_itself_is_told_to_be_undone() -> None:
    """An option that only pip knows is left to pip, with a word about the next sync."""
    where = interpreter_of(read_log("$ uv sync"), Machine(os="linux"))
    remedy = with_interpreter(Remedy(text="Install it.", commands=("python -m pip install --no-deps xformers",)), where)
    assert remedy.commands == ("uv pip install --no-deps xformers",)
    assert "`uv sync` undoes it" in render(remedy.text)


def test_a_change_within_a_container_is_told_to_go_with_it() -> None:
    """The image has to have it."""
    where = interpreter_of(read_log("$ docker compose up"), Machine(os="linux"))
    remedy = with_interpreter(Remedy(text="Install it.", commands=(INSTALL,)), where)
    assert "Dockerfile" in render(remedy.text)


@pytest.mark.parametrize(
    ("packages", "python", "expected"),
    [
        # the release stays where a build of it fits, with its torchvision and torchaudio
        ({"torch": "2.9.0+cpu"}, "3.11", "torch==2.9.0 torchvision==0.24.0 torchaudio==2.9.0"),
        ({"torch": "2.9.0+cpu"}, None, "torch==2.9.0 torchvision==0.24.0 torchaudio==2.9.0"),
        # what is there is not told: torchvision and torchaudio change all the same
        ({}, "3.10", "torch==2.14.1 torchvision==0.29.1 torchaudio==2.11.0"),
    ],
)
def test_a_build_is_changed_in_the_environment_that_stands(packages, python, expected) -> None:
    """The CPU build gives way to that of the GPU: same release, same Python, same environment."""
    card = Gpu(vendor=Vendor.NVIDIA, name="NVIDIA GeForce RTX 4070", compute_capability="8.9")
    machine = Machine(os="linux", arch="x86_64", python=python, gpus=(card,), packages=packages)
    log = read_log(f"{VENV}\nAssertionError: Torch not compiled with CUDA enabled")
    first = causes_for_log_python(find_causes_and_lines(log, machine), log, machine)[0][0].remedies[0]
    assert first.commands[0].startswith("/home/ada/webui/venv/bin/python -m pip uninstall -y torch")
    assert f" install {expected} --index-url https://download.pytorch.org/whl/cu1" in first.commands[1]
