"""The builds that the hardware allows, in order, and what a resolver is asked for them."""

from __future__ import annotations

from catalogs import catalog_as_of
from packaging.requirements import Requirement
from packaging.version import Version
from tables import each

from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.plan import Backend, Request
from assistant.plan import make_plans
from assistant_addons.projects.builds import bands, plans_for_releases, question, satisfied
from assistant_addons.projects.proof import without_overwritten

CATALOG = catalog_as_of("2.15.0")


def nvidia(capability: str, driver: str = "595.60") -> Machine:
    """Describe a Linux machine with one NVIDIA card."""
    card = Gpu(vendor=Vendor.NVIDIA, name="a card", compute_capability=capability)
    return Machine(os="linux", arch="x86_64", glibc="2.39", python="3.12", nvidia_driver=driver, gpus=(card,))


RADEON = Machine(
    os="linux",
    arch="x86_64",
    glibc="2.39",
    python="3.12",
    gpus=(Gpu(vendor=Vendor.AMD, name="RX 7900 XTX", gfx="gfx1100"),),
)
MAC = Machine(os="macos", os_version="15.1", arch="arm64", python="3.12", gpus=(Gpu(vendor=Vendor.APPLE, name="M3"),))


@each("machine", [nvidia("8.9"), nvidia("12.0"), nvidia("6.1"), RADEON, MAC, Machine(os="windows")])
def test_the_builds_begin_with_the_planners_choice_and_end_with_the_cpu(machine):
    """Each plan is what the planner chooses for its release; newest first, the CPU's last."""
    plans = plans_for_releases(machine, CATALOG, Request())
    assert (plans[0].variant, plans[0].torch) == (
        make_plans(machine, CATALOG).choice.variant,
        make_plans(machine, CATALOG).choice.torch,
    )
    on_cpu = [plan.backend is Backend.CPU for plan in plans]
    assert on_cpu == sorted(on_cpu)
    assert on_cpu[-1]
    for band in bands(plans):
        torches = [Version(plan.torch) for plan in band]
        assert torches == sorted(torches, reverse=True)
        assert len({(plan.variant, plan.index_url) for plan in band}) == 1


def test_the_builds_are_only_what_the_hardware_runs():
    """A card of 2025 has no code before torch 2.7."""
    gpu = [plan for plan in plans_for_releases(nvidia("12.0"), CATALOG, Request()) if plan.backend is Backend.CUDA]
    assert min(Version(plan.torch) for plan in gpu) == Version("2.7.0")


def test_a_question_bounds_torch_and_puts_the_users_lines_first():
    """One question covers a band: the range takes in each of its releases, and those of no other band."""
    request = Request(pins=("whisperx", "torchvision>=0.24"))
    band = next(bands(plans_for_releases(nvidia("8.9", "580.95"), CATALOG, request)))
    asked = question(band, nvidia("8.9", "580.95"), CATALOG, request)
    assert asked.requirements[:2] == ("whisperx", "torchvision>=0.24")
    torch = next(Requirement(line) for line in asked.requirements if line.startswith("torch>"))
    assert all(torch.specifier.contains(f"{plan.torch}+{plan.variant}") for plan in band)
    plan, found = (
        next(plan for plan in band if plan.torch == "2.14.0"),
        {"torch": "2.14.0", "numpy": "2", "onnx": "1", "onnxruntime-gpu": "1.31", "nvidia-cublas-cu12": "12.9"},
    )
    assert not satisfied(plan, {**found, "torchvision": "0.28.0", "whisperx": "1"})  # that of another torch
    assert satisfied(plan, {**found, "torchvision": "0.29.0", "whisperx": "1"})


def test_a_build_for_rocm_names_the_triton_that_its_own_index_alone_has():
    """An index of torch's serves only what is asked for by name."""
    for band in bands(plans_for_releases(RADEON, CATALOG, Request())):
        names = {Requirement(line).name for line in question(band, RADEON, CATALOG, Request()).requirements}
        if band[0].variant.startswith("rocm") and Version(band[0].torch) >= Version("2.10"):
            assert "triton-rocm" in names
        if band[0].backend is Backend.CPU:
            assert not {name for name in names if "triton" in name}


def test_the_flavour_that_a_plan_adds_gives_way_to_the_one_that_the_users_packages_bring():
    """Both would write the same folder, and the last one installed would win."""
    lines = ("torch==2.14.1", "onnxruntime-gpu>=1.28", "faster-whisper")
    solved = {"torch": "2.14.1", "onnxruntime-gpu": "1.31.1", "onnxruntime": "1.32.0", "faster-whisper": "1.2.1"}
    kept, said = without_overwritten(lines, solved, {"faster-whisper"})
    assert (kept, said) == (("torch==2.14.1", "faster-whisper"), [])
    kept, said = without_overwritten(lines, solved, {"faster-whisper", "onnxruntime-gpu"})
    assert kept == lines
    assert [message.params["names"] for message in said] == ["onnxruntime, onnxruntime-gpu"]


def test_a_set_without_a_clash_stays_as_it_is():
    """Plug-ins with a folder of their own overwrite nothing."""
    lines, solved = ("onnxruntime", "onnxruntime-qnn"), {"onnxruntime": "1.32.0", "onnxruntime-qnn": "2.7.0"}
    assert without_overwritten(lines, solved, ()) == (lines, [])
