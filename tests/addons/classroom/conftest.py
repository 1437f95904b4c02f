"""A shelf of small wheels for thirty machines of eight kinds, and who makes a bundle from it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import requires
from pathlib import Path

import forked
import pytest
from loopback import LoopbackIndex
from packaging.requirements import Requirement
from torch_wheels import rewrite

LINUX, WINDOWS, MAC = "manylinux_2_28_x86_64", "win_amd64", "macosx_11_0_arm64"
_WINDOWS = {"os": "windows", "arch": "x86_64", "os_version": "Windows 11 24H2 build 26100", "python": "3.12"}
_LINUX = {"os": "linux", "arch": "x86_64", "os_version": "Ubuntu 24.04", "glibc": "2.39", "python": "3.12"}
_MAC = {"os": "macos", "arch": "arm64", "os_version": "macOS 15.1", "python": "3.12"}


def _nvidia(name: str, capability: str, driver: str) -> dict[str, object]:
    card = {"vendor": "nvidia", "name": f"NVIDIA GeForce {name}", "compute_capability": capability}
    return {"nvidia_driver": driver, "gpus": [card]}


# How many machines there are of each kind.
KINDS = [
    (8, {**_WINDOWS, **_nvidia("RTX 4070", "8.9", "591.44")}),
    (6, _WINDOWS),
    (5, {**_LINUX, **_nvidia("RTX 5090", "12.0", "595.10")}),
    (3, {**_LINUX, **_nvidia("RTX 2080 Ti", "7.5", "565.57")}),
    (2, {**_LINUX, "gpus": [{"vendor": "amd", "name": "AMD Radeon RX 7900 XTX", "gfx": "gfx1100"}]}),
    (2, {**_LINUX, "gpus": [{"vendor": "intel", "name": "Intel Arc B580"}]}),
    (2, _LINUX),
    (2, {**_MAC, "gpus": [{"vendor": "apple", "name": "Apple M3"}]}),
]
TORCH = [
    *(("2.15.0+" + build, LINUX) for build in ("cu130", "cu132", "cpu", "xpu")),
    *(("2.14.1+" + build, LINUX) for build in ("cu126", "rocm7.2")),
    *(("2.15.0+" + build, WINDOWS) for build in ("cu130", "cu132", "cpu")),
    ("2.15.0", MAC),
]
ANYWHERE = {"numpy": "2.4.6", "onnx": "1.23.2", "onnxruntime": "1.29.0", "ipykernel": "7.4.0", "pip": "26.2"}
ANYWHERE |= {"onnxruntime-ep-openvino": "1.8.1"}
UV = "0.13.9"


def machines() -> list[dict[str, object]]:
    """Describe thirty machines, each with a name."""
    kinds = [kind for count, kind in KINDS for _number in range(count)]
    return [{"name": f"pc-{number:02}", **kind} for number, kind in enumerate(kinds, start=1)]


def stock(index: LoopbackIndex) -> None:
    """Put on an index what those machines and the assistant itself need."""
    for version, platform in TORCH:
        index.add("torch", version, f"cp312-{'none' if platform == MAC else 'cp312'}-{platform}")
    for version in ("1.26.0", "1.28.0"):
        for platform in (LINUX, WINDOWS):
            index.add("onnxruntime-gpu", version, f"cp312-cp312-{platform}")
    for name, version in ANYWHERE.items():
        index.add(name, version)
    for need in map(Requirement, requires("torch-setup-assistant") or ()):
        if need.marker is None and need.name != "uv":
            index.add(need.name, "99.0")
    for platform in (LINUX, WINDOWS, MAC):
        program = f"uv-{UV}.data/scripts/uv{'.exe' * (platform == WINDOWS)}"
        wheel = index.add("uv", UV, f"py3-none-{platform}")
        rewrite(wheel, lambda files, name=program: {**files, name: f"uv of {name}".encode()})


class Maker:
    """Whoever makes a bundle: with an index of their own, and nothing of this user's."""

    def __init__(self, folder: Path, index: LoopbackIndex) -> None:
        self.home, self.index = folder / "home", index
        self.home.mkdir()
        self.list = folder / "machines.jsonl"
        self.list.write_text("".join(f"{json.dumps(one)}\n" for one in machines()), encoding="utf-8")
        python = {"UV_PYTHON_INSTALL_MIRROR": f"{index.url}/python"}
        self.env = forked.at_home(self.home, index.url, UV_NO_CONFIG="1", **python)

    def words(self, folder: Path) -> list[str]:
        """Return the command that makes a bundle for all machines."""
        words = ["make", str(folder), "--machines", str(self.list), "--index-url", self.index.url]
        return ["bundle", *words]

    def run(self, *words: object) -> subprocess.CompletedProcess[str]:
        """Run a command of the assistant."""
        return forked.run(*words, env=self.env)

    def make(self, folder: Path, *more: str) -> dict[str, object]:
        """Make a bundle for all machines, and return what is answered."""
        done = self.run(*self.words(folder), "--json", *more)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def begin(self, folder: Path) -> subprocess.Popen[bytes]:
        """Begin to make a bundle, in a process of its own."""
        command = [sys.executable, "-m", "assistant", *self.words(folder)]
        return subprocess.Popen(command, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.fixture
def maker(tmp_path: Path, loopback_index: LoopbackIndex) -> Maker:
    """Have somebody with an index that holds everything."""
    stock(loopback_index)
    return Maker(tmp_path, loopback_index)


@pytest.fixture(scope="module")
def thirty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Maker, Path, dict[str, object]]]:
    """Have a bundle for thirty machines, made once, and what was answered then."""
    folder = tmp_path_factory.mktemp("thirty")
    (folder / "index").mkdir()
    index = LoopbackIndex(folder / "index")
    stock(index)
    maker = Maker(folder, index)
    answer = maker.make(folder / "bundle")
    yield maker, folder / "bundle", answer
    index.close()
