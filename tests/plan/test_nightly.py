"""Nightly builds: only when asked for, from the index of the same variant, the newest that is really there."""

from __future__ import annotations

import pytest
from catalogs import catalog_as_of

from assistant.model.errors import BadInput
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.plan import Backend, Request
from assistant.plan import make_plans

CATALOG = catalog_as_of("2.15.0")
NIGHTLY = Request(nightly=True)
MAC = Machine(os="macos", os_version="macOS 15.5", arch="arm64", python="3.12", gpus=(Gpu(vendor=Vendor.APPLE),))
INDEX = "https://download.pytorch.org/whl/nightly/cpu"


def card(name: str, **facts) -> Machine:
    """Give a Linux machine with one GPU."""
    driver = {"nvidia_driver": "595.60"} if facts["vendor"] is Vendor.NVIDIA else {}
    return Machine(os="linux", arch="x86_64", glibc="2.39", python="3.12", gpus=(Gpu(name=name, **facts),), **driver)


def test_on_a_mac_the_nightly_build_with_mps_comes_from_the_index_of_the_cpu() -> None:
    """The nightly plan goes first, says what it is, and the release follows."""
    planning = make_plans(MAC, CATALOG, NIGHTLY)
    plan = planning.choice
    assert (plan.backend, plan.variant, plan.index_url) == (Backend.MPS, "nightly/cpu", INDEX)
    assert plan.requirements[0] == f"torch>={plan.torch}"
    assert plan.torch.endswith(".0.dev0")
    assert str(plan.warnings[0]).startswith("A nightly build")
    assert [other.variant for other in planning.plans[1:]] == [
        other.variant for other in make_plans(MAC, CATALOG).plans
    ]


def test_nobody_gets_a_nightly_build_without_asking() -> None:
    """Every plan for every backend is a release, unless the request says nightly."""
    assert not any(plan.variant.startswith("nightly") for plan in make_plans(MAC, CATALOG).plans)


def test_where_no_nightly_build_serves_the_card_the_release_stays() -> None:
    """A card that the newest release has left behind is told why, and keeps its stable plan."""
    machine = card("GeForce GTX 1080", vendor=Vendor.NVIDIA, compute_capability="6.1")
    planning = make_plans(machine, CATALOG, NIGHTLY)
    assert planning.choice == make_plans(machine, CATALOG).choice
    assert planning.rejected[0].variant.startswith("nightly/")
    assert "continue only torch" in str(planning.rejected[0].why)


def test_amds_nightly_index_is_taken_where_pytorchs_continues_another_release() -> None:
    """The release follows it."""
    machine = card("Radeon RX 6600", vendor=Vendor.AMD, gfx="gfx1032")
    planning = make_plans(machine, CATALOG, NIGHTLY)
    plan, release = planning.plans[:2]
    assert (plan.variant, plan.index_url) == ("nightly/amd-index", CATALOG.index_url("nightly/amd-index"))
    assert release == make_plans(machine, CATALOG).choice
    assert plan.requirements[0] == "torch[device-gfx1032]==2.14.0"


def test_a_pin_on_torch_contradicts_it() -> None:
    """What a night brings has no version to pin; a pin on another package may stay."""
    with pytest.raises(BadInput, match="contradict"):
        make_plans(MAC, CATALOG, Request(pins=("torch==2.14.0",), nightly=True))
    assert "numpy<2" in make_plans(MAC, CATALOG, Request(pins=("numpy<2",), nightly=True)).choice.requirements
