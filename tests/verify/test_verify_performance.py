"""The measured speeds as a table and as pictures."""

from xml.etree import ElementTree as ET

import pytest

from assistant.model.record import from_json, to_json
from assistant.model.report import Check, Report, Speed, Status
from assistant.verify.performance import performance_rows, roofline_figure, roofline_png, speed_figure, speed_png


def measured(key, rate, **fields):
    """Make a check with a speed."""
    common = {"unit": "GFLOP/s", "seconds": 1e-3, "best": 9e-4, "spread": 0.05, "repeats": 30, **fields}
    return Check(key=key, status=Status.PASSED, speed=Speed(rate=rate, **common))


REPORT = Report(
    device="cuda",
    checks=(
        Check(key="matmul", status=Status.PASSED, seconds=1e-3),
        measured("speed.bandwidth", 500.0, unit="GB/s", bytes=4.5e8, cpu_rate=20.0),
        measured("speed.matmul.float32", 20000.0, flops=2e10, bytes=1e7, cpu_rate=100.0, peak_bytes=1 << 30),
        measured("speed.softmax", 300.0, flops=1e8, bytes=3e8, cpu_rate=600.0),
        measured("workload.llm", 900.0, unit="tokens/s", spread=0.6),
    ),
)


def test_the_table_tells_rate_ratio_spread_and_noise():
    """One row per measured check; a spread above a fifth is called noisy."""
    rows = performance_rows(REPORT)
    assert rows[1] == ("speed.matmul.float32", "20,000 GFLOP/s", "200 ×", "±2 % (30)", "1024 MiB", "")
    assert [row[-1] for row in rows] == ["", "", "", "noisy"]


@pytest.mark.parametrize("draw", [speed_figure, roofline_figure])
@pytest.mark.parametrize("report", [REPORT, Report(device='<&"')], ids=["measured", "empty"])
def test_the_pictures_are_svg_with_words(draw, report):
    """Each names itself, says its figures in words, and takes the page's colours."""
    root = ET.fromstring(draw(report))  # noqa: S314 - our own text
    spaces = {"s": "http://www.w3.org/2000/svg"}
    assert report.device in root.find("s:title", spaces).text
    assert all(row[0] in root.find("s:desc", spaces).text for row in performance_rows(report))
    assert "#ffffff" not in draw(report)


def test_the_pictures_exist_for_files():
    """PNG too."""
    assert speed_png(REPORT).startswith(b"\x89PNG")
    assert roofline_png(REPORT).startswith(b"\x89PNG")


def test_speeds_survive_json():
    """A report with speeds reads back as it was."""
    assert from_json(to_json(REPORT), Report, "the report") == REPORT
