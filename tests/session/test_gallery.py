"""The gallery's machines, its filters, and one changed fact."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

from assistant.machines import shipped
from assistant.model.errors import BadInput
from assistant.session.gallery import changed, exhibits, fitting
from assistant.wizard.gallery import PACKAGES, open_gallery

BLACKWELL = "linux-ubuntu2404-rtx5070ti-driver570"


def test_every_shipped_machine_is_shown():
    """One exhibit each, with its plans."""
    assert sorted(exhibit.name for exhibit in exhibits()) == sorted(shipped())


def test_filters_narrow_the_choice():
    """Maker, system and words each keep those that fit, together those that fit all."""
    everything = exhibits()
    assert {exhibit.machine.wsl for exhibit in fitting(everything, os="wsl")} == {True}
    assert all("amd" in exhibit.vendors for exhibit in fitting(everything, vendor="amd"))
    assert all(not exhibit.machine.gpus for exhibit in fitting(everything, vendor="none"))
    names = [exhibit.name for exhibit in fitting(everything, vendor="amd", os="linux", text="6700 xt")]
    assert names == ["linux-arch-rx6700xt-directml"]


def test_a_changed_fact_changes_the_plan():
    """Blackwell with driver 570 gets CUDA 12.8; with 580 the newest release opens. A fact that is none is refused."""
    _machine, planning = changed(BLACKWELL, "nvidia_driver", "580.95.05")
    before = next(exhibit for exhibit in exhibits() if exhibit.name == BLACKWELL).planning
    assert (before.choice.variant, planning.choice.variant) == ("cu128", "cu130")
    with pytest.raises(BadInput, match="no fact called"):
        changed(BLACKWELL, "banana", "3")


def test_the_gallery_shows_both_plans_and_opens_the_wizard():
    """The machine as it is stands beside the one with the fact; a press opens the wizard's simulation of it."""
    gallery = open_gallery(BLACKWELL)
    gallery.fact.value = "nvidia_driver=580.95.05"
    assert "cu128" in gallery.detail.value
    assert "cu130" in gallery.what_if.value
    gallery.press("open")
    assert gallery.wizard.session.state.machine == BLACKWELL
    assert gallery.children == (gallery.head, gallery.wizard)


def test_hostile_text_is_shown_as_text():
    """What is typed as a fact reaches the page escaped."""
    gallery = open_gallery(BLACKWELL)
    gallery.fact.value = "gpus[0].name=<img src=x onerror=alert(1)>"
    assert "img src" in gallery.what_if.value
    assert "<img" not in gallery.what_if.value
    gallery.fact.value = "<script>=1"
    assert "<script>" not in gallery.what_if.value


def buttons(gallery):
    """Give the foot's buttons that can be pressed, by their words."""
    return [words for _name, words, able in gallery.foot.buttons if able]


def test_what_is_chosen_decides_what_can_be_done():
    """Nothing, one machine to open or to look at, several for a package; filters hide cards and keep the choice."""
    gallery = open_gallery()
    assert buttons(gallery) == []
    assert len(gallery.cards.shown) == len(shipped())
    gallery.cards.chosen = [BLACKWELL]
    assert buttons(gallery)[:2] == ["Open in the wizard", "Show details"]
    assert not gallery.detail.value
    gallery.press("look")
    assert "RTX 5070 Ti" in gallery.detail.value
    gallery.cards.chosen = [BLACKWELL, "windows11-rtx3060"]
    assert buttons(gallery) == ["Setup packages for these PCs", "Clear selection"]
    gallery.text.value = "no such machine"
    assert gallery.cards.shown == []
    assert gallery.cards.chosen == [BLACKWELL, "windows11-rtx3060"]
    gallery.press("none")
    assert gallery.cards.chosen == []
    assert not gallery.detail.value


def wait_for(condition):
    """Wait until something is so."""
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="looks for the process in /proc")
@pytest.mark.parametrize("way", ["Cancel", "another choice"])
def test_a_package_can_be_given_up_while_its_packages_are_resolved(monkeypatch, tmp_path, way):
    """uv, which would not end by itself, is ended; the choice stays, and what it would have come to is not offered."""
    uv, pid = tmp_path / "uv", tmp_path / "pid"
    uv.write_text(f'#!/bin/sh\necho $$ > "{pid}"\nexec sleep 30\n')
    uv.chmod(0o755)
    monkeypatch.setattr("assistant.install.backends.find_uv", lambda: str(uv))
    gallery = open_gallery()
    gallery.cards.chosen = [BLACKWELL]
    assert "Cancel" not in buttons(gallery)
    gallery.press("package")
    wait_for(lambda: pid.exists() and pid.read_text().strip())
    assert buttons(gallery) == ["Cancel"]
    gallery.speak("en")
    assert buttons(gallery) == ["Cancel"]
    if way == "Cancel":
        gallery.press("stop")
        assert "You cancelled the work." in gallery.foot.note
    else:
        gallery.cards.chosen = [BLACKWELL, "windows11-rtx3060"]
    assert "Cancel" not in buttons(gallery)
    assert not gallery.foot.progress["running"]
    wait_for(lambda: not Path(f"/proc/{pid.read_text().strip()}").exists())
    assert PACKAGES not in gallery.foot.note
    assert gallery.cards.chosen[0] == BLACKWELL


def test_another_language_keeps_what_was_chosen():
    """Every word is Chinese; the choice, the filters and what was typed stay."""
    gallery = open_gallery(BLACKWELL)
    gallery.vendor.value, gallery.fact.value = "nvidia", "nvidia_driver=580.95.05"
    gallery.speak("zh_CN")
    assert gallery.head.language == "zh_CN"
    assert gallery.cards.chosen == [BLACKWELL]
    assert (gallery.vendor.value, gallery.vendor.label) == ("nvidia", "NVIDIA")
    assert "cu130" in gallery.what_if.value
    assert "系统" in gallery.detail.value
    gallery.speak("en")


def test_the_cards_are_one_small_message():
    """78 machines cost the browser one widget and less than a picture would."""
    gallery = open_gallery()
    assert len(json.dumps(gallery.cards.cards)) < 40_000
