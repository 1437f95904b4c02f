"""A CUDA extension built here against a real torch, with nvcc from PyPI: 3 GB to download, minutes to compile."""

from __future__ import annotations

import io
import subprocess
import tarfile
import time
from pathlib import Path

import pytest

from assistant.catalog.companions import BuildNeeds
from assistant.host.index import Archive
from assistant.host.live import LiveHost
from assistant.host.process import CancelToken
from assistant.install import find_uv
from assistant.install.build import BuildContext, build_wheel
from assistant.install.build_environment import set_up
from assistant.install.sources import Consent, Sources
from assistant.install.temporary import scratch
from assistant.install.toolchain import Compiler
from assistant.install.tools import Tools
from assistant.model.event import Event, LogLine
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.plan import Backend, Plan

pytestmark = [pytest.mark.heavy, pytest.mark.process]

TORCH = "2.14.1"  # of CUDA 13.0 on PyPI
KERNEL = """#include <c10/cuda/CUDAStream.h>
__global__ void add_one(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] + 1.0f;
}
void launch(const float* in, float* out, int n) {
  add_one<<<(n + 255) / 256, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(in, out, n);
}
"""
BINDING = """#include <torch/extension.h>
void launch(const float* in, float* out, int n);
at::Tensor add(at::Tensor x) {
  if (!x.is_cuda()) return x + 1;
  auto y = at::empty_like(x);
  launch(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("add", &add); }
"""
SETUP = """from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension
setup(name="plus-one", version="1.0", ext_modules=[CUDAExtension("plus_one", ["binding.cpp", "kernel.cu"])],
      cmdclass={"build_ext": BuildExtension})
"""


def archive_in(folder: Path) -> Archive:
    """Write the source archive of the extension."""
    path = folder / "plus-one-1.0.tar.gz"
    files = {"PKG-INFO": "Metadata-Version: 2.1\nName: plus-one\nVersion: 1.0\n", "setup.py": SETUP}
    with tarfile.open(path, "w:gz") as tar:
        for name, text in {**files, "kernel.cu": KERNEL, "binding.cpp": BINDING}.items():
            entry = tarfile.TarInfo(f"plus-one-1.0/{name}")
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    return Archive(filename=path.name, version="1.0", url=path.as_uri())


@pytest.mark.timeout(1800)
def test_a_cuda_extension_is_built_kept_and_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No CUDA of the machine is used; the second time needs neither time nor network; the wheel fits that torch."""
    for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("CUDA_HOME", "/nowhere")
    host, told = LiveHost(), list[Event]()
    card = Machine(os="linux", arch="x86_64", gpus=(Gpu(vendor=Vendor.NVIDIA, compute_capability="8.9"),))
    plan = Plan(backend=Backend.CUDA, variant="pypi", torch=TORCH, python="3.11", requirements=(f"torch=={TORCH}",))
    tools = Tools(host, Sources(host, consent=Consent()), told.append, CancelToken(), machine=card)
    context = BuildContext(plan=plan, keep={}, installer=tools.installer(plan, None), tools=tools)
    archive, began = archive_in(tmp_path), time.monotonic()
    folder = build_wheel("plus-one", archive, context)
    first, began = time.monotonic() - began, time.monotonic()
    assert build_wheel("plus-one", archive, context) == folder
    second = time.monotonic() - began
    lines = [str(event.text) for event in told if isinstance(event, LogLine)]
    compiled = [line for line in lines if "nvcc" in line and "kernel.cu" in line]
    print(f"built in {first:.0f} s, again in {second:.2f} s\n", *compiled[:1])
    assert "/nvidia/cu13/bin/nvcc" in compiled[0]
    assert "compute_89" in compiled[0]
    assert second < 1
    with scratch() as (work, lock):
        toolchain = context.toolchain("plus-one", BuildNeeds(torch=True, nvcc="gpu"))
        python, _variables = set_up(toolchain, Compiler(), context.installer, host, work, lock)
        wheel = str(next(folder.iterdir()))
        subprocess.run([find_uv(), "pip", "install", "-q", "--no-deps", "--python", python, wheel], check=True)
        used = "import torch, plus_one; assert plus_one.add(torch.ones(2)).sum() == 4"
        subprocess.run([python, "-W", "ignore", "-c", used], check=True)
