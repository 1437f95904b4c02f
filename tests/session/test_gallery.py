"""The gallery's table of machines."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from tables import each

from assistant.i18n import render, use_language
from assistant.machines import label, shipped
from assistant.wizard.gallery import draw_gallery


@each("language", ["en", "zh_CN"])
def test_every_machine_stands_in_the_table_with_its_plan(language):
    """One row each, sorted by the words that people choose by, with the name that opens it."""
    page = ET.fromstring(draw_gallery(language)._repr_html_())  # noqa: S314 - our own text
    rows = [["".join(cell.itertext()) for cell in row] for row in page.iter("tr")][1:]
    assert [row[0] for row in rows] == sorted(render(label(name)) for name in shipped())
    assert sorted(row[3] for row in rows) == list(shipped())
    plans = {name: (gpus, plan) for _label, gpus, plan, name, _origin in rows}
    gpus, plan = plans["linux-ubuntu2404-rtx5070ti-driver570"]
    assert "GeForce RTX 5070 Ti" in gpus
    assert "cu128" in plan
    assert page.find("caption").text == repr(draw_gallery(language))
    recorded = [row[4] for row in rows].count("recorded" if language == "en" else "录制")
    assert re.findall(r"\d+", page.find("caption").text) == [str(len(rows)), str(recorded)]
    assert 0 < recorded < len(rows)
    use_language("en")
