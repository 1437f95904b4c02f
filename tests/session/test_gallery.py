"""The gallery's table of recorded machines, and the support matrix."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from assistant.i18n import render, use_language
from assistant.machines import label, shipped
from assistant.model.plan import Backend
from assistant.session.support import SYSTEMS, WORKLOADS, matrix, standing, workloads
from assistant.wizard.gallery import draw_gallery
from assistant.wizard.support import draw_support, draw_workloads


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_every_recorded_machine_stands_in_the_table_with_its_plan(language):
    """One row each, sorted by the words that people choose by, with the name that opens it."""
    page = ET.fromstring(draw_gallery(language)._repr_html_())  # noqa: S314 - our own text
    rows = [["".join(cell.itertext()) for cell in row] for row in page.iter("tr")][1:]
    assert [row[0] for row in rows] == sorted(render(label(name)) for name in shipped())
    assert sorted(row[3] for row in rows) == list(shipped())
    plans = {name: (gpus, plan) for _label, gpus, plan, name, _origin in rows}
    gpus, plan = plans["linux-ubuntu2404-rtx5070ti-driver570"]
    assert "GeForce RTX 5070 Ti" in gpus
    assert "cu128" in plan
    assert ("recorded" if language == "en" else "录制") in {row[4] for row in rows}
    assert page.find("caption").text == repr(draw_gallery())
    use_language("en")


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
    assert any(("not yet seen" if language == "en" else "尚未验证") in cell for cell in cells)
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
