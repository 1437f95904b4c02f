"""Pins and requests restrict the answer, or name the one at fault."""

from __future__ import annotations

import pytest
from catalogs import catalog_as_of
from tables import each

from assistant.model.errors import BadInput
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.plan import Backend, Request
from assistant.plan import make_plans, requested_packages
from assistant.plan.target import python_tag

CATALOG = catalog_as_of("2.15.0")
RTX_3060 = Machine(
    os="linux",
    arch="x86_64",
    python="3.12",
    nvidia_driver="580.95.05",
    gpus=(Gpu(vendor=Vendor.NVIDIA, compute_capability="8.6"),),
)
RTX_4090 = Machine(
    os="linux",
    arch="x86_64",
    glibc="2.39",
    python="3.12",
    nvidia_driver="595.60",
    gpus=(Gpu(vendor=Vendor.NVIDIA, name="a card", compute_capability="8.9"),),
)
MAC = Machine(os="macos", os_version="15.1", arch="arm64", python="3.12", gpus=(Gpu(vendor=Vendor.APPLE, name="M3"),))


def planned(*pins, **wishes):
    """Plan for an RTX 3060 under pins and wishes."""
    return make_plans(RTX_3060, CATALOG, Request(pins=pins, **wishes))


@each(
    ("pin", "torch"),
    [
        ("torch==2.6.0", "2.6.0"),
        ("torch<2.7", "2.6.0"),
        ("torch>=2.7.0,!=2.7.0,!=2.7.1,<2.8.1", "2.8.0"),
        ("torchvision==0.21.0", "2.6.0"),
        ("torchaudio<2.6", "2.5.1"),
    ],
)
def test_a_pin_restricts_torch_or_draws_it_to_its_pair(pin, torch):
    """Pins on the family choose the torch that they go with, and are listed with it."""
    plan = planned(pin).choice
    assert plan.torch == torch
    assert plan.backend is Backend.CUDA


def test_a_local_tag_in_a_pin_names_the_variant():
    """torch==2.6.0+cu124 asks for that build."""
    plan = planned("torch==2.6.0+cu124").choice
    assert (plan.variant, plan.requirements[0]) == ("cu124", "torch==2.6.0")


def test_a_local_tag_of_a_companion_names_the_variant_too():
    """As in many projects' files: torch and torchvision both with the build."""
    plan = planned("torch==2.7.0+cu128", "torchvision==0.22.0+cu128").choice
    assert (plan.variant, plan.torch) == ("cu128", "2.7.0")
    assert "torchvision==0.22.0" in plan.requirements
    refused = planned("torch==2.7.0+cu128", "torchvision==0.22.0+cpu")
    assert refused.choice is None
    assert "another build than cu128" in str(refused.rejected[0].why)


def test_other_packages_are_passed_on_and_replace_ours():
    """numpy<2 stands in for our own numpy; unknown names go along."""
    lines = planned("numpy<2", "diffusers>=0.30", "torchvision").choice.requirements
    assert "numpy" not in lines
    assert {"numpy<2", "diffusers>=0.30", "torchvision==0.29.2"} <= set(lines)


def test_a_pin_that_the_driver_cannot_serve_is_told_from_both_sides():
    """2.15 needs driver 580: either the driver or the pin has to give way."""
    old = Machine(**{name: getattr(RTX_3060, name) for name in ("os", "arch", "python", "gpus")}, nvidia_driver="570.1")
    planning = make_plans(old, CATALOG, Request(pins=("torch>=2.15",)))
    assert planning.choice.backend is Backend.CPU
    helps = " ".join(str(rejection.would_help) for rejection in planning.rejected)
    assert "Update the NVIDIA driver" in helps
    assert "Relax the pin" in helps


@each(
    ("pins", "culprit"),
    [
        (("torch==2.6.0", "torchvision==0.20.0"), "torchvision==0.20.0"),
        (("torch>=2.16",), "torch>=2.16"),
        (("torch==2.6.0", "torch==2.7.0"), "torch"),
    ],
)
def test_impossible_pins_are_refused_by_name(pins, culprit):
    """No choice, and the sentence names the pin."""
    planning = planned(*pins)
    assert planning.choice is None
    assert culprit in str(planning.rejected[0].why)


@each("pin", ["torch=>2", "torch @ https://example.org/torch.whl"])
def test_a_pin_that_cannot_be_read_is_bad_input(pin):
    """The error names the pin and the way to write it."""
    with pytest.raises(BadInput, match="torch") as caught:
        planned(pin)
    assert caught.value.hint


@each("backend", [Backend.MPS, Backend.DIRECTML, Backend.ROCM, Backend.XPU])
def test_a_backend_that_cannot_be_had_is_never_a_silent_cpu(backend):
    """A request for another vendor's backend is refused by name."""
    planning = planned(backend=backend)
    assert planning.choice is None
    assert planning.rejected[0].backend is backend
    assert planning.rejected[0].why


def test_the_cpu_can_be_asked_for():
    """Asked for the CPU, nothing else is offered."""
    assert [plan.backend for plan in planned(backend=Backend.CPU).plans] == [Backend.CPU]


def test_another_python_can_be_asked_for():
    """The request's Python stands in for the machine's, and must be readable."""
    assert {plan.python for plan in planned(python="3.11").plans} == {"3.11"}
    with pytest.raises(BadInput, match="three"):
        planned(python="three")


@each(
    ("version", "tag"),
    [
        ("3.12", "312"),
        ("3.13.8t", "313t"),
        ("3.13t", "313t"),
        ("3.14.0rc1", "314"),
        ("3.14.0a7t", "314t"),
        ("3.12.4+", "312"),
    ],
)
def test_python_versions_are_read_with_their_threading(version, tag):
    """A free-threaded Python keeps its t, whatever else stands in the version."""
    assert python_tag(version)[1] == tag


def test_lines_for_another_machine_are_not_wished_for():
    """Markers are those of the machine that is planned for, not of this one."""
    pins = ("a; sys_platform == 'win32'", "b; platform_machine == 'arm64' and python_version < '3.13'", "c[x]>1")
    assert [str(need) for need in requested_packages(MAC, CATALOG, Request(pins=pins))] == ["b", "c[x]>1"]
    windows = Machine(os="windows", arch="x86_64", python="3.12")
    assert [str(need) for need in requested_packages(windows, CATALOG, Request(pins=pins))] == ["a", "c[x]>1"]


@each(
    ("pins", "pythons", "machine", "python", "torch"),
    [
        (("torch==2.1.2",), "", RTX_4090, "3.11", "2.1.2"),
        ((), ">=3.10,<3.12", RTX_4090, "3.11", "2.15.0"),
        ((), ">=3.12", RTX_4090, "3.12", "2.15.0"),
        ((), "==3.13.*", RTX_4090, "3.13", "2.15.0"),
    ],
)
def test_a_python_that_opens_what_is_asked_for_is_planned_with_the_reason(pins, pythons, machine, python, torch):
    """Where the user fixed no Python, the plan takes one that uv can fetch."""
    plan = make_plans(machine, CATALOG, Request(pins=pins, pythons=pythons)).choice
    assert (plan.python, plan.torch) == (python, torch)
    assert (f"Python {python}" in str(plan.reasons[0])) is (python != "3.12")


def test_a_python_that_the_user_fixed_is_never_changed():
    """It is refused, and the reason names what would help."""
    fixed = make_plans(RTX_4090, CATALOG, Request(pythons="<3.12", python="3.12"))
    assert fixed.choice is None
    assert fixed.rejected[0].key == "python-outside-project"
    assert make_plans(RTX_4090, CATALOG, Request(pins=("torch==2.1.2",), python="3.12")).choice is None
    with pytest.raises(BadInput, match="range of Python"):
        make_plans(RTX_4090, CATALOG, Request(pythons="three"))


def test_a_pin_that_closes_xpu_is_named_as_the_reason():
    """Python 3.12 is within the range of the XPU builds: the pin is what excludes them."""
    arc = Machine(os="linux", arch="x86_64", python="3.12", gpus=(Gpu(vendor=Vendor.INTEL, name="Intel Arc A770"),))
    planning = make_plans(arc, CATALOG, Request(pins=("torch==2.1.2",)))
    assert planning.choice.python == "3.11"
    why = " ".join(f"{one.why} {one.would_help}" for one in planning.rejected if one.backend is Backend.XPU)
    assert "Relax the pin" in why
    assert "Python 3.9" not in why
