"""AMD, Intel, DirectML and Apple: each by what is published for it."""

from __future__ import annotations

from catalogs import catalog_as_of
from tables import each

from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.plan import Backend, Request
from assistant.plan import explain, make_plans

CATALOG = catalog_as_of("2.15.0")
OVERRIDE = "HSA_OVERRIDE_GFX_VERSION"


def planned(*cards, request=None, **facts):
    """Plan for a Linux machine with these cards."""
    machine = Machine(**{"os": "linux", "arch": "x86_64", "python": "3.12", "gpus": cards, **facts})
    return make_plans(machine, CATALOG, request or Request())


def amd(gfx, **facts):
    """Make an AMD card."""
    return Gpu(vendor=Vendor.AMD, name=f"Card {gfx}", gfx=gfx, **facts)


def intel(device, **facts):
    """Make an Intel GPU by its device id."""
    return Gpu(vendor=Vendor.INTEL, pci_id=f"8086:{device}", **facts)


def test_the_override_never_reaches_a_card_of_another_kind():
    """Beside a card that would break under it, AMD's own index serves both."""
    plan = planned(amd("gfx1031"), amd("gfx1100")).choice
    assert plan.requirements[0] == "torch[device-gfx1031,device-gfx1100]==2.14.0"
    assert OVERRIDE not in plan.env
    assert planned(amd("gfx1032"), amd("gfx1103", integrated=True)).choice.variant == "amd-index"


def test_on_amds_index_torchvision_gets_the_code_of_each_card_too():
    """Its kernels lie in the same extras as torch's, as the index's release notes say; torchaudio has none."""
    plan = planned(amd("gfx1032"), os="windows", request=Request(pins=("torchvision", "torchaudio"))).choice
    assert plan.requirements[:3] == (
        "torch[device-gfx1032]==2.14.0",
        "torchvision[device-gfx1032]<0.30,>=0.29.0a0",
        "torchaudio<2.12,>=2.11.0a0",
    )
    course = planned(amd("gfx1032"), os="windows", request=Request(bundle="course")).choice
    assert "torchvision[device-gfx1032]<0.30,>=0.29.0a0" in course.requirements
    native = planned(amd("gfx1100"), request=Request(pins=("torchvision",))).choice
    assert native.variant == "rocm7.2"
    assert not any("[" in line for line in native.requirements)


def test_an_override_that_is_set_already_is_told():
    """A variable left over from older wheels would mislead native code."""
    plan = planned(amd("gfx1151"), env={OVERRIDE: "11.0.0"}).choice
    assert any(f"{OVERRIDE}=11.0.0" in str(warning) for warning in plan.warnings)


def test_a_native_build_goes_before_a_borrowed_one():
    """An override has to be set in every shell and service, or kernels are missing there."""
    first, second = planned(amd("gfx1031")).plans[:2]
    assert (first.variant, OVERRIDE in first.env) == ("amd-index", False)
    assert (second.variant, OVERRIDE in second.env) == ("rocm7.2", True)


def test_variables_that_make_a_build_faster_come_with_the_plan():
    """Each says why; what the user has set stays, and no card gets what another one is for."""
    plan = planned(amd("gfx1201")).choice
    assert plan.env == {"MIOPEN_FIND_MODE": "FAST", "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL": "1"}
    assert "MIOPEN_FIND_MODE=FAST spares" in " ".join(map(str, plan.reasons))
    assert "MIOPEN_FIND_MODE" not in planned(amd("gfx1201"), env={"MIOPEN_FIND_MODE": "NORMAL"}).choice.env
    assert "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL" not in planned(amd("gfx1030")).choice.env


def test_a_radeon_of_2002_gets_no_directml():
    """DirectX 12 begins with the GCN cards of 2012, and the name ATI ended in 2010."""
    for name in ("ATI Radeon 9700", "Radeon X1950 Pro"):
        card = Gpu(vendor=Vendor.AMD, name=name)
        assert planned(card, os="windows").choice.backend is Backend.CPU


def test_directml_exists_in_wsl_and_not_on_native_linux():
    """Native Linux has no D3D12; in WSL torch comes from the cpu index, not with CUDA from PyPI."""
    request = Request(backend=Backend.DIRECTML)
    native = planned(amd("gfx803"), request=request)
    assert native.choice is None
    assert "WSL" in str(native.rejected[0].why)
    plan = planned(amd("gfx803"), request=request, wsl=True).choice
    assert plan.index_url.endswith("/cpu")


def test_another_python_is_a_plan_of_its_own():
    """Python 3.13 has no DirectML: the CPU is chosen, and 3.12 with DirectML is offered."""
    planning = planned(amd("gfx803"), os="windows", python="3.13")
    assert planning.choice.backend is Backend.CPU
    assert [(plan.backend, plan.python) for plan in planning.plans] == [
        (Backend.CPU, "3.13"),
        (Backend.DIRECTML, "3.12"),
        (Backend.CPU, "3.12"),
    ]


def test_a_discrete_card_goes_before_an_integrated_one():
    """An APU that is listed first does not win over a discrete card, whoever made it."""
    plan = planned(amd("gfx1103", integrated=True), amd("gfx1102")).choice
    assert any("gfx1102" in str(reason) for reason in plan.reasons)
    assert planned(amd("gfx1036", integrated=True), intel("56a0")).choice.backend is Backend.XPU
    both = planned(amd("gfx1036", integrated=True), amd("gfx1200"), os="windows")
    assert [plan.backend for plan in both.plans] == [Backend.ROCM, Backend.DIRECTML, Backend.CPU]


def test_rosetta_is_an_intel_mac_until_a_native_python_is_there():
    """Under Rosetta the last Intel wheel is chosen and the native Python advised."""
    planning = planned(Gpu(vendor=Vendor.APPLE), os="macos", arch="arm64", rosetta=True)
    assert planning.choice.torch == "2.2.2"
    assert "numpy<2" in planning.choice.requirements
    assert any("arm64" in str(rejection.would_help) for rejection in planning.rejected)


def test_an_old_glibc_ends_with_the_last_wheels_that_load_there():
    """2.7 and newer need glibc 2.28, and so do some variants of 2.6."""
    card = Gpu(vendor=Vendor.NVIDIA, compute_capability="8.6")
    plan = planned(card, os_version="CentOS Linux 7", nvidia_driver="580.95.05").choice
    assert (plan.torch, plan.variant) == ("2.6.0", "cu124")


def test_one_flavour_of_onnxruntime_and_only_where_it_exists():
    """The flavour follows the backend and the CUDA major; where none is published none is asked for."""
    nvidia = Gpu(vendor=Vendor.NVIDIA, compute_capability="8.6")
    found = {
        "onnxruntime-gpu>=1.28": planned(nvidia, nvidia_driver="580.95.05"),
        "onnxruntime-gpu>=1.19,<1.27": planned(nvidia, nvidia_driver="570.86.15"),
        "onnxruntime onnxruntime-ep-openvino": planned(intel("56a0")),
        "onnxruntime-windowsml": planned(amd("gfx1100"), os="windows"),
        "onnxruntime": planned(),
    }
    for wanted, planning in found.items():
        assert [line for line in planning.choice.requirements if line.startswith("onnxruntime")] == wanted.split()
    assert not any("onnxruntime" in line for line in planned(python="3.15").choice.requirements)


def test_what_is_missing_is_assumed_aloud():
    """A brief with cards only still gets an answer, and the assumptions are told."""
    plan = make_plans(Machine(gpus=(amd("gfx1100"),)), CATALOG).choice
    assert plan.backend is Backend.ROCM
    assert len([warning for warning in plan.warnings if "assumed" in str(warning)]) == 3


def test_the_reasoning_names_what_was_seen_chosen_and_turned_down():
    """`explain` tells the cards, each plan with its reasons, each rival with the remedy."""
    machine = Machine(
        os="linux",
        arch="x86_64",
        python="3.12",
        nvidia_driver="570.86.15",
        gpus=(Gpu(vendor=Vendor.NVIDIA, name="NVIDIA GeForce RTX 3060"),),
    )
    text = "\n".join(map(str, explain(make_plans(machine, CATALOG), machine)))
    assert "RTX 3060 (8.6)" in text
    assert "Chosen: PyTorch 2.14.1 for CUDA (cu126)" in text
    assert "Not CUDA cu130" in text


@each(
    ("facts", "pins", "key"),
    [
        ({}, (), "rocm-wsl-unsupported-gpu"),
        ({"gpus": (amd("gfx1100"),)}, ("torch==2.7.1+cu118",), "pins-exclude-build"),
        ({"gpus": (amd("gfx1100"),), "python": "3.7"}, (), "no-wheel-for-system"),
    ],
)
def test_in_wsl_rocm_is_refused_for_what_really_stands_in_its_way(facts, pins, key):
    """AMD's WSL runtime is blamed only where the build would be there without WSL."""
    request = Request(backend=Backend.ROCM, pins=pins)
    assert planned(**{"gpus": (amd("gfx1031"),), "wsl": True, **facts}, request=request).rejected[0].key == key
