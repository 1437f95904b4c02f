"""AMD's own indexes: which release, which night, which driver, and what is said of cards that AMD leaves out."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from catalogs import catalog_as_of, with_rows
from loopback import LoopbackIndex
from tables import each
from uv import find_uv_bin

from assistant.catalog import Catalog
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.plan import Backend, Plan, Planning, Request
from assistant.model.record import replace
from assistant.plan import make_plans

CATALOG = catalog_as_of("2.15.0")


def card(gfx: str, **facts: object) -> Gpu:
    """Make an AMD card."""
    return Gpu(vendor=Vendor.AMD, name=f"Card {gfx}", gfx=gfx, **facts)


def planned(*cards: Gpu, os: str = "windows", catalog: Catalog = CATALOG, **wishes: object) -> Planning:
    """Plan for a PC with these cards."""
    machine = Machine(os=os, arch="x86_64", python="3.12", gpus=cards, memory_gb=32)
    return make_plans(machine, catalog, Request(**wishes))


def said(plan: Plan) -> str:
    """Give every sentence of a plan."""
    return "\n".join(map(str, (*plan.reasons, *plan.warnings)))


@each(
    ("os", "pins", "torch", "host", "adrenalin"),
    [
        ("windows", (), "2.14.0", "stable.repo.amd.com", "26.10.41.05"),
        ("windows", ("torch<2.14",), "2.13.0", "stable.repo.amd.com", "26.8.1"),
        ("windows", ("torch<2.13",), "2.12.0", "repo.amd.com", "26.2.2"),
        ("windows", ("torch==2.13.0+rocm10.0.0",), "2.13.0", "stable.repo.amd.com", "26.8.1"),
        ("linux", ("torch==2.13.0+rocm7.14.0",), "2.13.0", "repo.amd.com", ""),
    ],
)
def test_each_release_comes_from_the_index_that_holds_it(os, pins, torch, host, adrenalin):
    """With the index goes the driver that AMD advises for its ROCm; a local version names the ROCm."""
    plan = planned(card("gfx1032"), os=os, pins=pins).choice
    assert (plan.variant, plan.torch, plan.index_url.split("/")[2]) == ("amd-index", torch, host)
    assert (f"Adrenalin {adrenalin} " in said(plan)) is bool(adrenalin)


def test_a_rocm_that_amd_has_no_windows_build_for_is_not_planned_there():
    """Torch 2.13 for ROCm 7.14 is for Linux alone."""
    planning = planned(card("gfx1032"), pins=("torch==2.13.0+rocm7.14.0",), backend=Backend.ROCM)
    assert planning.choice is None
    assert planning.rejected[0].key == "pins-exclude-build"


@each("gfx", ["gfx900", "gfx906", "gfx90c"])
def test_what_amd_builds_each_night_alone_is_told_and_planned_on_request(gfx):
    """Nobody is given an untested build unasked, and nobody is told that there is none."""
    planning = planned(card(gfx))
    assert planning.choice.backend is Backend.DIRECTML
    refused = next(one for one in planning.rejected if one.backend is Backend.ROCM)
    assert (refused.key, refused.variant) == ("nightly-only", "nightly/amd-index")
    assert "nightly index alone holds newer builds" in str(refused.why)
    plan = planned(card(gfx), nightly=True).choice
    assert (plan.backend, plan.variant) == (Backend.ROCM, "nightly/amd-index")
    assert plan.requirements[0] == f"torch[device-{gfx}]==2.14.0"
    assert "barely tested" in said(plan)


def test_the_end_of_a_card_is_told_by_a_row_alone():
    """A build that lacks a card's code proves no end of AMD's support; the row of one that ended does."""
    mi50 = planned(card("gfx906"), os="linux").choice
    assert mi50.torch == "2.9.1"
    assert "ROCm has no kernels for Card gfx906 (gfx906) since 6.4; torch 2.9.1 is the last" in said(mi50)
    assert "nightly index" in said(mi50)
    rows = (
        replace(row, gfx=tuple({*row.gfx} - {"gfx908"})) if row.variant == "rocm7.2" else row
        for row in CATALOG.rocm_code
        if row.variant != "rocm7.14"
    )
    catalog = with_rows(CATALOG, {"rocm.code": rows})
    mi100 = planned(card("gfx908"), os="linux", catalog=catalog).choice
    assert "No newer build is known to hold code for Card gfx908 (gfx908)" in said(mi100)


def test_graphics_that_are_no_faster_than_the_processor_are_used_on_request_alone():
    """The processor is planned with the reason; the two compute units stay a choice, and do not count beside a card."""
    units = card("gfx1036", integrated=True)
    for os in ("windows", "linux"):
        planning = planned(units, os=os)
        assert planning.choice.backend is Backend.CPU
        refused = {one.backend: one.key for one in planning.rejected}
        assert refused[Backend.ROCM] == "gpu-no-faster"
        assert any("two compute units" in said(plan) for plan in planning.plans)
        assert planned(units, os=os, backend=Backend.ROCM).choice.backend is Backend.ROCM
    assert planned(units, card("gfx1201")).choice.variant == "amd-index"


def test_slow_graphics_stay_where_nothing_else_is_left():
    """A project that pins a ROCm build gets it, rather than nothing."""
    units = card("gfx1036", integrated=True)
    assert planned(units, os="linux", pins=("torch==2.13.0+rocm7.2",)).choice.backend is Backend.ROCM


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[LoopbackIndex]:
    """Serve AMD's wheels under their real names: local versions, a pre-release, a patch, the code of cards apart."""
    index = LoopbackIndex(tmp_path)
    for tag in ("cp312-cp312-win_amd64", "cp312-cp312-linux_x86_64"):
        for rocm, torch, vision in (("7.14.1", "2.12.0", "0.27.0"), ("10.1.0", "2.14.0", "0.29.0a0")):
            extra = f'rocm-sdk-device-gfx1201=={rocm}; extra == "device-gfx1201"'
            index.add("torch", f"{torch}+rocm{rocm}", tag, requires=(extra,))
            index.add("torchvision", f"{vision}+rocm{rocm}", tag, requires=(f"torch=={torch}+rocm{rocm}", extra))
            index.add("rocm-sdk-device-gfx1201", rocm, "py3-none-any")
        index.add("torchaudio", "2.11.0.3+rocm10.1.0", tag)
    for name, version in (
        ("numpy", "2.4.0"),
        ("onnx", "1.23.0"),
        ("onnxruntime-windowsml", "1.30.0"),
        ("onnxruntime", "1.31.0"),
    ):
        index.add(name, version)
    yield index
    index.close()


@pytest.mark.process
@pytest.mark.parametrize("os", ["windows", "linux"])
def test_uv_finds_the_family_as_amd_publishes_it(shelf, os, tmp_path):
    """Torchvision is a pre-release and torchaudio a patch of AMD's own there; each card's code comes along."""
    pins = ("torch==2.14.0+rocm10.1.0", "torchvision", "torchaudio")
    plan = planned(card("gfx1201"), os=os, pins=pins).choice
    wanted = tmp_path / "wanted.txt"
    wanted.write_text("\n".join(plan.requirements), encoding="utf-8")
    command = ("pip", "compile", str(wanted), "--no-header", "--no-annotate", "--no-config", "--no-cache")
    where = ("--default-index", shelf.url, "--python-version", "3.12", "--python-platform", os)
    uv = subprocess.run([find_uv_bin(), *command, *where], capture_output=True, text=True, check=False)
    assert uv.returncode == 0, uv.stderr
    found = {*uv.stdout.split()}
    assert {"torch==2.14.0+rocm10.1.0", "torchvision==0.29.0a0+rocm10.1.0", "torchaudio==2.11.0.3+rocm10.1.0"} <= {
        line.replace("[device-gfx1201]", "") for line in found
    }
    assert "rocm-sdk-device-gfx1201==10.1.0" in found
