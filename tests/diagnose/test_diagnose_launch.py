"""Launch arguments of image applications: read from their logs, corrected for another backend."""

from __future__ import annotations

import pytest

from assistant.catalog.launchers import correct_arguments, launch_line, launchers
from assistant.diagnose import read_log
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.plan import Backend
from assistant.session.diagnosis import find_causes

APPS = {launcher.key: launcher for launcher in launchers()}
FAILED = "ImportError: libd3d12.so: cannot open shared object file: No such file or directory"
RADEON = Machine(
    os="linux", wsl=False, arch="x86_64", python="3.12", gpus=(Gpu(vendor=Vendor.AMD, name="Radeon RX 7900 XTX"),)
)


@pytest.mark.parametrize(
    ("app", "old", "backend", "new"),
    [
        ("a1111", "--medvram --use-directml --port 7861", "rocm", "--medvram --port 7861"),
        ("forge", "--directml 1 --skip-torch-cuda-test --cuda-malloc", "rocm", "--cuda-malloc"),
        ("sdnext", "--use-directml --medvram", "rocm", "--medvram --use-rocm"),
        ("sdnext", "--use-zluda", "xpu", "--use-ipex"),
        ("comfyui", "--directml 0 --listen 0.0.0.0", "rocm", "--listen 0.0.0.0"),
        ("comfyui", "--lowvram", "cpu", "--lowvram --cpu"),
        ("stabilitymatrix", "--directml --no-half-vae", "rocm", "--no-half-vae"),
        ("invokeai", "cuda:1", "cpu", "cpu"),
        ("a1111", "--use-cpu=all --no-half", "cuda", "--no-half"),
    ],
)
def test_arguments_are_corrected_and_all_others_kept(app: str, old: str, backend: str, new: str) -> None:
    """What chooses another backend goes, with its values; what the new one needs comes."""
    assert correct_arguments(APPS[app], tuple(old.split()), Backend(backend)) == tuple(new.split())


@pytest.mark.parametrize("backend", Backend)
@pytest.mark.parametrize("app", APPS)
def test_correcting_twice_changes_nothing_more(app: str, backend: Backend) -> None:
    """Arguments that are right stay as they are."""
    once = correct_arguments(APPS[app], ("--directml", "1", "--port", "7861"), backend)
    assert once is None or correct_arguments(APPS[app], once, backend) == once


def test_a_backend_that_an_application_lacks_is_not_invented() -> None:
    """InvokeAI has no DirectML, the AMD fork does not run on a Mac."""
    assert correct_arguments(APPS["invokeai"], (), Backend.DIRECTML) is None
    assert launch_line(APPS["amdgpu"], (), "macos") is None


def test_the_line_is_written_as_its_file_wants_it() -> None:
    """Windows sets a variable in a batch file, Linux exports it; words with spaces stay one word."""
    words = ("--ckpt-dir", "my models")
    assert launch_line(APPS["a1111"], words, "windows") == 'set COMMANDLINE_ARGS=--ckpt-dir "my models"'
    assert launch_line(APPS["comfyui"], (), "linux") == "python main.py"


@pytest.mark.parametrize(
    ("log", "app", "file", "line"),
    [
        (
            "/home/u/stable-diffusion-webui-forge/launch.py\nLaunching Web UI with arguments: --directml --medvram",
            "Stable Diffusion WebUI Forge",
            "webui-user.sh",
            'export COMMANDLINE_ARGS="--medvram"',
        ),
        (
            "StabilityMatrix/stable-diffusion-webui-forge\nLaunching Web UI with arguments: --directml --medvram",
            "Stable Diffusion WebUI Forge",
            "Data/settings.json, InstalledPackages, LaunchArgs",
            "--medvram",
        ),
        (
            "Starting SD.Next\nCommand line args: ['--use-directml', '--debug']",
            "SD.Next",
            "",
            "./webui.sh --debug --use-rocm",
        ),
        (
            "webui-forge\nLaunching Web UI with arguments: --directml --gradio-allowed-path '/home/u/my images'",
            "Stable Diffusion WebUI Forge",
            "webui-user.sh",
            'export COMMANDLINE_ARGS="--gradio-allowed-path \\"/home/u/my images\\""',
        ),
        ("$ python main.py --directml --listen\n** ComfyUI startup time", "ComfyUI", "", "python main.py --listen"),
    ],
)
def test_a_remedy_tells_the_corrected_line(log: str, app: str, file: str, line: str) -> None:
    """The application and its arguments are read from its own start-up log."""
    best = find_causes(read_log(f"{log}\n{FAILED}"), RADEON)[0]
    assert best.key == "directml-on-native-linux"
    (launch,) = next(remedy.launch for remedy in best.remedies if remedy.launch)
    assert (launch.app, launch.file, launch.line) == (app, file, line)
    assert any("directml" in word for word in launch.drop)


def test_without_an_application_every_known_one_is_told() -> None:
    """A log that names none still says what SD.Next wants."""
    best = find_causes(read_log(FAILED), RADEON)[0]
    changes = {launch.app: launch for remedy in best.remedies for launch in remedy.launch}
    assert changes["SD.Next"].add == ("--use-rocm",)
