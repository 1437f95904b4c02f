"""Plans fitted to what the package sources hold."""

from __future__ import annotations

from catalogs import catalog_as_of

from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.plan import Backend, Plan, Planning, Request, Wheel
from assistant.model.record import replace
from assistant.plan import companions_to_find, make_plans, with_companions
from assistant.plan.availability import Lookup, PlanInputs, brings_cuda, settle, with_sizes

CATALOG = catalog_as_of("2.15.0")
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
LINUX = Machine(os="linux", arch="x86_64", glibc="2.39", python="3.12")
WINDOWS = Machine(os="windows", arch="x86_64", python="3.12")
AMPERE = Gpu(vendor=Vendor.NVIDIA, name="GeForce RTX 3090", compute_capability="8.6", pci_id="10de:2204")
BLACKWELL = Gpu(vendor=Vendor.NVIDIA, name="GeForce RTX 5090", compute_capability="12.0", pci_id="10de:2b85")
NOTHING = Lookup(source="your sources")
DOWN = Lookup(source=CPU_INDEX, reason="connection refused")
MIRROR = "https://mirror.test"


def with_card(card: Gpu, driver: str = "595.60") -> Machine:
    """Give a Linux machine with an NVIDIA card."""
    return Machine(os="linux", arch="x86_64", glibc="2.39", python="3.12", gpus=(card,), nvidia_driver=driver)


def wheel(version: str, where: str = "configured", size: int | None = None, server: str = MIRROR) -> Wheel:
    """Give a torch wheel of a version."""
    name = f"torch-{version}-cp312-cp312-manylinux_2_28_x86_64.whl"
    return Wheel(filename=name, url=f"{server}/torch/{name}", where=where, size=size)


def holding(*versions: str, where: str = "official") -> Lookup:
    """Give a look at a source that holds some versions."""
    return Lookup(source=CPU_INDEX, wheels=tuple(wheel(version, where) for version in versions))


def settled(
    official: Lookup, configured: Lookup = NOTHING, machine: Machine = LINUX, request: Request | None = None
) -> Planning:
    """Plan for a machine and settle it; every index answers alike."""
    case = PlanInputs(machine, CATALOG, request or Request())
    planning = make_plans(*case)
    looks = {(plan.index_url, plan.python): official for plan in planning.plans}
    return settle(planning, looks | {(None, plan.python): configured for plan in planning.plans}, case)


def test_a_companion_is_of_torchs_own_build_or_left_out() -> None:
    """PyPI's torchvision does not load beside a torch for the CPU; one that was pinned is asked for all the same."""

    def planned(*versions: str, reason: str = "", pins: tuple[str, ...] = ()) -> Plan:
        case = PlanInputs(LINUX, CATALOG, Request(bundle="course", pins=pins))
        planning = settled(NOTHING, holding("2.13.0+cpu", where="find-links"), request=case.request)
        assert companions_to_find(planning) == {("torchvision", "3.12")}
        there = tuple(wheel(version) for version in versions)
        look = Lookup(source="yours", wheels=there, reason=reason)
        return with_companions(planning, {("torchvision", "3.12"): look}, case).choice

    assert "torchvision==0.28.0+cpu" in planned("0.29.0+cpu", "0.28.0+cpu", "0.28.0").requirements
    alone = planned("0.28.0")
    assert not [line for line in alone.requirements if line.startswith("torchvision")]
    assert "torchvision==0.28.0 is left out: none of your package sources has it" in str(alone.warnings[-1])
    assert "yours could not be asked for it (down)" in str(planned(reason="down").warnings[-1])
    assert "torchvision==0.28.0+cpu" in planned(pins=("torchvision",)).requirements
    official = settled(holding("2.15.0+cpu"), request=Request(bundle="course"))
    assert companions_to_find(official) == set()


def test_an_older_torch_that_does_not_run_on_the_card_is_not_taken() -> None:
    """Blackwell needs the code that came with CUDA 12.8: an index that ends before is no answer, and is told so."""
    planning = settled(holding("2.6.0+cu126"), machine=with_card(BLACKWELL))
    assert planning.choice.backend is Backend.CPU
    assert planning.rejected[0].backend is Backend.CUDA
    assert planning.rejected[0].why in planning.choice.warnings


def test_an_older_torch_brings_its_own_companions() -> None:
    """A release from before NumPy 2 is planned with NumPy 1."""
    assert "numpy<2" in settled(holding("2.2.2+cpu")).choice.requirements


def test_a_users_pin_holds_for_what_the_sources_have() -> None:
    """A source with nothing but what the pin forbids does not serve."""
    plan = settled(holding("2.15.0+cpu"), request=Request(pins=("torch<2.14",))).choice
    assert plan.wheel is None
    assert plan.torch == "2.13.0"


def test_a_wheel_without_a_local_tag_is_not_taken_for_a_cpu_build() -> None:
    """On Linux such a wheel carries CUDA: it is offered last, with a warning, and never chosen."""
    plans = settled(DOWN, holding("2.15.0", where="configured")).plans
    assert plans[0].wheel is None
    assert "connection refused" in str(plans[0].warnings[-1])
    assert [brings_cuda(plan) for plan in plans] == [False, True]
    assert "several GB" in str(plans[1].warnings[0])
    assert plans[1].wheel is not None


def test_pypis_build_serves_where_it_is_the_one_that_is_wanted() -> None:
    """Without a local tag it is CUDA's on Linux and the CPU's on Windows."""
    found = holding("2.15.0", where="configured")
    card = settled(DOWN, found, machine=with_card(AMPERE)).choice
    assert (card.backend, card.variant, card.index_url) == (Backend.CUDA, "cu132", None)
    assert settled(DOWN, found, machine=WINDOWS).choice.wheel is not None


def test_the_users_own_mirror_goes_first_where_it_holds_the_very_build() -> None:
    """PyPI's 2.15.0 is cu132 on Linux: another build is still fetched from PyTorch."""
    mirror = Lookup(source=MIRROR, wheels=(wheel("2.15.0"),), nearer=True)
    near = settled(holding("2.15.0+cu132"), mirror, machine=with_card(AMPERE)).choice
    assert (near.variant, near.index_url, near.requirements[0]) == ("cu132", None, "torch==2.15.0")
    assert any(f"{MIRROR}, which your settings name, holds this very build" in str(one) for one in near.reasons)
    far = settled(holding("2.15.0+cu130"), mirror, machine=with_card(AMPERE, "580.95")).choice
    assert (far.variant, bool(far.index_url)) == ("cu130", True)


def test_pypis_build_serves_a_driver_that_runs_it_when_torchs_index_is_down() -> None:
    """Driver 580 is planned cu130; behind a mirror PyPI's cu132 is what can be had, and 580 runs it; 570 does not."""
    found = holding("2.15.0", where="configured")
    assert settled(DOWN, found, machine=with_card(AMPERE, "580.95")).choice.variant == "cu132"
    old = settled(DOWN, found, machine=with_card(AMPERE, "570.26")).choice
    assert (old.variant, old.wheel) == ("cu126", None)


def test_a_bare_wheel_of_another_source_is_not_amds() -> None:
    """Without a local tag only AMD's own index holds AMD's build; PyPI's is CUDA's."""
    card = Gpu(vendor=Vendor.AMD, name="RX 6600", gfx="gfx1032")
    planning = settled(DOWN, holding("2.14.0", where="configured"), machine=replace(LINUX, gpus=(card,)))
    assert planning.choice.wheel is None


def test_another_build_never_stands_in() -> None:
    """A CUDA plan is not settled with a CPU wheel, nor with another CUDA."""
    plan = settled(DOWN, holding("2.15.0+cpu", "2.15.0+cu126"), with_card(AMPERE)).choice
    assert plan.backend is Backend.CUDA
    assert plan.wheel is None
    assert plan.index_url
    assert "Not checked" in str(plan.warnings[-1])


def test_a_backend_that_was_asked_for_is_not_swapped_for_the_cpu() -> None:
    """Where no index holds the build, there is no plan and a reason."""
    planning = settled(holding("2.15.0+cpu"), machine=with_card(AMPERE), request=Request(backend=Backend.CUDA))
    assert all(plan.backend is Backend.CPU for plan in planning.plans)
    assert "holds no cu" in str(planning.rejected[0].why)


def test_a_plan_from_the_default_index_is_confirmed_there() -> None:
    """MacOS takes PyPI's wheel, which has no local tag."""
    mac = Machine(os="macos", os_version="macOS 15.1", arch="arm64", python="3.12", gpus=(Gpu(vendor=Vendor.APPLE),))
    pypi = Lookup(source="PyPI", wheels=(wheel("2.15.0"),))
    plan = settled(pypi, pypi, mac).choice
    assert (plan.backend, plan.index_url, bool(plan.wheel)) == (Backend.MPS, None, True)


def test_true_sizes_take_the_place_of_estimates() -> None:
    """The wheel's size and what comes beside it; the size stands in the wheel too."""
    planning = settled(holding("2.15.0+cpu"))
    case = PlanInputs(LINUX, CATALOG)
    plan = with_sizes(planning, {planning.choice.wheel.url: 190_000_000}, case).choice
    assert (plan.wheel.size, plan.download_mb) == (190_000_000, 270)
    assert with_sizes(planning, {}, case) == planning
