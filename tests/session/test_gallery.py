"""The gallery's machines, its filters, one changed fact, and the support matrix."""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from assistant.i18n import use_language
from assistant.machines import shipped
from assistant.model.errors import BadInput
from assistant.model.plan import Backend
from assistant.session.gallery import changed, exhibits, fitting
from assistant.session.support import SYSTEMS, WORKLOADS, matrix, standing, workloads
from assistant.wizard.gallery import PACKAGES, open_gallery
from assistant.wizard.support import draw_support, draw_workloads

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


def test_the_matrix_answers_every_place():
    """Each family has a plan on each system where its cards are found, and a GPU's plan is nobody else's backend."""
    cells = {(cell.family.family, cell.system): cell for cell in matrix()}
    assert len(cells) == len({family for family, _system in cells}) * len(SYSTEMS)
    assert all((cell.plan is None) == (system not in cell.family.systems) for (_f, system), cell in cells.items())
    own = {"nvidia": Backend.CUDA, "amd": Backend.ROCM, "intel": Backend.XPU, "apple": Backend.MPS}
    found = {cell.plan.backend for cell in cells.values() if cell.plan}
    assert found == set(Backend)
    for cell in cells.values():
        allowed = {own.get(cell.family.vendor), Backend.DIRECTML, Backend.CPU}
        assert cell.plan is None or cell.plan.backend in allowed


def test_every_workload_on_every_backend_has_a_state_with_its_source():
    """Nothing is left out, and whatever has gaps says which."""
    known = workloads()
    assert set(known) == {(backend, workload) for backend in Backend for workload in WORKLOADS}
    assert all(row.source for row in known.values())
    assert all(row.note for row in known.values() if row.state in {"gaps", "experimental"})


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_the_tables_name_what_they_show(language):
    """A sign and a word tell how well it works, the backend is text, and a legend explains; in either language."""
    for drawn, words in ((draw_support(language), 3), (draw_workloads(language), 4)):
        page = ET.fromstring(drawn._repr_html_())  # noqa: S314 - our own text
        own, other = page.find("table"), page.find("details/table")
        assert own.find("caption").text == repr(drawn)
        assert other.find("caption").text != repr(drawn)
        assert page.find("details").get("lang") == ("zh-CN" if language == "en" else "en")
        assert len({len(row) for row in own.iter("tr")}) == 1
        badges = [badge for badge in own.iter("span") if "background" in badge.get("style", "")]
        told = {"".join(badge.itertext()) for badge in badges}
        assert len(told) == words
        legend = {"".join(badge.itertext()) for badge in page.find("ul").iter("span") if badge.get("style")}
        assert told == legend
        assert all(contrast_with_white(badge.get("style")) >= 4.5 for badge in badges)
    cells = ["".join(cell.itertext()) for cell in ET.fromstring(draw_support(language)._repr_html_()).iter("td")]  # noqa: S314
    assert any("ROCM" in cell.upper() for cell in cells)
    use_language("en")


def contrast_with_white(style):
    """Give the contrast of white words on the background of a style, as WCAG 2 defines it."""
    red, green, blue = (int(part, 16) / 255 for part in re.search(r"background-color: #(..)(..)(..)", style).groups())
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (red, green, blue)]
    return 1.05 / (sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True)) + 0.05)


def test_no_backend_looks_like_an_alarm():
    """How a cell looks follows from how well it works: ROCm and CUDA look the same where both work."""
    cells = {(cell.family.family, cell.system): standing(cell) for cell in matrix() if cell.plan}
    assert cells["RDNA 3", "linux"] == cells["Ada", "linux"] == "works"
    assert cells["RDNA 2", "wsl"] == "gaps"
    assert cells["Kepler", "linux"] == "none"
    assert cells["no GPU", "linux"] == "works"
