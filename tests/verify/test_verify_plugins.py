"""A provider that plugs into ONNX Runtime is registered, and has to run the model itself: the real WebGPU plug-in."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from assistant.model.report import Status
from assistant.verify import checks
from assistant.verify.run import verify
from tests.verify.conftest import make_python

# Chromium brings a Vulkan that computes on the processor, which the plug-in may be allowed to take for a device.
VULKAN = Path("/usr/lib/chromium")


@pytest.fixture(scope="module")
def with_webgpu(tmp_path_factory):
    """Give the interpreter of an environment with the WebGPU plug-in beside these tests' ONNX Runtime."""
    python, _packages = make_python(tmp_path_factory.mktemp("plugged") / "environment")
    words = ["pip", "install", "-q", "--no-deps", "--python", python, "onnxruntime-ep-webgpu==0.4.0"]
    subprocess.run([sys.executable, "-m", "uv", *words], check=True)
    return python


def checked(python, **environment):
    """Return the results of the check of ONNX Runtime and of the import of the plug-in."""
    names = ("onnxruntime-ep-webgpu",)
    report = verify(python, "cpu", lambda _: None, level=("onnxruntime",), packages=names, environment=environment)
    return {check.key: check for check in report.checks}


def test_a_plug_in_is_registered_and_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where ONNX Runtime itself has no provider for the device, the plug-in's device has to run the model."""
    provider, registered, proved = "WebGpuExecutionProvider", [], []
    devices = [
        SimpleNamespace(ep_name=provider, device=SimpleNamespace(type=SimpleNamespace(name=kind)))
        for kind in ("CPU", "GPU")
    ]
    runtime = SimpleNamespace(
        __version__="1.32.0",
        get_available_providers=lambda: ["CPUExecutionProvider"],
        register_execution_provider_library=lambda name, path: registered.append((name, path)),
        get_ep_devices=lambda: devices,
    )
    plugin = SimpleNamespace(get_library_path=lambda: "/webgpu.so", get_ep_name=lambda: provider)
    monkeypatch.setitem(sys.modules, "onnxruntime", runtime)
    monkeypatch.setitem(sys.modules, "onnxruntime_ep_webgpu", plugin)
    monkeypatch.setattr(checks.importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(pkgutil, "iter_modules", lambda: [SimpleNamespace(name="onnxruntime_ep_webgpu")])

    def proof(_target: object, _runtime: object, name: str, device: object) -> dict[str, str]:
        proved.append((name, device))
        return {"status": "passed"}

    monkeypatch.setattr(checks, "onnx_proof", proof)
    target = SimpleNamespace(kind="cuda", explain=lambda reason, **_facts: {"detail": reason})
    assert checks.check_onnxruntime(target) == {"status": "passed"}
    assert registered == [("onnxruntime_ep_webgpu", "/webgpu.so")]
    assert proved == [(provider, devices[1])]


@pytest.mark.process
@pytest.mark.full
def test_a_plug_in_without_a_device_is_loaded_and_left_alone(with_webgpu):
    """It registers; the CPU's own provider is proved as ever."""
    found = checked(with_webgpu)
    assert found["onnxruntime"].status is Status.PASSED, found
    assert found["package.onnxruntime-ep-webgpu"].status is Status.PASSED, found


@pytest.mark.process
@pytest.mark.full
def test_a_plug_in_computes_on_its_device(with_webgpu):
    """Its provider ran every node, near the reference; where Vulkan cannot be loaded the check fails."""
    assert (VULKAN / "libvk_swiftshader.so").exists(), "Install Debian's chromium: this test uses its Vulkan."
    settings = {
        "LD_LIBRARY_PATH": str(VULKAN),
        "VK_ICD_FILENAMES": str(VULKAN / "vk_swiftshader_icd.json"),
        "ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER": "1",
    }
    found = checked(with_webgpu, **settings)["onnxruntime"]
    assert found.status is Status.PASSED, found
    assert found.error < 1e-4 < found.tolerance == 2e-2
    without_vulkan = checked(with_webgpu, ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER="1")["onnxruntime"]
    assert without_vulkan.status is Status.FAILED
