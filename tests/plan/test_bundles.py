"""Bundles of packages: what each plan asks for beside its torch, and what it says where something cannot be had."""

from __future__ import annotations

from typing import Any

import pytest
from catalogs import catalog_as_of
from packaging.requirements import Requirement
from tables import each

from assistant.catalog.catalog import bundle_packages, bundles, find_bundle, largest_bundle_in
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.plan import Backend, Planning, Request
from assistant.model.record import replace
from assistant.plan import make_plans
from assistant.session.apply import unknown_requirements

CATALOG = catalog_as_of("2.15.0")
PC = Machine(os="linux", arch="x86_64", python="3.12.4", glibc="2.39")
RADEON = Gpu(vendor=Vendor.AMD, name="AMD Radeon RX 7800 XT", gfx="gfx1101", integrated=False)
KEYS = [bundle.key for bundle in bundles()]


def planned(bundle: str, machine: Machine = PC, **wishes: object) -> Planning:
    """Plan for a bundle."""
    return make_plans(machine, CATALOG, Request(bundle=bundle, **wishes))


def names(planning: Planning) -> set[str]:
    """Name the packages that the chosen plan asks for."""
    return {Requirement(line).name for line in planning.choice.requirements}


def said(planning: Planning) -> str:
    """Give the warnings of the chosen plan."""
    return " ".join(map(str, planning.choice.warnings))


def test_the_tables_name_each_package_once() -> None:
    """Every package of a bundle but torch's family has a row, and no row is for nothing."""
    asked = {name for bundle in bundles() for name in bundle.requirements}
    rows = [row.package for row in bundle_packages()]
    assert sorted(rows) == sorted(asked - {"torchvision", "torchaudio"})
    assert KEYS[0] == "minimal"
    assert all(bundle.mb for bundle in bundles()[1:])


@each("key", KEYS)
def test_a_bundle_goes_beside_the_plan_and_changes_nothing_else(key: str) -> None:
    """The same torch for the same reasons; the packages and the download are more."""
    bare, full, bundle = planned("").choice, planned(key).choice, find_bundle(key)
    assert replace(full, requirements=(), download_mb=0, asked=()) == replace(bare, requirements=(), download_mb=0)
    assert {Requirement(line).name for line in full.requirements} >= {*bundle.requirements, "torch", "numpy"}
    assert full.download_mb == bare.download_mb + bundle.mb
    assert unknown_requirements(full, CATALOG) == ()
    assert largest_bundle_in(names(planned(key))) == (key if bundle.requirements else "")


@each(
    ("machine", "backend", "lines"),
    [
        (PC, Backend.CPU, {"torch==2.15.0", "torchvision==0.29.2"}),
        (
            replace(PC, os="windows", os_version="Windows 11 (22631)", gpus=(RADEON,)),
            None,
            {"torchvision[device-gfx1101]<0.30,>=0.29.0a0"},
        ),
        (
            replace(PC, os="windows", os_version="Windows 11 (22631)", gpus=(RADEON,)),
            Backend.DIRECTML,
            {"torch==2.4.1", "torchvision==0.19.1", "torch-directml==0.2.5.dev240914"},
        ),
    ],
    ids=["cpu", "amd-index", "directml"],
)
def test_torchvision_is_the_one_that_goes_with_torch(
    machine: Machine, backend: Backend | None, lines: set[str]
) -> None:
    """Also beside AMD's own wheels and torch-directml's frozen torch, where it is asked for once."""
    plan = planned("course", machine, backend=backend).choice
    assert {*plan.requirements} >= lines
    assert sum(line.startswith("torchvision") for line in plan.requirements) == 1


@each(
    ("bundle", "machine", "pins", "lacks"),
    [
        ("audio", replace(PC, python="3.15.0"), (), "torchaudio"),
        ("language", replace(PC, python="3.15.0"), (), "transformers, datasets, accelerate"),
        ("language", replace(PC, os="windows", arch="arm64"), (), "datasets"),
    ],
)
def test_what_cannot_be_had_is_left_out_and_named(
    bundle: str, machine: Machine, pins: tuple[str, ...], lacks: str
) -> None:
    """At plan time, in one sentence; the rest of the bundle is there."""
    planning = planned(bundle, machine, pins=pins)
    assert f"comes without {lacks}: no build is known" in said(planning)
    assert not names(planning) & {*lacks.split(", ")}
    assert names(planning) & {*find_bundle(bundle).requirements}


def test_an_older_torch_gets_a_release_that_accepts_it() -> None:
    """Transformers 5 would switch torch off without a word that a beginner understands."""
    machine = replace(PC, os="windows", os_version="Windows 11 (22631)", gpus=(RADEON,))
    directml = planned("language", machine, backend=Backend.DIRECTML)
    assert "transformers<5.15" in directml.choice.requirements
    assert "transformers" in planned("language").choice.requirements
    old = planned("language", replace(PC, python="3.10.1"), pins=("torch==2.1.2",))
    assert "transformers<4.56" in old.choice.requirements


def test_the_users_own_pins_go_first() -> None:
    """A pinned package is asked for as pinned, and once."""
    lines = planned("course", pins=("pandas<3", "torchvision==0.28.0")).choice.requirements
    assert [line for line in lines if line.startswith(("pandas", "torchvision"))] == ["torchvision==0.28.0", "pandas<3"]


def test_a_nightly_plan_says_what_it_leaves_out() -> None:
    """The nightly torchvision of another night does not fit."""
    planning = planned("course", nightly=True)
    assert "torchvision" not in names(planning)
    assert "Without torchvision" in said(planning)


@pytest.mark.parametrize(("driver", "audio"), [("610.43.02", "2.11.1"), ("580.95.05", "2.11.0")])
@pytest.mark.parametrize("asked", [{"bundle": "audio"}, {"pins": ("torchaudio",)}], ids=["for audio", "pinned"])
def test_torchaudio_is_the_one_that_has_the_build(driver: str, audio: str, asked: dict[str, Any]) -> None:
    """The newest driver's build and the one before have different torchaudios; both ways to ask agree."""
    card = Gpu(vendor=Vendor.NVIDIA, name="NVIDIA GeForce RTX 4090", compute_capability="8.9")
    machine = replace(PC, nvidia_driver=driver, gpus=(card,))
    plan = planned(asked.get("bundle", ""), machine, pins=asked.get("pins", ())).choice
    assert [line for line in plan.requirements if line.startswith("torchaudio")] == [f"torchaudio=={audio}"]
