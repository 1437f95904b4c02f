"""The picture of a verification reads on any background and without eyes."""

from itertools import combinations
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.i18n import render, use_language
from assistant.markup import width_of
from assistant.model.checks import check_title
from assistant.model.report import Check, Report, Status, status_word
from assistant.model.speed import Limit, Speed
from assistant.model.visible import visible
from assistant.verify.plots import figures

REPORT = Report(
    device="cuda",
    checks=(
        Check(key="import", status=Status.PASSED, seconds=1.5, first_seconds=1.5),
        Check(key="matmul", status=Status.WRONG, seconds=2e-5, first_seconds=0.25),
        Check(key="conv2d", status=Status.TIMEOUT),
        Check(key="copy", status=Status.PASSED, seconds=0.0, first_seconds=1e-9),
        Check(key="training", status=Status.SKIPPED, detail="<&>"),
    ),
)


def timing(report):
    """Draw the times of the checks."""
    return figures(report)["verification.svg"]


@pytest.mark.parametrize("report", [REPORT, Report(device='a<b>&"c')])
def test_the_figure_is_one_svg_element_with_title_and_description(report):
    """It stands in a page as it is, names itself, and lists every check with status and time in words."""
    root = ET.fromstring(timing(report))  # noqa: S314 - our own text
    spaces = {"s": "http://www.w3.org/2000/svg"}
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.get("role") == "img"
    assert report.device in str(root.find("s:title", spaces).text)
    said = root.find("s:desc", spaces).text
    assert all(f"{check_title(check.key)}: {render(status_word(check.status))}" in said for check in report.checks)


def test_the_figure_has_no_background_and_takes_the_themes_colour():
    """Transparent, with the theme's text colour in JupyterLab and a middle grey elsewhere; the same each time."""
    svg = timing(REPORT)
    assert "var(--ptsa-text, #787878)" in svg
    assert "#ffffff" not in svg
    assert "#000000" not in svg
    assert svg == timing(REPORT)


SIZES = (5, 40)


def crowded(count):
    """Make a report of so many checks and so many works, whose places on the roofline lie close together."""
    limits = {"bandwidth": Limit(value=1000.0, source="s"), "float32": Limit(value=25000.0)}
    limits |= {"float16": Limit(value=50000.0, source="s"), "bfloat16": Limit(value=50500.0, source="s")}
    common = {"unit": "GFLOP/s", "best": 1e-3, "spread": 0.6, "repeats": 30, "cpu_rate": 5000.0}
    checks = [Check(key=f"check.{n}", status=[*Status][n % 7], seconds=10.0 ** (n % 9 - 6)) for n in range(count)]
    speeds = [
        Speed(rate=100.0 * n + 1, seconds=1e-3 * (1 + n % 3), flops=1e9 * (1 + n % 5), bytes=1e7, **common)
        for n in range(count)
    ]
    works = [Check(key=f"speed.{n}", status=Status.PASSED, speed=speed) for n, speed in enumerate(speeds)]
    return Report(device="cuda", checks=(*checks, *works), limits=limits)


def boxes(svg):
    """Give the places that the words of a picture take: left, top, right, bottom."""
    root = ET.fromstring(svg)  # noqa: S314 - our own text
    for text in root.iter("{http://www.w3.org/2000/svg}text"):
        size, width = float(text.get("font-size", 12)), width_of(text.text, float(text.get("font-size", 12)))
        x, y = float(text.get("x")), float(text.get("y"))
        left = x - {"end": width, "middle": width / 2}.get(text.get("text-anchor"), 0.0)
        yield left, y - 0.8 * size, left + width, y + 0.2 * size


@pytest.mark.parametrize("language", ["en", "zh_CN"])
@pytest.mark.parametrize("count", SIZES)
def test_no_words_of_a_picture_overlap_or_leave_it(count, language):
    """Few checks or many, in both languages: every label stands on its own ground, within the picture."""
    use_language(language)
    try:
        drawn = figures(crowded(count))
    finally:
        use_language("en")
    assert len(drawn) == 3
    for name, svg in drawn.items():
        _x, _y, width, height = map(float, ET.fromstring(svg).get("viewBox").split())  # noqa: S314 - our own text
        found = list(boxes(svg))
        assert found, name
        assert all(box[0] >= 0 and box[1] >= 0 and box[2] <= width and box[3] <= height for box in found), name
        for one, other in combinations(found, 2):
            apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
            assert apart, (name, one, other)


@given(st.text(max_size=40))
def test_any_text_gives_valid_xml(text):
    """Whatever a device calls itself, and whatever a check says, the picture stays one element with nothing hidden."""
    report = Report(device=text, checks=(Check(key=text, status=Status.PASSED, seconds=1.0, detail=text),))
    svg = timing(report)
    ET.fromstring(svg)  # noqa: S314 - our own text
    assert svg == visible(svg)
