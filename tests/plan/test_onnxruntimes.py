"""Which ONNX Runtime a plan brings: the current one for the hardware, or what is asked for, and what follows it."""

from __future__ import annotations

from catalogs import catalog_as_of
from tables import each

from assistant.i18n import render
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.plan import Backend, Request
from assistant.plan import make_plans

CATALOG = catalog_as_of("2.15.0")
WINDOWS_11, WINDOWS_10 = "Windows 11 24H2 build 26100", "Windows 10 22H2 build 19045"
RX_580 = Gpu(vendor=Vendor.AMD, name="AMD Radeon RX 580", gfx="gfx803")
RX_7900 = Gpu(vendor=Vendor.AMD, name="AMD Radeon RX 7900 XTX", gfx="gfx1100")
ARC = Gpu(vendor=Vendor.INTEL, name="Intel Arc A770", pci_id="8086:56a0")
RTX_4090 = Gpu(vendor=Vendor.NVIDIA, name="NVIDIA GeForce RTX 4090", compute_capability="8.9")
RTX_2080 = Gpu(vendor=Vendor.NVIDIA, name="NVIDIA GeForce RTX 2080", compute_capability="7.5")
ADRENO = Gpu(vendor=Vendor.OTHER, name="Qualcomm(R) Adreno(TM) X1-85 GPU")


def planned(*cards, pins=(), backend=None, **facts):
    """Return the plan that is chosen for a Windows PC."""
    machine = Machine(
        **{"os": "windows", "os_version": WINDOWS_11, "arch": "x86_64", "python": "3.12", "gpus": cards, **facts}
    )
    return make_plans(machine, CATALOG, Request(pins=pins, backend=backend)).choice


def runtimes(plan):
    """Return what a plan asks for of ONNX Runtime, in order."""
    return [line for line in plan.requirements if "onnxruntime" in line or "windowsml" in line]


def said(plan):
    """Return the warnings of a plan as text."""
    return " ".join(map(render, plan.warnings))


@each(
    ("facts", "wanted", "word"),
    [
        ({}, "onnxruntime-windowsml", "onnxruntime-windowsml is current and computes on AMD Radeon RX 580"),
        ({"os_version": None}, "onnxruntime-windowsml", "is current"),
        ({"python": "3.10"}, "onnxruntime-directml", "takes its place, for Python 3.11–3.14"),
    ],
)
def test_windows_ml_serves_cards_with_directx_where_it_can_be_had(facts, wanted, word):
    """Else the frozen build does, and the plan says what follows it and when."""
    plan = planned(RX_580, **facts)
    assert (plan.backend, runtimes(plan)) == (Backend.DIRECTML, [wanted])
    assert word in said(plan)


def test_what_is_asked_for_stays_with_a_word_about_what_follows_it():
    """A build that is asked for stands alone: two would overwrite one another."""
    plan = planned(RX_580, pins=("onnxruntime-directml",))
    assert runtimes(plan) == ["onnxruntime-directml"]
    assert "onnxruntime-directml ended with 1.24.4; onnxruntime-windowsml takes its place." in said(plan)
    beside_cuda = planned(RTX_4090, pins=("onnxruntime-directml==1.24.4",), nvidia_driver="595.10")
    assert (beside_cuda.backend, runtimes(beside_cuda)) == (Backend.CUDA, ["onnxruntime-directml==1.24.4"])
    old = planned(RX_580, pins=("onnxruntime-directml",), os_version="Windows 10 build 17134")
    assert "takes its place, on Windows 10 1809 or newer" in said(old)


def test_torch_directml_is_the_last_resort_and_names_what_serves_the_card_better():
    """A current torch where one has code for the card; one sentence each."""
    for card, facts, better in (
        (RX_7900, {}, "can use ROCm with torch"),
        (ARC, {}, "can use XPU with torch"),
        (RTX_4090, {"nvidia_driver": "595.10"}, "can use CUDA with torch"),
        (RX_580, {}, "For ONNX models, onnxruntime-windowsml"),
    ):
        plan = planned(card, backend=Backend.DIRECTML, **facts)
        assert (plan.backend, plan.torch) == (Backend.DIRECTML, "2.4.1")
        assert "the last resort" in said(plan)
        assert better in said(plan)
        assert len(plan.warnings) == 2


def test_on_a_snapdragon_the_cpu_plan_names_the_plug_in_for_its_npu():
    """It is told where the machine's hardware is named, and not where a plug-in could not go along."""
    plan = planned(ADRENO, arch="arm64")
    assert (plan.backend, runtimes(plan)) == (Backend.CPU, ["onnxruntime"])
    assert "onnxruntime-qnn can use the Snapdragon's NPU" in said(plan)
    assert plan.warnings[-1].params["option"] == "--pin onnxruntime-qnn"
    for other in (
        planned(arch="arm64"),
        planned(ADRENO),
        planned(ADRENO, arch="arm64", pins=("onnxruntime-windowsml",)),
    ):
        assert "onnxruntime-qnn" not in said(other)


@each(
    ("cards", "pin", "facts", "wanted"),
    [
        ((ADRENO,), "onnxruntime-qnn", {"arch": "arm64"}, ["onnxruntime", "onnxruntime-qnn"]),
        ((ADRENO,), "onnxruntime-qnn<2", {"arch": "arm64"}, ["onnxruntime-qnn<2"]),
        ((RX_7900,), "onnxruntime-qnn", {}, ["onnxruntime", "onnxruntime-qnn"]),
        ((RX_7900,), "onnxruntime-ep-webgpu", {}, ["onnxruntime-windowsml", "onnxruntime-ep-webgpu"]),
        ((ARC,), "onnxruntime-openvino", {}, ["onnxruntime-openvino"]),
        ((ARC,), "onnxruntime-ep-openvino>=1.8", {}, ["onnxruntime", "onnxruntime-ep-openvino>=1.8"]),
        ((), "windowsml", {}, ["onnxruntime-windowsml", "windowsml"]),
        ((RTX_4090,), "windowsml", {"nvidia_driver": "595.10"}, ["onnxruntime-windowsml", "windowsml"]),
    ],
)
def test_a_plug_in_goes_beside_one_build(cards, pin, facts, wanted):
    """QNN's metadata requires the plain build; the others go beside the one for the device."""
    assert runtimes(planned(*cards, pins=(pin,), **facts)) == wanted


def test_plug_ins_are_told_to_be_registered():
    """A program that only names the provider would compute on the CPU without a word."""
    plan = planned(ARC)
    assert runtimes(plan) == ["onnxruntime", "onnxruntime-ep-openvino"]
    assert "A program registers onnxruntime-ep-openvino with ONNX Runtime" in said(plan)
    mac = make_plans(Machine(os="macos", arch="arm64", python="3.12"), CATALOG).choice
    assert "register" not in said(mac)


def test_who_asks_for_onnx_runtime_hears_of_the_plug_in_for_the_hardware():
    """TensorRT for RTX serves RTX cards from Ampere on; who did not ask is left in peace."""
    asked = {"pins": ("onnxruntime-gpu",), "nvidia_driver": "595.10"}
    assert "onnxruntime-ep-nv-tensorrt-rtx computes on NVIDIA GeForce RTX 4090" in said(planned(RTX_4090, **asked))
    assert "plug-in" not in said(planned(RTX_2080, **asked))
    assert "plug-in" not in said(planned(RTX_4090, nvidia_driver="595.10"))


def test_windows_ml_downloads_providers_on_new_windows_only():
    """Its build computes all the same, through DirectML and on the CPU."""
    assert "only on Windows 11 24H2 or newer" in said(planned(RX_580, pins=("windowsml",), os_version=WINDOWS_10))
    assert "only on" not in said(planned(RX_580, pins=("windowsml",)))
