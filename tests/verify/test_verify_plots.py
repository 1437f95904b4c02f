"""The picture of a verification reads on any background and without eyes."""

import sys
import threading
from xml.etree import ElementTree as ET

import pytest

from assistant.model.report import Check, Report, Status
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
    assert all(f"{check.key}: {check.status.value}" in said for check in report.checks)


def test_the_figure_has_no_background_and_takes_the_themes_colour():
    """Transparent, with the theme's text colour in JupyterLab and a middle grey elsewhere; the same each time."""
    svg = timing(REPORT)
    assert "var(--ptsa-text, #787878)" in svg
    assert "#ffffff" not in svg
    assert "#000000" not in svg
    assert svg == timing(REPORT)


def test_figures_are_drawn_in_any_thread_without_pyplot():
    """Several threads draw at once and agree; pyplot, with its global state, is never loaded."""
    drawn = []
    threads = [threading.Thread(target=lambda: drawn.append(timing(REPORT))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(drawn) == 4
    assert len(set(drawn)) == 1
    assert "matplotlib.pyplot" not in sys.modules
