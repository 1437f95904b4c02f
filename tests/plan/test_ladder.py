"""The builds that the hardware allows, in order, and what a resolver is asked for them."""

from __future__ import annotations

import pytest
from packaging.requirements import Requirement
from packaging.version import Version
from tables import each

from assistant.catalog import load_catalog
from assistant.model.errors import BadInput
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.plan import Backend, Request
from assistant.plan import bands, ladder, make_plans, question, requested, satisfied

CATALOG = load_catalog()


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
def test_a_ladder_begins_with_the_planners_choice_and_ends_with_the_cpu(machine):
    """Each plan is what the planner chooses for its release; newest first, the CPU's last."""
    plans = ladder(machine, CATALOG, Request())
    assert plans.best
    assert (plans.best.variant, plans.best.torch) == (
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


def test_a_ladder_holds_only_what_the_hardware_runs():
    """A card of 2025 has no code before torch 2.7."""
    gpu = [plan for plan in ladder(nvidia("12.0"), CATALOG, Request()) if plan.backend is Backend.CUDA]
    assert min(Version(plan.torch) for plan in gpu) == Version("2.7.0")


def test_a_question_bounds_torch_and_puts_the_users_lines_first():
    """One question covers a band: the range takes in each of its releases, and those of no other band."""
    request = Request(pins=("whisperx", "torchvision>=0.24"))
    band = next(bands(ladder(nvidia("8.9", "580.95"), CATALOG, request)))
    asked = question(band, nvidia("8.9", "580.95"), CATALOG, request)
    assert asked.requirements[:2] == ("whisperx", "torchvision>=0.24")
    torch = next(Requirement(line) for line in asked.requirements if line.startswith("torch>"))
    assert all(torch.specifier.contains(f"{plan.torch}+{plan.variant}") for plan in band)
    plan, found = (
        band.plan_for("2.14.0"),
        {"torch": "2.14.0", "numpy": "2", "onnx": "1", "onnxruntime-gpu": "1.31", "nvidia-cublas-cu12": "12.9"},
    )
    assert not satisfied(plan, {**found, "torchvision": "0.28.0", "whisperx": "1"})  # that of another torch
    assert satisfied(plan, {**found, "torchvision": "0.29.0", "whisperx": "1"})


def test_a_question_is_asked_without_planning_for_every_release():
    """Where the oldest release of a build is known, only the plan for the newest is made before uv answers."""
    machine = nvidia("8.9", "580.95")
    plans = ladder(machine, CATALOG, Request())
    made = []
    release = plans.plans_for
    plans.plans_for = lambda torch: made.append(torch) or release(torch)
    band = next(bands(plans, lambda variant: plans.oldest_with(variant, lambda _torch: True)))
    asked = question(band, machine, CATALOG, Request())
    oldest = next(Requirement(line) for line in asked.requirements if line.startswith("torch>"))
    assert made == [band.best.torch]
    assert band.plan_for("2.14.0").torch == "2.14.0"
    assert band.plan_for("1.13.1") is None
    assert all(oldest.specifier.contains(plan.torch) for plan in band)
    assert band.narrowed().oldest == list(band)[-1].torch


def test_a_build_for_rocm_names_the_triton_that_its_own_index_alone_has():
    """An index of torch's serves only what is asked for by name."""
    for band in bands(ladder(RADEON, CATALOG, Request())):
        names = {Requirement(line).name for line in question(band, RADEON, CATALOG, Request()).requirements}
        if band.best.variant.startswith("rocm") and Version(band.best.torch) >= Version("2.10"):
            assert "triton-rocm" in names
        if band.best.backend is Backend.CPU:
            assert not {name for name in names if "triton" in name}


def test_lines_for_another_machine_are_not_wished_for():
    """Markers are those of the machine that is planned for, not of this one."""
    pins = ("a; sys_platform == 'win32'", "b; platform_machine == 'arm64' and python_version < '3.13'", "c[x]>1")
    assert [str(need) for need in requested(MAC, CATALOG, Request(pins=pins))] == ["b", "c[x]>1"]
    windows = Machine(os="windows", arch="x86_64", python="3.12")
    assert [str(need) for need in requested(windows, CATALOG, Request(pins=pins))] == ["a", "c[x]>1"]


@each(
    ("pins", "pythons", "machine", "python", "torch"),
    [
        (("torch==2.1.2",), "", nvidia("8.9"), "3.11", "2.1.2"),
        ((), ">=3.10,<3.12", nvidia("8.9"), "3.11", "2.15.0"),
        ((), ">=3.12", nvidia("8.9"), "3.12", "2.15.0"),
        ((), "==3.13.*", nvidia("8.9"), "3.13", "2.15.0"),
    ],
)
def test_a_python_that_opens_what_is_asked_for_is_planned_with_the_reason(pins, pythons, machine, python, torch):
    """Where the user fixed no Python, the plan takes one that uv can fetch."""
    plan = make_plans(machine, CATALOG, Request(pins=pins, pythons=pythons)).choice
    assert (plan.python, plan.torch) == (python, torch)
    assert (f"Python {python}" in str(plan.reasons[0])) is (python != "3.12")


def test_a_python_that_the_user_fixed_is_never_changed():
    """It is refused, and the reason names what would help."""
    fixed = make_plans(nvidia("8.9"), CATALOG, Request(pythons="<3.12", python="3.12"))
    assert fixed.choice is None
    assert fixed.rejected[0].key == "python-outside-project"
    assert make_plans(nvidia("8.9"), CATALOG, Request(pins=("torch==2.1.2",), python="3.12")).choice is None
    with pytest.raises(BadInput, match="range of Python"):
        make_plans(nvidia("8.9"), CATALOG, Request(pythons="three"))


def test_a_pin_that_closes_xpu_is_named_as_the_reason():
    """Python 3.12 is within the range of the XPU builds: the pin is what excludes them."""
    arc = Machine(os="linux", arch="x86_64", python="3.12", gpus=(Gpu(vendor=Vendor.INTEL, name="Intel Arc A770"),))
    planning = make_plans(arc, CATALOG, Request(pins=("torch==2.1.2",)))
    assert planning.choice.python == "3.11"
    why = " ".join(f"{one.why} {one.would_help}" for one in planning.rejected if one.backend is Backend.XPU)
    assert "Relax the pin" in why
    assert "Python 3.9" not in why
