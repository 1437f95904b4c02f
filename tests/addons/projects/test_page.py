"""The cards of what a setup is for: areas, and in the one that is open the recipes, as this machine is."""

from __future__ import annotations

import re
from pathlib import Path

from runners import InlineRunner, NoHost

from assistant.catalog.catalog import bundles
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.session.session import Session
from assistant_addons.projects.page import PurposePart, area_of, draw_area, draw_areas, judge_fit
from assistant_addons.projects.recipes import groups, recipe_of, recipes

BARE = Machine(os="linux", arch="x86_64", glibc="2.39", python="3.12.4")
GPU = Gpu(vendor=Vendor.NVIDIA, name="Card", compute_capability="8.9", vram_gb=6, integrated=False)
PC = Machine(os="linux", arch="x86_64", glibc="2.39", python="3.12.4", gpus=(GPU,), nvidia_driver="580.95.05")


def titles_in(html: object) -> list[str]:
    """Return the titles of the cards, without their signs."""
    return [re.sub(r"<.*?>", "", title) for title in re.findall(r'ptsa-tile-title">(.*?)</span>', str(html))]


def test_everything_has_one_place_and_no_title_stands_twice() -> None:
    """One had to choose between a card and a fold, both called "Language models"."""
    shown = titles_in(draw_areas("minimal", {}))
    assert len(shown) == len(set(shown)) == 1 + len(groups())
    keys = [
        key for group in groups() for key in re.findall('data-press="for:(.*?)"', str(draw_area(group.key, "", {})))
    ]
    assert sorted(keys) == sorted(one.key for one in (*bundles()[1:], *recipes()))
    assert {area_of(key) for key in keys} == {group.key for group in groups()}
    assert area_of("minimal") == "minimal"


def test_whether_it_fits_is_told_before_the_click() -> None:
    """What cannot run is off and says why; memory that is too small is told on the card; an area counts what fits."""
    assert judge_fit(recipe_of("vllm"), PC).light == "good"
    assert "needs a GPU" in str(judge_fit(recipe_of("vllm"), BARE).why)
    short = judge_fit(recipe_of("whisperx"), PC)
    assert (short.light, "Card has 6 GB" in str(short.why)) == ("warning", True)
    assert judge_fit(recipe_of("whisperx"), BARE).light == "good"
    fitting = {"unsloth": judge_fit(recipe_of("unsloth"), PC)}
    assert "fits: 3.5 of 6 GB" in str(draw_area("models", "", fitting))  # the figure that it rests on
    fits = {one.key: judge_fit(one, BARE) for one in recipes()}
    models = str(draw_area("models", "language", fits))
    assert models.count("does not run here") == models.count('disabled=""') == 2
    assert "0 of 2 fit" in str(draw_areas("models", fits))


def test_a_project_that_cannot_be_read_is_told_at_its_field() -> None:
    """The plan stays: a wrong path took all of it away, and the page spoke of a plan that there is not."""
    session = Session(NoHost(), InlineRunner())
    part = PurposePart(session)
    part.project.value = "/nowhere/requirements.txt"
    assert "/nowhere/requirements.txt" in part.fault.value
    assert session.state.choices.request.project == ""
    part.project.value = str(Path(__file__).parents[3])
    assert part.fault.value == ""
    assert session.state.choices.request.project == part.project.value
