"""Real failures, made on this machine, named by their logs and ended by their remedies."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from stage import HERE

from assistant.diagnose import read_log
from assistant.model.finding import Diagnosis
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.report import Environment
from assistant.session.diagnosis import diagnosed

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(sys.platform != "linux", reason="these failures are made on Linux"),
    pytest.mark.full,
]


def sh(*command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command and keep what it printed, both streams in one."""
    return subprocess.run(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C.UTF-8", **environment},
    )


def uv(*arguments: object) -> str:
    """Run uv; the test fails with its output when it does."""
    done = sh(sys.executable, "-m", "uv", *arguments)
    assert done.returncode == 0, done.stdout
    return done.stdout


def cause(failed: subprocess.CompletedProcess[str], machine: Machine = HERE) -> Diagnosis:
    """Diagnose a command that failed."""
    assert failed.returncode != 0, failed.stdout
    return diagnosed(read_log(failed.stdout), machine)[0]


def passes(command: str, python: Path) -> bool:
    """Run a remedy's check with the environment's python first on the path."""
    done = sh("sh", "-c", command, PATH=f"{python.parent}{os.pathsep}{os.environ['PATH']}")
    return done.returncode == 0


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """Make an empty environment; give its python."""
    uv("venv", "--python", sys.executable, tmp_path / "env")
    return tmp_path / "env" / "bin" / "python"


@pytest.fixture
def beside_torch(plain: Path, cpu_environment: Environment) -> Path:
    """Make an environment that sees the CPU torch of another one, which stays as it is; give its python."""
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    mine, other = (sh(python, "-c", where).stdout.strip() for python in (plain, cpu_environment.python))
    if Path(mine).parent.name != Path(other).parent.name:
        pytest.fail("the CPU environment has another Python", pytrace=False)
    Path(mine, "beside.pth").write_text(other)
    return plain


def test_directml_on_native_linux(beside_torch: Path, cpu_environment: Environment) -> None:
    """The real torch-directml fails to import; the plan is the honest CPU one here, ROCm with a Radeon."""
    uv("pip", "install", "--python", beside_torch, "--no-deps", "torch-directml==0.2.5.dev240914")
    failed = sh(beside_torch, "-c", "import torch_directml")
    best = cause(failed, Machine(**{**_fields(HERE), "gpus": (Gpu(vendor=Vendor.AMD, name="Radeon RX 6700 XT"),)}))
    assert best.key == "directml-on-native-linux"
    assert best.remedies[0].plan
    assert best.remedies[0].plan.backend.value == "rocm"
    here = cause(failed)
    assert here.remedies[0].plan
    assert here.remedies[0].plan.backend.value == "cpu"
    # `cpu_environment` is what the assistant installs from that plan: the check says fixed there.
    assert passes(here.remedies[0].check[0], Path(cpu_environment.python))
    remove = here.remedies[1]
    assert not passes(remove.check[0], beside_torch)
    uv("pip", "uninstall", "--python", beside_torch, "torch-directml")
    assert passes(remove.check[0], beside_torch)


def test_cuda_asked_of_a_cpu_build(cpu_environment: Environment) -> None:
    """With an NVIDIA GPU the CUDA build is planned; without one the CPU does the work."""
    python = Path(cpu_environment.python)
    failed = sh(python, "-c", "import torch; torch.ones(2, device='cuda')")
    best = cause(failed, Machine(**{**_fields(HERE), "gpus": (Gpu(vendor=Vendor.NVIDIA, name="GeForce RTX 3060"),)}))
    assert best.key == cause(failed).key == "torch-cpu-build-installed"
    assert best.remedies[0].plan
    assert best.remedies[0].plan.backend.value == "cuda"
    assert sh(python, "-c", "import torch; torch.ones(2, device='cpu')").returncode == 0


def test_two_flavours_of_onnxruntime(plain: Path) -> None:
    """The provider of the first is gone once the second is installed; one alone works."""
    uv("pip", "install", "--python", plain, "--no-deps", "onnxruntime-openvino==1.20.0")
    uv("pip", "install", "--python", plain, "onnxruntime==1.20.1")
    program = "import onnxruntime as o; o.InferenceSession(b'model', providers=['OpenVINOExecutionProvider'])"
    best = cause(sh(plain, "-c", program))
    assert best.key == "onnxruntime-packages-conflict"
    alone = best.remedies[0].check[1]
    assert not passes(alone, plain)
    uninstall, install = best.remedies[0].commands
    assert "onnxruntime-gpu" in uninstall
    uv("pip", "uninstall", "--python", plain, *uninstall.split()[5:])
    uv("pip", "install", "--python", plain, *install.split()[4:])
    assert all(passes(check, plain) for check in best.remedies[0].check)


def test_numpy_of_another_abi(plain: Path) -> None:
    """A module built for NumPy 1 fails with NumPy 2, and works once NumPy 1 is back."""
    uv("pip", "install", "--python", plain, "--no-deps", "onnxruntime==1.16.3", "numpy==2.1.3")
    uv("pip", "install", "--python", plain, "coloredlogs", "flatbuffers", "packaging", "protobuf", "sympy")
    told = sh(plain, "-c", "import onnxruntime").stdout  # Python goes on after this one, with half a module
    best = diagnosed(read_log(told), HERE)[0]
    assert best.key == "numpy2-abi"
    assert best.remedies[0].commands == ('python -m pip install "numpy<2"',)
    uv("pip", "install", "--python", plain, "numpy<2")
    assert sh(plain, "-c", "import onnxruntime; onnxruntime.get_available_providers()").stdout == ""


def test_torchvision_of_another_torch(beside_torch: Path) -> None:
    """A torchvision of an old release beside a new torch has no operators; torch works once it is removed."""
    uv("pip", "install", "--python", beside_torch, "--no-deps", "torchvision==0.19.1", "pillow")
    best = cause(sh(beside_torch, "-c", "import torchvision"))
    assert best.key == "torch-torchvision-mismatch"
    uv("pip", "uninstall", "--python", beside_torch, "torchvision")
    assert sh(beside_torch, "-c", "import torch; torch.ones(2).sum()").returncode == 0


def test_the_environment_without_torch(plain: Path, cpu_environment: Environment) -> None:
    """What runs in the wrong environment runs in the right one."""
    best = cause(sh(plain, "-c", "import torch"))
    assert best.key == "kernel-env-mismatch"
    assert best.remedies[0].check
    assert not passes(best.remedies[0].check[0], plain)
    assert passes(best.remedies[0].check[0], Path(cpu_environment.python))


def test_externally_managed_python(tmp_path: Path) -> None:
    """The system's Python refuses, an environment of one's own does not."""
    system = shutil.which("python3", path="/usr/bin")
    where = sh(system, "-c", "import sysconfig; print(sysconfig.get_path('stdlib'))").stdout.strip() if system else ""
    if not Path(where, "EXTERNALLY-MANAGED").exists():
        pytest.fail("this needs a system with an externally managed Python, such as Debian 12", pytrace=False)
    best = cause(sh(sys.executable, "-m", "uv", "pip", "install", "--python", system, "--dry-run", "six"))
    assert best.key == "externally-managed-env"
    uv("venv", "--python", system, tmp_path / ".venv")
    uv("pip", "install", "--python", tmp_path / ".venv", "six")
    assert sh(tmp_path / ".venv" / "bin" / "python", "-c", "import six").returncode == 0


def test_missing_shared_library(tmp_path: Path) -> None:
    """A library whose own library is gone fails to load, and loads once the loader finds that."""
    assert shutil.which("cc"), "this needs a C compiler to make a library with"
    (tmp_path / "gone.c").write_text("int gone(void) { return 1; }")
    (tmp_path / "user.c").write_text("int gone(void); int user(void) { return gone(); }")
    for name, soname, extra in (("gone", "libgone.so.1", ()), ("user", "libuser.so.1", ("-L.", "-l:libgone.so.1"))):
        command = f"cd {tmp_path} && cc -shared -fPIC -o {soname} -Wl,-soname,{soname} {name}.c {' '.join(extra)}"
        assert sh("sh", "-c", command).returncode == 0
    program = f"import ctypes; ctypes.CDLL({str(tmp_path / 'libuser.so.1')!r})"
    best = cause(sh(sys.executable, "-c", program))
    assert best.key == "missing-system-library"
    assert sh(sys.executable, "-c", program, LD_LIBRARY_PATH=str(tmp_path)).returncode == 0


def test_a_full_disk(tmp_path: Path, plain: Path) -> None:
    """An installation into a full drive fails, and works where there is room."""
    small = tmp_path / "small"
    small.mkdir()
    if sh("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", small).returncode:
        pytest.fail("this needs the right to mount a small drive: run it as root", pytrace=False)
    try:
        best = cause(sh(sys.executable, "-m", "uv", "pip", "install", "--python", plain, "--target", small, "numpy"))
        assert best.key == "disk-full"
    finally:
        sh("umount", small)
    uv("pip", "install", "--python", plain, "--target", tmp_path / "large", "numpy")


def _fields(machine: Machine) -> dict[str, object]:
    return {name: getattr(machine, name) for name in machine.__struct_fields__}
