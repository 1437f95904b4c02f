"""Laws of the planner that hold for any machine."""

from __future__ import annotations

import msgspec.structs
from catalogs import with_release
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.requirements import Requirement

from assistant.catalog import load_catalog, number
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.plan import Backend, Request
from assistant.plan import make_plans
from assistant.plan.target import Refusal, find_target, python_tag

CATALOG = load_catalog()
CODES = [
    "2.1",
    "3.0",
    "3.5",
    "3.7",
    "5.0",
    "5.2",
    "6.0",
    "6.1",
    "7.0",
    "7.5",
    "8.0",
    "8.6",
    "8.7",
    "8.9",
    "9.0",
    "10.0",
]
NVIDIA = [
    Gpu(vendor=Vendor.NVIDIA, compute_capability=code) for code in [*CODES, "10.3", "11.0", "12.0", "12.1", "13.0"]
]
TARGETS = sorted(
    {gfx for row in CATALOG.rocm_code for gfx in row.gfx}
    | set(CATALOG.by("rocm.overrides", "gfx"))
    | {"gfx803", "gfx90c"}
)
AMD = [Gpu(vendor=Vendor.AMD, gfx=gfx, integrated=iffy) for gfx in TARGETS for iffy in (False, True)]
INTEL = [
    Gpu(vendor=Vendor.INTEL, pci_id=f"8086:{device}") for device in ("56a0", "e20b", "7d55", "9a49", "5917", "ffff")
]
OTHERS = [Gpu(vendor=Vendor.APPLE), Gpu(vendor=Vendor.OTHER, pci_id="1a03:2000"), Gpu(vendor=Vendor.AMD), Gpu()]
SYSTEMS = [
    ("linux", "x86_64"),
    ("linux", "aarch64"),
    ("windows", "AMD64"),
    ("windows", "ARM64"),
    ("macos", "arm64"),
    ("macos", "x86_64"),
    ("linux", "riscv64"),
    (None, None),
]
PYTHONS = ["3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.13t", "3.14", "3.14t", "3.15", "3.16", None]
DRIVERS = st.none() | st.builds(
    "{}.{:02d}".format, st.sampled_from([390, 450, 470, 525, 535, 560, 570, 575, 580, 595, 610]), st.integers(0, 99)
)


ANY_CARD = st.sampled_from([*NVIDIA, *AMD, *INTEL, *OTHERS])


@st.composite
def machines(draw, cards=ANY_CARD):
    """Draw machines, likely and unlikely."""
    system, arch = draw(st.sampled_from(SYSTEMS))
    return Machine(
        os=system,
        arch=arch,
        python=draw(st.sampled_from(PYTHONS)),
        os_version=draw(
            st.sampled_from([None, "12.2", "13.6", "15.0", "Windows 10 (17763)", "CentOS 7", "Ubuntu 24.04"])
        ),
        wsl=draw(st.sampled_from([None, True])) if system == "linux" else None,
        gpus=tuple(draw(st.lists(cards, max_size=3))),
        nvidia_driver=draw(DRIVERS),
    )


def outcome(planning):
    """Reduce an answer to what would be installed first."""
    plan = planning.choice
    return plan and (plan.backend, plan.variant, plan.torch, plan.python, plan.env)


def platform_of(machine):
    """Name the catalogue's platform of a machine, None where no wheel fits."""
    target = find_target(machine, Request(), CATALOG)
    return None if isinstance(target, Refusal) else target


@settings(max_examples=400, deadline=None)
@given(machines())
def test_every_machine_gets_an_answer_that_ends_with_the_cpu(machine):
    """A choice that is the first plan and a CPU plan at the end, or none and the reason."""
    planning = make_plans(machine, CATALOG)
    target = platform_of(machine)
    if target is None:
        assert planning.choice is None
        assert planning.rejected[0].why
        return
    if planning.choice is None:
        assert planning.rejected
        return
    assert planning.choice == planning.plans[0]
    assert planning.choice.python == target.python
    assert planning.plans[-1].backend is Backend.CPU


@settings(max_examples=400, deadline=None)
@given(machines())
def test_every_planned_wheel_is_in_the_catalogue(machine):
    """Each plan's torch is published for its Python, platform and variant, and its lines can be read."""
    for plan in make_plans(machine, CATALOG).plans:
        platform, tag = platform_of(machine).platform, python_tag(plan.python)[1]
        release = CATALOG.release(plan.torch)
        if plan.variant == "amd-index":
            assert any(row.torch == plan.torch and tag in row.pythons for row in CATALOG.amd_releases)
        elif plan.variant == "directml":
            assert any(row.torch == plan.torch and tag in row.pythons for row in CATALOG.rows("directml.releases"))
        else:
            assert plan.variant in release.variants[platform]
            assert tag in release.pythons.get(platform, release.pythons["any"])
        assert Requirement(plan.requirements[0]).name == "torch"
        assert len({Requirement(line).name for line in plan.requirements}) == len(plan.requirements)


@settings(max_examples=300, deadline=None)
@given(machines(st.sampled_from(NVIDIA)), st.integers(1, 200))
def test_a_newer_driver_never_loses_a_candidate(machine, newer):
    """With one card, a newer driver keeps CUDA and never lowers the release."""
    older = msgspec.structs.replace(machine, gpus=machine.gpus[:1], nvidia_driver=machine.nvidia_driver or "535.10")
    branch, _dot, minor = older.nvidia_driver.partition(".")
    later = msgspec.structs.replace(older, nvidia_driver=f"{int(branch) + newer}.{minor}")
    before, after = (
        [number(plan.torch) for plan in make_plans(each, CATALOG).plans if plan.backend is Backend.CUDA]
        for each in (older, later)
    )
    assert max(before, default=()) <= max(after, default=())


@settings(max_examples=200, deadline=None)
@given(machines())
def test_a_cpu_only_alternative_never_changes_the_gpu_choice(machine):
    """A newer release for the CPU only, and an adapter that nothing drives, leave a GPU choice as it was."""
    before = make_plans(machine, CATALOG)
    if before.choice is None or before.choice.backend is Backend.CPU:
        return
    assert outcome(make_plans(machine, WITH_NEWER_CPU)) == outcome(before)
    crowded = msgspec.structs.replace(machine, gpus=(Gpu(vendor=Vendor.OTHER, pci_id="1a03:2000"), *machine.gpus))
    assert outcome(make_plans(crowded, CATALOG)) == outcome(before)


@settings(max_examples=100, deadline=None)
@given(machines(st.sampled_from(NVIDIA)))
def test_a_kepler_display_card_never_drags_a_newer_card_down(machine):
    """Adding a card that no current build serves changes nothing where a newer card is used."""
    before = make_plans(machine, CATALOG)
    if before.choice is None or not any(number(gpu.compute_capability) >= (5, 0) for gpu in machine.gpus):
        return
    beside = msgspec.structs.replace(machine, gpus=(Gpu(vendor=Vendor.NVIDIA, compute_capability="3.5"), *machine.gpus))
    assert outcome(make_plans(beside, CATALOG)) == outcome(before)


def newer_cpu_release():
    """Make up the next release, for the CPU only."""
    newest = CATALOG.releases[0]
    variants = {platform: ("cpu",) for platform in newest.variants if not platform.startswith("macos")}
    return msgspec.structs.replace(newest, version="2.99.0", date="2030-01-01", variants=variants, pypi={})


WITH_NEWER_CPU = with_release(CATALOG, newer_cpu_release())


def test_every_backend_and_every_current_variant_is_reachable():
    """Some machine is led to each backend, and to each variant of the newest two releases."""
    reached = set()
    for gpu in (*NVIDIA, *AMD, *INTEL, *OTHERS):
        for system, arch in SYSTEMS:
            for python in ("3.12", "3.15"):
                for driver in ("570.10", "580.10", "999.0"):
                    machine = Machine(os=system, arch=arch, python=python, gpus=(gpu,), nvidia_driver=driver)
                    reached |= {(plan.backend, plan.variant) for plan in make_plans(machine, CATALOG).plans}
    assert {backend for backend, _variant in reached} == set(Backend)
    newest = {variant for row in CATALOG.releases[:2] for variants in row.variants.values() for variant in variants}
    assert newest | {"amd-index", "directml"} <= {variant for _backend, variant in reached}
