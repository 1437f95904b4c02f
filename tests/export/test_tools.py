"""Every format is read by the tool that it is for, for a machine of each backend and system."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import dotenv
import pytest
from export.setups import BOARDS
from packaging.pylock import Pylock
from packaging.requirements import Requirement
from ruamel.yaml import YAML

from assistant.detect import read_report
from assistant.export import FORMATS, read_config
from assistant.model.plan import Backend

pytestmark = pytest.mark.full

LINUX = [name for name in BOARDS if not name.startswith(("windows", "macos"))]
board = pytest.mark.parametrize("name", BOARDS)


def run(*command: object, **options: object) -> str:
    """Run a tool of the tests' own environment; fail with what it said."""
    scripts = sysconfig.get_path("scripts")
    found = shutil.which(str(command[0]), path=f"{scripts}{os.pathsep}{os.environ['PATH']}")
    assert found, f"{command[0]} is not installed"
    done = subprocess.run([found, *map(str, command[1:])], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@board
def test_what_is_missing_is_what_no_tool_could_use(exports, name):
    """All formats are there; containers of other systems than Linux are left out."""
    files = {path.relative_to(exports[name]).as_posix() for path in exports[name].rglob("*") if path.is_file()}
    left_out = {"Dockerfile", ".devcontainer/devcontainer.json"} if name not in LINUX else set()
    names = {name for key, kind in FORMATS.items() for name in (key, *kind.names)}
    assert names - {"launch"} - files == left_out
    assert "launch" in {file.partition("/")[0] for file in files}


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="hadolint has no wheel for Windows")
def test_hadolint_finds_nothing_in_the_dockerfiles(exports):
    """The Dockerfile's linter is content."""
    run("hadolint", *(exports[name] / "Dockerfile" for name in LINUX))


FLAGS = {
    "linux-ubuntu2404-rtx4090": ["--gpus", "all"],
    "linux-arch-rx9070xt": ["--device=/dev/kfd", "--device=/dev/dri", "--group-add=video"],
    "wsl-ubuntu2404-rx7900xtx": ["--device=/dev/dxg"],
    "linux-ubuntu2510-arc-b580": ["--device=/dev/dri"],
    "linux-debian12-cpu-container": [],
}


@pytest.mark.parametrize("name", FLAGS)
def test_the_container_gets_the_device_of_its_backend(exports, name):
    """Dockerfile and devcontainer hand over the same device, and nothing for a CPU."""
    text = (exports[name] / "Dockerfile").read_text("utf-8")
    container = json.loads(
        (exports[name] / ".devcontainer" / "devcontainer.json").read_text("utf-8").partition("\n")[2]
    )
    for flag in FLAGS[name]:
        assert flag in text
        assert flag in container["runArgs"]
    assert container["build"]["dockerfile"] == "../Dockerfile"
    assert bool(container["runArgs"]) == bool(FLAGS[name])
    assert "libze-intel-gpu1" in text or "-arc-" not in name


@board
def test_python_dotenv_reads_the_variables(exports, name):
    """The device in `.env` is the one that was verified."""
    variables = dotenv.dotenv_values(exports[name] / ".env")
    assert (
        variables["INFERENCE_DEVICE"]
        == read_config((exports[name] / "assistant.toml").read_text(encoding="utf-8")).verification.device
    )


@board
def test_conda_and_pip_read_the_environment(exports, name):
    """The YAML names a channel and a Python; each of pip's lines is an option or a requirement."""
    environment = YAML(typ="safe").load(exports[name] / "environment.yml")
    assert set(environment) == {"name", "channels", "dependencies", "variables"}
    python, pip, packages = environment["dependencies"]
    assert re.fullmatch(r"python=3\.\d+", python)
    assert pip == "pip"
    for line in packages["pip"]:
        assert line.startswith("--find-links https://") or Requirement(line)
    assert environment["channels"] == ["conda-forge"]


@board
def test_the_copies_and_the_check_are_python(exports, name):
    """What is to be taken along compiles, and is what the assistant has tested but for the mark in front."""
    for file in ("device.py", "fallback.py", "verify.py"):
        compile((exports[name] / file).read_text("utf-8"), file, "exec")
    tested = Path(__file__).parents[2] / "assistant" / "runtime" / "device.py"
    assert (exports[name] / "device.py").read_text("utf-8").partition("\n")[2] == tested.read_text("utf-8")


WANTED = {
    "linux-arch-rx9070xt": {"sdnext/start-sdnext.sh": "--use-rocm", "a1111/webui-user.sh": "+rocm7.2"},
    "windows10-rx580": {"comfyui/run_nvidia_gpu.bat": "--directml", "forge/webui-user.bat": "--directml"},
    "linux-debian12-cpu-container": {"comfyui/start-comfyui.sh": "--cpu", "forge/webui-user.sh": "--always-cpu"},
    "linux-ubuntu2510-arc-b580": {"sdnext/start-sdnext.sh": "--use-ipex"},
    "macos15-m3max": {"a1111/webui-user.sh": "--no-half-vae"},
}


@pytest.mark.parametrize("name", WANTED)
def test_launch_settings_choose_the_backend_and_no_other(exports, name):
    """Each application gets the argument of its backend; none on Linux gets DirectML."""
    texts = {path: (exports[name] / "launch" / path).read_text("utf-8") for path in WANTED[name]}
    for path, word in WANTED[name].items():
        assert word in texts[path]
    if not name.startswith("windows"):
        assert not any("directml" in text for text in texts.values())


@pytest.mark.process
@board
def test_shells_read_the_launch_scripts(exports, name):
    """Bash parses each script; StabilityMatrix's arguments are JSON with the fields of its options."""
    for script in (exports[name] / "launch").rglob("*.sh"):
        run("bash", "-n", script)
    arguments = json.loads((exports[name] / "launch" / "stabilitymatrix" / "LaunchArgs.json").read_text("utf-8"))
    rows = [row for application, options in arguments.items() if application != "//" for row in options]
    assert all(set(row) == {"Name", "Type", "OptionValue"} and row["Name"].startswith("--") for row in rows)


@board
def test_a_lock_without_packages_is_a_lock(exports, name):
    """`pylock.toml` is what PEP 751 describes, without the first lines in which uv names folders."""
    text = (exports[name] / "pylock.toml").read_text("utf-8")
    Pylock.from_dict(tomllib.loads(text)).validate()
    assert "uv pip compile" not in text


@board
def test_the_report_can_be_read_by_detect(exports, name):
    """`detect --from report.md` gives the machine: system, GPUs of each maker, driver, torch."""
    machine = read_config((exports[name] / "assistant.toml").read_text(encoding="utf-8")).machine
    found = read_report((exports[name] / "report.md").read_text("utf-8")).machine
    assert found.os == machine.os
    assert found.arch == machine.arch
    assert bool(found.wsl) == bool(machine.wsl)
    assert found.nvidia_driver == machine.nvidia_driver
    assert found.packages["torch"].startswith("2.")
    names = [gpu.name for gpu in found.gpus]
    assert [gpu.name for gpu in machine.gpus] == names


def test_every_backend_is_tried(exports):
    """The machines of these tests stand for all backends."""
    plans = [read_config((folder / "assistant.toml").read_text(encoding="utf-8")).plan for folder in exports.values()]
    assert {plan.backend for plan in plans} == set(Backend)


@pytest.mark.process
def test_the_check_computes(cpu_setup):
    """`verify.py` finds the CPU right with a real torch, and fails where torch is another one."""
    folder, python = Path(cpu_setup["exported"][0]).parent, cpu_setup["environment"]["python"]
    env = {**os.environ, "INFERENCE_DEVICE": "cpu", "PYTHONDONTWRITEBYTECODE": "1"}
    said = run(python, folder / "verify.py", env=env)
    assert said.count(" ok") == 4
    other = (folder / "verify.py").read_text("utf-8").replace('EXPECTED = "', 'EXPECTED = "9')
    done = subprocess.run(
        [python, "-c", other], env={**env, "PYTHONPATH": str(folder)}, capture_output=True, check=False
    )
    assert done.returncode == 1
