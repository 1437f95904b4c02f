"""The cards of what a setup is for: bundles at once, recipes in their groups, as this machine is."""

from __future__ import annotations

from assistant.catalog.catalog import bundles
from assistant.model.machine import Gpu, Machine, Vendor
from assistant_addons.projects.page import bundle_options
from assistant_addons.projects.recipes import recipes


def card(key: str, machine: Machine | None) -> dict[str, str]:
    """Return the card of a bundle or a recipe."""
    return next(one for one in bundle_options(machine) if one["key"] == key)


def test_each_bundle_and_each_recipe_has_a_card() -> None:
    """Recipes name their group, bundles none; while the machine is not known, each says what it is for."""
    options = bundle_options(None)
    assert [one["key"] for one in options if "group" not in one] == [one.key for one in bundles()]
    assert sorted(one["key"] for one in options if "group" in one) == sorted(one.key for one in recipes())
    assert all(one["title"] and one["lead"] and "off" not in one for one in options)


def test_what_cannot_run_here_is_off_and_says_why() -> None:
    """And memory that is too small is told on the card."""
    gpu = Gpu(vendor=Vendor.NVIDIA, name="Card", compute_capability="8.9", vram_gb=6, integrated=False)
    machine = Machine(os="linux", arch="x86_64", glibc="2.39", python="3.12.4", gpus=(gpu,), nvidia_driver="580.95.05")
    bare = Machine(os="linux", arch="x86_64", glibc="2.39", python="3.12.4")
    assert "off" not in card("vllm", machine)
    assert card("vllm", bare)["off"]
    assert "needs a GPU" in card("vllm", bare)["lead"]
    assert "Card has 6 GB" in card("whisperx", machine)["lead"]
    assert "GB" not in card("whisperx", bare)["lead"]
