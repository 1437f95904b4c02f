"""NVIDIA: capability and driver together, over every card."""

from __future__ import annotations

from catalogs import catalog_as_of
from tables import each

from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.plan import Backend, Request
from assistant.model.record import replace
from assistant.plan import make_plans

CATALOG = catalog_as_of("2.15.0")


def machine(*capabilities, driver="580.95.05", **facts):
    """Make a Linux machine with NVIDIA cards of these capabilities."""
    cards = tuple(Gpu(vendor=Vendor.NVIDIA, name=f"Card {code}", compute_capability=code) for code in capabilities)
    given = {"os": "linux", "arch": "x86_64", "python": "3.12", "nvidia_driver": driver, "gpus": cards}
    return Machine(**{**given, **facts})


def choice(*capabilities, request=None, **facts):
    """Plan for such a machine and answer the choice."""
    return make_plans(machine(*capabilities, **facts), CATALOG, request or Request()).choice


@each(
    ("capabilities", "driver", "variant", "torch"),
    [
        (["8.6"], "580.95.05", "cu130", "2.15.0"),
        (["8.6"], "595.58.03", "cu132", "2.15.0"),
        (["8.9"], "535.183.01", "cu126", "2.14.1"),
        (["6.1"], "580.95.05", "cu126", "2.14.1"),
        (["12.0"], "570.133.07", "cu128", "2.11.0"),
        (["8.6", "6.1"], "580.95.05", "cu126", "2.14.1"),
        (["3.5", "8.6"], "580.95.05", "cu130", "2.15.0"),
        (["7.0", "12.0"], "580.95.05", "cu128", "2.10.0"),
        (["3.7"], "470.256.02", "cu118", "2.7.1"),
        (["12.1"], "580.95.05", "cu130", "2.15.0"),
    ],
)
def test_capability_and_driver_decide_together(capabilities, driver, variant, torch):
    """The newest build that holds code for every card that counts and that the driver runs."""
    plan = choice(*capabilities, driver=driver)
    assert (plan.backend, plan.variant, plan.torch) == (Backend.CUDA, variant, torch)


def test_the_windows_floor_counts_in_windows_and_in_wsl():
    """526.47 runs CUDA 12 on Linux; in Windows and WSL only CUDA 11."""
    assert choice("8.6", driver="526.47").variant == "cu126"
    assert choice("8.6", driver="526.47", os="windows").variant == "cu118"
    assert choice("8.6", driver="526.47", wsl=True).variant == "cu118"


def test_a_card_that_no_build_joins_is_named():
    """Pascal beside Blackwell has no common build: the newer card is served, the other one named."""
    plan = choice("6.1", "12.0")
    assert plan.variant == "cu130"
    assert any("Card 6.1" in str(warning) for warning in plan.warnings)


def test_covering_all_cards_leaves_the_newest_release_as_second_plan():
    """Where an old card holds torch back, the newest torch for the newer card is offered next."""
    planning = make_plans(machine("8.6", "6.1"), CATALOG)
    assert [plan.torch for plan in planning.plans[:2]] == ["2.14.1", "2.15.0"]


def test_a_newer_driver_is_named_as_the_way_to_a_newer_torch():
    """The counterfactual says which driver opens what."""
    rejection = make_plans(machine("8.6", driver="570.86.15"), CATALOG).rejected[0]
    assert "580" in str(rejection.would_help)
    assert "2.15.0" in str(rejection.would_help)


@each(
    "facts",
    [
        {"nvidia_driver": None, "nvidia_driver_state": "nouveau"},
        {"nvidia_driver": None, "nvidia_smi_output": "NVIDIA-SMI has failed because it couldn't communicate"},
        {"nvidia_driver_state": "not-passed-in", "container": "docker"},
        {"nvidia_driver_state": "blocked-by-os", "wsl": True},
        {"env": {"CUDA_VISIBLE_DEVICES": "-1"}},
        {"env": {"CUDA_VISIBLE_DEVICES": ""}},
    ],
)
def test_what_keeps_torch_from_the_card_is_said_with_the_remedy(facts):
    """No driver, a broken one or a hiding variable leads to the CPU, never in silence."""
    planning = make_plans(machine("8.6", **facts), CATALOG)
    assert planning.choice.backend is Backend.CPU
    assert planning.rejected[0].why
    assert planning.rejected[0].would_help
    assert planning.choice.warnings


def test_an_unknown_driver_is_not_an_absent_one():
    """Without a word on the driver a current one is assumed, and that is told."""
    plan = choice("8.6", driver=None)
    assert plan.variant == "cu130"
    assert any("580" in str(warning) for warning in plan.warnings)


def test_the_driver_is_read_off_nvidia_smi_before_and_after_610():
    """Both spellings of the CUDA line are known, and Windows's own numbering of drivers."""
    new = "NVIDIA-SMI 610.43.02   KMD Version: 610.43.02   CUDA UMD Version: 13.3"
    old = "| NVIDIA-SMI 570.133.07   Driver Version: 570.133.07   CUDA Version: 12.8 |"
    assert choice("8.6", driver=None, nvidia_smi_output=new).variant == "cu132"
    assert choice("8.6", driver=None, nvidia_smi_output=old).variant == "cu126"
    card = Gpu(vendor=Vendor.NVIDIA, compute_capability="8.6", driver="32.0.15.7652")
    assert choice(driver=None, os="windows", gpus=(card,)).variant == "cu126"


def test_jetson_goes_to_nvidias_own_wheels_where_upstream_has_none():
    """Orin with JetPack 6 has no usable upstream build but NVIDIA's, for its own Python; with driver 580 it has one."""
    board = machine("8.7", driver="540.4.0", arch="aarch64")
    assert "jetson-ai-lab" in str(make_plans(board, CATALOG).rejected[0].would_help)
    plan = make_plans(replace(board, python="3.10.12", glibc="2.35"), CATALOG).choice
    assert (plan.variant, plan.index_url) == ("jetson-index", "https://pypi.jetson-ai-lab.io/jp6/cu126")
    assert {"torch==2.8.0", "numpy<2"} <= set(plan.requirements)
    assert make_plans(replace(board, python="3.10.12", glibc="2.31"), CATALOG).choice.backend is Backend.CPU
    assert choice("8.7", arch="aarch64").variant == "cu132"


def test_a_card_newer_than_the_catalogue_runs_on_ptx_or_says_so():
    """Linux builds carried PTX, which the driver compiles, up to torch 2.10; a refresh may know of newer code."""
    here = make_plans(machine("13.0", driver="650.10"), CATALOG)
    assert (here.choice.variant, here.choice.torch) == ("cu130", "2.10.0")
    assert "cu130 of torch 2.10.0 holds PTX, which the driver compiles for" in str(here.choice.reasons[0])
    for planning in (here, make_plans(machine("13.0", driver="650.10", os="windows"), CATALOG)):
        refused = planning.rejected[0]
        assert (refused.key, "refresh" in str(refused.would_help)) == ("gpu-newer-than-catalogue", True)


def test_cards_with_code_and_a_newer_one_that_lives_on_ptx_are_told_apart():
    """One build serves both, each in its own way."""
    reasons = [str(one) for one in choice("12.0", "13.0", driver="650.10").reasons]
    assert "holds code for" in reasons[0]
    assert "(compute capability 12.0)" in reasons[0]
    assert "holds PTX" in reasons[1]
    assert "(compute capability 13.0)" in reasons[1]


def test_a_container_without_its_gpu_is_told():
    """A driver without any card, in a container, is a forgotten option of the container."""
    plan = choice(container="docker")
    assert any("--gpus all" in str(warning) for warning in plan.warnings)


def test_a_platform_without_cuda_builds_is_no_fault_of_the_card():
    """PyTorch's Windows builds for Arm are for the CPU alone, whatever the card."""
    refused = make_plans(machine("12.1", os="windows", arch="arm64"), CATALOG).rejected[0]
    assert (refused.key, "WSL 2" in str(refused.would_help)) == ("no-wheel-for-system", True)


def test_the_release_nearest_to_the_pin_is_advised():
    """What was made for torch 2.6 runs with 2.7 more likely than with the newest."""
    planning = make_plans(machine("12.0"), CATALOG, Request(pins=("torch==2.6.0",)))
    assert "torch 2.7.1 with cu128 runs here" in str(planning.rejected[0].would_help)
