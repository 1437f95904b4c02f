"""Recipes: whole and sourced as data, planned for every recorded machine or refused with a reason."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from tables import each

from assistant.catalog import load_catalog
from assistant.catalog.catalog import bundles, find_bundle, launchers, recipe_trial
from assistant.catalog.companions import describe_needs, system_needs
from assistant.detect import detect
from assistant.host.base import ReplayHost
from assistant.machines import load, shipped
from assistant.model.errors import BadInput
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.model.plan import Backend, Plan, Planning, Request
from assistant.model.record import replace
from assistant.plan import make_plans
from assistant.session.apply import unknown_requirements
from assistant.views import rejection_reason
from assistant_addons.projects.command import recipe_rows
from assistant_addons.projects.companions import torch_bounds
from assistant_addons.projects.recipe_plans import with_recipe
from assistant_addons.projects.recipes import groups, recipe_of, recipes

CATALOG = load_catalog()
KEYS = [recipe.key for recipe in recipes()]
PC = Machine(os="linux", arch="x86_64", python="3.12.4", glibc="2.39")


def nvidia(capability: str = "8.9", vram: float | None = 24, driver: str = "580.95.05") -> Machine:
    """Make a Linux PC with a card of NVIDIA's."""
    card = Gpu(vendor=Vendor.NVIDIA, name="Card", compute_capability=capability, vram_gb=vram, integrated=False)
    return replace(PC, gpus=(card,), nvidia_driver=driver)


def radeon(gfx: str = "gfx1100", os: str = "linux") -> Machine:
    """Make a PC with a Radeon."""
    card = Gpu(vendor=Vendor.AMD, name="AMD Radeon RX 7900 XTX", gfx=gfx, vram_gb=24, integrated=False)
    version = "Windows 11 (22631)" if os == "windows" else None
    return replace(PC, os=os, os_version=version, glibc=None if os == "windows" else "2.39", gpus=(card,))


@cache
def recorded(name: str) -> Machine:
    """Return a recorded machine."""
    return detect(ReplayHost(load(name))).machine


def planned(key: str, machine: Machine = PC, **wishes: object) -> Planning:
    """Plan for a recipe."""
    return make_plans(machine, CATALOG, Request(bundle=key, **wishes))


def chosen(key: str, machine: Machine = PC, **wishes: object) -> Plan:
    """Return the plan that is chosen for a recipe."""
    choice = planned(key, machine, **wishes).choice
    assert choice is not None
    return choice


def said(texts: object) -> str:
    """Join texts."""
    return " ".join(map(str, texts))


@each("key", KEYS)
def test_a_recipe_is_whole(key: str) -> None:
    """Requirements, bounds and addresses can be read, what it names is there, and each source has a date."""
    recipe = recipe_of(key)
    lines = [Requirement(line) for line in (*recipe.requirements, *(x for also in recipe.also.values() for x in also))]
    assert lines
    assert not any(line.url for line in lines)
    for bound in (recipe.pythons, *recipe.torch.values()):
        assert SpecifierSet(bound)
    assert {*recipe.torch} <= {"any", "linux", "windows", "macos", *(backend.value for backend in Backend)}
    assert not {*recipe.backends} & {*recipe.untested}
    told = {need.key for line in lines for need in system_needs(line.name)}
    assert len(describe_needs(recipe.name, recipe.needs)) == len(recipe.needs)
    assert not told & {need.key for need in recipe.needs}, "its packages say so already"
    assert recipe.launcher in {"", *(launcher.key for launcher in launchers())}
    assert bool(recipe.application) == bool(
        recipe.application and re.fullmatch("[0-9a-f]{40}", recipe.application.commit)
    )
    assert all(source.of and re.match(r"20\d\d", source.date) for source in recipe.sources)
    on_pypi = re.compile(r"PyPI: \S+ \S+")
    others = (url for source in recipe.sources for url in on_pypi.sub("", source.url).split())
    assert all(url.startswith("https://") for url in others)
    assert all(use.gb > 0 and use.use for use in recipe.memory)
    assert ast.parse(recipe_trial(key).call)
    assert all(str(value) for _label, value in recipe_rows(recipe))


@each("key", ["whisperx", "unsloth", "ultralytics", "diffusers"])
def test_a_recipe_for_one_package_has_that_packages_bounds(key: str) -> None:
    """They stand in two tables, as a recipe is planned before an index is asked, and must not part."""
    recipe = recipe_of(key)
    line = next(need for need in map(Requirement, recipe.requirements) if need.name == key)
    assert torch_bounds(line) == (SpecifierSet(recipe.torch["any"]),)


def test_keys_are_those_of_bundles_and_recipes() -> None:
    """No key is there twice; `--for` takes both, and a misspelt one gets the nearest."""
    keys = [*(bundle.key for bundle in bundles()), *KEYS]
    assert len({*keys}) == len(keys)
    assert find_bundle(" ComfyUI ").key == "comfyui"
    assert recipe_trial("course") is None
    for wrong, near in [("comfui", "comfyui"), ("whisper", "faster-whisper, whisperx"), ("cuorse", "course")]:
        with pytest.raises(BadInput) as refused:
            find_bundle(wrong)
        assert near in str(refused.value.hint)
    with pytest.raises(BadInput, match="no bundle called 'cooking'") as refused:
        make_plans(PC, CATALOG, Request(bundle="cooking"))
    assert all(bundle.key in str(refused.value.hint) for bundle in bundles())
    with pytest.raises(BadInput):
        recipe_of("course")
    assert {recipe_of(key).group for key in KEYS} == {group.key for group in groups()}


@each("key", KEYS)
def test_every_recorded_machine_gets_a_plan_or_a_reason(key: str) -> None:
    """What is planned keeps to the recipe's bounds."""
    recipe = recipe_of(key)
    for name in shipped():
        planning = planned(key, recorded(name))
        if plan := planning.choice:
            assert SpecifierSet(recipe.pythons).contains(plan.python)
            assert SpecifierSet(recipe.torch.get("any", "")).contains(plan.torch)
            assert SpecifierSet(recipe.torch.get(plan.backend.value, "")).contains(plan.torch)
            assert plan.backend in (*recipe.backends, *recipe.untested)
            names = {Requirement(line).name.lower() for line in plan.requirements}
            asked = {Requirement(line).name.lower() for line in recipe.requirements if ";" not in line}
            assert asked <= names
            assert sum(name.startswith("onnxruntime") for name in names) <= 1
        else:
            assert str(rejection_reason(planning.rejected[0]))


def test_a_recipe_brings_its_own_beside_torch() -> None:
    """Our ONNX and ONNX Runtime would only be in the way of what it pins."""
    assert not any(line.startswith("onnx") for line in chosen("a1111", nvidia()).requirements)
    assert "onnxruntime" in chosen("faster-whisper", nvidia()).requirements
    assert "nvidia-cublas-cu12" in chosen("faster-whisper", nvidia()).requirements
    assert "nvidia-cublas-cu12" not in chosen("faster-whisper").requirements
    assert {"onnxruntime-gpu", "pymss", "faiss-cpu"} <= {*chosen("rvc", nvidia("12.0")).asked}
    assert "onnxruntime" in chosen("rvc").asked
    assert chosen("rvc").recipe == "rvc"


def test_the_python_of_a_recipe_stands_in() -> None:
    """The machine's own is kept where it fits; a Python that the user names is never replaced."""
    plan = chosen("a1111")
    assert plan.python == "3.10"
    assert "Python >=3.10,<3.11, so the plan takes Python 3.10 instead of 3.12" in said(plan.reasons)
    assert chosen("a1111", replace(PC, python="3.10.2")).python == "3.10"
    assert chosen("whisperx", replace(PC, python="3.13.1")).python == "3.13"
    assert chosen("comfyui", replace(PC, python="3.13.1t")).python == "3.13"
    assert chosen("a1111", replace(PC, python="3.13.1t")).python == "3.10"
    refused = planned("a1111", python="3.12")
    assert refused.choice is None
    assert [one.key for one in refused.rejected] == ["python-outside-project"]


def test_markers_are_those_of_the_target() -> None:
    """A line for another system or Python is left out, whatever the machine is that plans."""
    assert any(
        line.startswith("audioop-lts") for line in chosen("forge-neo", replace(nvidia(), python="3.13.1")).requirements
    )
    assert not any(line.startswith("audioop-lts") for line in chosen("forge-neo", nvidia()).requirements)
    assert "onnxruntime" in chosen("gpt-sovits", replace(PC, arch="aarch64")).requirements
    assert "onnxruntime-gpu" in chosen("gpt-sovits", nvidia()).requirements


@each(
    ("key", "machine", "refusal", "words"),
    [
        ("vllm", replace(PC, os="windows", glibc=None), "recipe-not-for-system", "vLLM runs only on Linux."),
        ("rvc", replace(PC, arch="aarch64"), "recipe-not-for-system", "(x86_64)"),
        ("vllm", radeon(), "recipe-without-backend", "vLLM does not work with ROCm. Its ROCm wheels"),
        ("vllm", PC, "recipe-without-backend", "vLLM needs a GPU. Its wheel on PyPI"),
        ("unsloth", nvidia("6.1"), "recipe-card-too-old", "compute capability 7.0 or higher, and Card has 6.1"),
        ("stabilitymatrix-linux-amd", nvidia(), "recipe-without-backend", "StabilityMatrix's own choice is right"),
    ],
)  # fmt: skip
def test_what_cannot_run_is_refused_with_its_key(key: str, machine: Machine, refusal: str, words: str) -> None:
    """One sentence says why, and what would help."""
    planning = planned(key, machine)
    assert planning.choice is None
    assert planning.rejected[0].key == refusal
    assert words in f"{planning.rejected[0].why} {planning.rejected[0].would_help}"


def test_the_processor_stands_in_and_says_why() -> None:
    """A Radeon has no build of CTranslate2 on PyPI: the plan is for the processor, with the reason."""
    plan = chosen("faster-whisper", radeon())
    assert plan.backend is Backend.CPU
    assert said(plan.warnings).count("does not work with ROCm. CTranslate2's ROCm wheels") == 1


def test_bounds_of_a_backend_choose_another_torch() -> None:
    """RVC takes 2.7 on CUDA, 2.4.1 else; InvokeAI stops before 2.12 on ROCm and before 2.8 on a Mac."""
    assert chosen("rvc", nvidia("12.0")).torch.startswith("2.7.")
    assert chosen("rvc", radeon(os="windows")).backend is Backend.DIRECTML
    assert chosen("invokeai", radeon()).torch.startswith("2.11.")
    mac = Machine(os="macos", os_version="macOS 15.5", arch="arm64", python="3.12")
    assert chosen("invokeai", replace(mac, gpus=(Gpu(vendor=Vendor.APPLE, name="Apple M3"),))).torch.startswith("2.7.")


def test_wheels_of_a_build_come_with_their_page() -> None:
    """Mmcv's page goes with the build of torch."""
    assert said(chosen("openmmlab", nvidia()).links).endswith("mmcv/dist/cu121/torch2.1/index.html")
    assert "/cpu/" in said(chosen("openmmlab").links)


def test_directml_is_asked_for_by_name() -> None:
    """A recipe for DirectML gets it on a card for which the planner would not think of it."""
    windows = replace(nvidia(), os="windows", os_version="Windows 11 (22631)", glibc=None)
    assert chosen("onnx-directml", windows).backend is Backend.DIRECTML
    assert chosen("onnx-directml", windows, backend=Backend.CPU).backend is Backend.CPU


def test_memory_that_is_too_small_is_told_with_figures() -> None:
    """It is a warning: others have made it run with less; what is not known is told as such."""
    assert "needs at least 8 GB of the card's memory" in said(chosen("whisperx", nvidia(vram=6)).warnings)
    assert "and Card has 6 GB." in said(chosen("whisperx", nvidia(vram=6)).warnings)
    assert "is not known" in said(chosen("whisperx", nvidia(vram=None)).warnings)
    assert "memory" not in said(chosen("whisperx", nvidia(vram=7.99)).warnings)
    assert "card's memory" not in said(chosen("whisperx").warnings)


def test_the_plan_says_how_it_is_started() -> None:
    """By the one table of launchers, or by the recipe's own command."""
    assert "started with `python main.py --cpu`" in said(chosen("comfyui").reasons)
    assert "put the line `export COMMANDLINE_ARGS=" in said(chosen("a1111").reasons)
    assert "started with `vllm serve" in said(chosen("vllm", nvidia()).reasons)
    assert "ComfyUI needs git. Install it" in said(chosen("comfyui").reasons)


def test_what_the_system_must_have_is_told_once_and_where_it_matters() -> None:
    """A recipe and its packages say it in the same words; libraries of Linux are no matter on Windows."""
    plan = chosen("whisperx")
    assert f"{said(plan.reasons)} {said(plan.warnings)}".count("shared libraries of FFmpeg") == 1
    windows = replace(PC, os="windows", os_version="Windows 11 (22631)", glibc=None)
    assert "libGL" not in said(chosen("invokeai", windows).reasons)
    assert "libGL" in said(chosen("invokeai").reasons)
    assert chosen("tts", replace(PC, os="macos", os_version="macOS 15.5", arch="arm64", glibc=None)).env == {
        "PYTORCH_ENABLE_MPS_FALLBACK": "1"
    }


def test_what_nobody_knows_is_a_warning() -> None:
    """Neither taken for working nor for broken."""
    assert "with ROCm is not known" in said(chosen("forge-neo", radeon()).warnings)


@each("key", ["invokeai", "reforge", "course", ""])
def test_a_recipe_is_written_into_a_request_once(key: str) -> None:
    """A recipe's lines and bounds are in the request that a resolver is asked for; a second time nothing is added."""
    asked = Request(bundle=key, pins=("einops<1",), pythons=">=3.11")
    once = with_recipe(asked)
    assert with_recipe(once) == once
    assert (once == asked) == (key in {"course", ""})
    assert once.pins[-1] == "einops<1"


def test_a_recipe_can_be_taken_along() -> None:
    """What recipes ask for is no stranger's package, but what an extra brings is."""
    assert unknown_requirements(chosen("faster-whisper"), CATALOG) == ()
    assert unknown_requirements(chosen("diffusers"), CATALOG) == ("diffusers[torch]",)


def test_the_users_pins_hold_beside_the_recipes() -> None:
    """A torch that the recipe excludes is refused, and one that it allows is taken."""
    assert chosen("comfyui", nvidia(), pins=("torch==2.13.0",)).torch == "2.13.0"
    refused = planned("reforge", nvidia(), pins=("torch==2.13.0",))
    assert refused.choice is None
    assert "torch==2.13.0,==2.9.0" in str(refused.rejected[0].why)
    assert str(refused.rejected[0].why).endswith(" needs torch ==2.9.0.")
    assert "Loosen" in str(refused.rejected[0].would_help)
    elsewhere = planned("openmmlab", nvidia(), pins=("torch==2.2.0",))  # whose Python is not the machine's
    assert "OpenMMLab (mmdetection) needs torch ==2.1.*." in str(elsewhere.rejected[0].why)


def test_nightly_builds_of_a_recipe_that_needs_releases_are_refused() -> None:
    """Nobody has pinned anything: the sentence names the recipe. One without torch gets them."""
    with pytest.raises(BadInput, match="InvokeAI is planned with releases of torch"):
        planned("invokeai", nvidia(), nightly=True)
    assert chosen("faster-whisper", nvidia(), nightly=True).variant.startswith("nightly/")
