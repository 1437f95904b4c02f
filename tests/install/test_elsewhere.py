"""Packages of torch's family that only torch's index has, and packages resolved for another machine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from loopback import LoopbackIndex

from assistant.host.live import LiveHost
from assistant.host.process import CancelToken
from assistant.install import RemotePlan, Sources, Tools
from assistant.install.sources import uv_platform
from assistant.install.uv import Uv, resolve
from assistant.model.errors import WorkFailed
from assistant.model.machine import Machine
from assistant.model.plan import Backend, Plan
from assistant.model.record import replace

ROCM = Plan(
    backend=Backend.ROCM,
    variant="rocm7.2",
    torch="2.14.1",
    python="{}.{}".format(*sys.version_info),
    requirements=("torch==2.14.1", "numpy"),
)


@pytest.fixture
def pypi(tmp_path: Path, loopback_index: LoopbackIndex) -> LoopbackIndex:
    """Serve an index beside torch's own; it holds no Triton for ROCm, but a decoy of numpy lies on torch's."""
    (tmp_path / "pypi").mkdir()
    other = LoopbackIndex(tmp_path / "pypi")
    loopback_index.add("torch", "2.14.1+rocm7.2", requires=("triton-rocm==3.5.0", "numpy"))
    loopback_index.add("triton-rocm", "3.5.0")
    loopback_index.add("numpy", "9.9")
    other.add("numpy", "2.1.0")
    other.add("numpy", "2.2.0", "cp312-cp312-win_amd64")
    other.add("ipykernel", "7.1.0")
    yield other
    other.close()


def test_torch_gets_the_triton_that_only_its_own_index_has(
    pypi: LoopbackIndex, loopback_index: LoopbackIndex, tmp_path: Path
) -> None:
    """Torch for ROCm and XPU requires one that the plan does not name; it is found, and numpy stays from elsewhere."""
    uv = Uv(
        python=sys.executable,
        environment={"UV_DEFAULT_INDEX": pypi.url, "UV_CACHE_DIR": str(tmp_path / "cache"), "UV_HTTP_RETRIES": "0"},
        sink=lambda _event: None,
        cancel=CancelToken(),
    )
    found = resolve(replace(ROCM, index_url=loopback_index.url), uv)
    assert found.versions["triton-rocm"] == "3.5.0"
    assert found.versions["numpy"] == "2.1.0"
    loopback_index.trouble["triton-rocm"] = 404
    with pytest.raises(WorkFailed, match="triton-rocm"):
        resolve(replace(ROCM, index_url=loopback_index.url), uv)


def test_packages_are_resolved_for_another_system_and_python(
    pypi: LoopbackIndex, loopback_index: LoopbackIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows gets its own wheels on Linux, without that Python being here or fetched."""
    monkeypatch.setenv("UV_DEFAULT_INDEX", pypi.url)
    monkeypatch.setenv("UV_INDEX", "")
    host = LiveHost()
    tools = Tools(host, Sources(host), lambda _event: None, CancelToken())
    windows = Machine(os="windows", os_version="Windows 11", arch="x86_64", python="3.12")
    plan = replace(ROCM, python="3.12", index_url=loopback_index.url)
    assert RemotePlan(plan, windows).resolve(tools).versions["numpy"] == "2.2.0"
    with pytest.raises(WorkFailed, match=r"3\.13t cannot be resolved here"):
        RemotePlan(replace(plan, python="3.13t"), windows).resolve(tools)


@pytest.mark.parametrize(
    ("machine", "platform"),
    [
        (Machine(os="linux", arch="x86_64", glibc="2.39"), "x86_64-manylinux_2_39"),
        (Machine(os="linux", arch="aarch64", glibc="2.28"), "aarch64-manylinux_2_28"),
        (Machine(os="linux", arch="x86_64", glibc="2.99"), "x86_64-manylinux_2_40"),
        (Machine(os="linux", arch="x86_64", glibc="2.12"), ""),
        (Machine(os="linux", arch="x86_64", libc="musl 1.2.5"), "x86_64-unknown-linux-musl"),
        (Machine(os="linux", arch="riscv64", glibc="2.39"), ""),
        (Machine(os="windows", arch="AMD64"), "x86_64-pc-windows-msvc"),
        (Machine(os="windows", arch="ARM64"), "aarch64-pc-windows-msvc"),
        (Machine(os="macos", arch="arm64"), "aarch64-apple-darwin"),
    ],
)
def test_a_machine_is_named_as_uv_names_it(machine: Machine, platform: str) -> None:
    """The newest C library that uv knows and the machine has; nothing for a processor that uv does not know."""
    assert uv_platform(machine) == platform


def test_the_commands_are_those_of_that_system() -> None:
    """Nothing of this machine stands in them: pages of wheels are named, folders are not."""
    plan = Plan(
        backend=Backend.CUDA,
        variant="cu130",
        torch="2.15.0",
        python="3.12",
        index_url="https://download.pytorch.org/whl/cu130",
        links=("/home/jane/wheels", "https://wheels.example/links.html"),
        requirements=("torch==2.15.0", "numpy"),
    )
    first, second = RemotePlan(plan, Machine(os="windows")).commands
    assert first == ("uv", "venv", "--seed", "--python", "3.12", "torch-env")
    assert second[3:6] == ("--python", "torch-env/Scripts/python.exe", "--extra-index-url")
    assert second[second.index("--find-links") :] == (
        *("--find-links", "https://wheels.example/links.html", "torch==2.15.0", "numpy", "ipykernel"),
    )
    assert "jane" not in " ".join(second)
    assert "--extra-index-url" not in RemotePlan(replace(plan, index_url=None), Machine(os="linux")).commands[1]
