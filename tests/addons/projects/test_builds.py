"""The builds that the hardware allows, in order, and what a resolver is asked for them."""

from __future__ import annotations

from catalogs import catalog_as_of
from packaging.requirements import Requirement
from packaging.version import Version
from tables import each

from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.plan import Backend, Request
from assistant.plan import PlanInputs, make_plans
from assistant_addons.projects import builds
from assistant_addons.projects.builds import GPU, Builds, kind_of, loosened, own_triton, satisfied
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


def builds_of(machine: Machine, *pins: str) -> Builds:
    """Return the builds for a machine."""
    return Builds(PlanInputs(machine, CATALOG, Request(pins=pins)))


@each("machine", [nvidia("8.9"), nvidia("12.0"), nvidia("6.1"), RADEON, MAC, Machine(os="windows")])
def test_the_builds_begin_with_the_planners_choice_and_end_with_the_cpu(machine):
    """Each plan is what the planner chooses for its release; newest first, the CPU's last."""
    found = builds_of(machine)
    plans = list(found.ranked())
    choice = make_plans(machine, CATALOG).choice
    assert (plans[0].variant, plans[0].torch) == (choice.variant, choice.torch)
    on_cpu = [plan.backend is Backend.CPU for plan in plans]
    assert on_cpu == sorted(on_cpu)
    assert on_cpu[-1]
    assert list(map(found.rank, plans)) == sorted(map(found.rank, plans))
    for plan in plans:
        band = found.band(plan, lambda _torch: True)
        torches = list(map(Version, band.torches))
        assert torches[0] == Version(plan.torch)
        assert torches == sorted(torches, reverse=True)


def test_the_builds_are_only_what_the_hardware_runs():
    """A card of 2025 has no code before torch 2.7."""
    gpu = builds_of(nvidia("12.0")).ranked(kinds=(GPU,))
    assert min(Version(plan.torch) for plan in gpu) == Version("2.7.0")


def test_a_release_is_planned_when_it_is_asked_for(monkeypatch):
    """Thirty releases would take longer than the resolver does."""
    found, asked = builds_of(nvidia("8.9")), []
    planned = builds.planned
    monkeypatch.setattr(builds, "planned", lambda case: asked.append(case) or planned(case))
    assert next(found.ranked(lambda torch: torch == "2.8.0")).variant == "cu129"
    assert len(asked) == 1
    band = found.band(found.best, lambda _torch: True)
    assert (band.torches[0], len(band.torches) > 3, len(asked)) == ("2.15.0", True, 2)


def test_a_question_covers_the_releases_of_a_band_and_no_other():
    """The local part of a build sorts after its release."""
    torch = Requirement(loosened("torch[device-gfx1100]==2.15.0", ("2.15.0", "2.14.1", "2.13.0")))
    assert torch.extras == {"device-gfx1100"}
    inside = [torch.specifier.contains(f"{one}+cu132") for one in ("2.15.1", "2.15.0", "2.14.1", "2.13.0", "2.12.0")]
    assert inside == [False, True, True, True, False]


def test_what_is_found_for_a_band_holds_for_one_plan_of_it():
    """The companions of another torch do not count."""
    request = ("whisperx", "torchvision>=0.24")
    plan = next(one for one in builds_of(nvidia("8.9", "580.95"), *request).ranked() if one.torch == "2.14.0")
    found = {"torch": "2.14.0", "numpy": "2", "onnx": "1", "onnxruntime-gpu": "1.31", "nvidia-cublas-cu12": "12.9"}
    assert not satisfied(plan, {**found, "torchvision": "0.28.0", "whisperx": "1"})  # that of another torch
    assert satisfied(plan, {**found, "torchvision": "0.29.0", "whisperx": "1"})


def test_a_build_for_rocm_names_the_triton_that_its_own_index_alone_has():
    """An index of torch's serves only what is asked for by name."""
    for plan in builds_of(RADEON).ranked():
        if plan.variant.startswith("rocm") and Version(plan.torch) >= Version("2.10"):
            assert "triton-rocm" in own_triton(plan)
        if kind_of(plan) != GPU:
            assert not own_triton(plan)


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
