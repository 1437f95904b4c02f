"""The measured speeds as a table and as pictures."""

from xml.etree import ElementTree as ET

import pytest

from assistant.i18n import render
from assistant.model.checks import check_title
from assistant.model.record import from_json, replace, to_json
from assistant.model.report import Check, Report, Status
from assistant.model.speed import Limit, Speed
from assistant.verify.plots import figures
from assistant.verify.run import device_limits
from assistant.views import SPEED_HEADINGS, limit_rows, speed_rows

PICTURES = ("verification", "speed", "roofline")


def measured(key, rate, **fields):
    """Make a check with a speed."""
    common = {"unit": "GFLOP/s", "seconds": 1e-3, "best": 9e-4, "spread": 0.05, "repeats": 30, **fields}
    return Check(key=key, status=Status.PASSED, speed=Speed(rate=rate, **common))


REPORT = Report(
    device="cuda",
    limits={
        "bandwidth": Limit(value=1000.0, source="a data sheet (2026-11-21)"),
        "float32": Limit(value=25000.0),
        "float16": Limit(value=50000.0, source="a data sheet (2026-11-21)"),
    },
    checks=(
        Check(key="matmul", status=Status.PASSED, seconds=1e-3),
        measured("speed.bandwidth", 500.0, unit="GB/s", bytes=4.5e8, cpu_rate=20.0),
        measured("speed.matmul.float32", 20000.0, flops=2e10, bytes=1e7, cpu_rate=100.0, peak_bytes=1 << 30),
        measured("speed.matmul.float16", 20000.0, flops=2e10, bytes=1e7, dtype="float16", cpu_rate=100.0),
        measured("speed.softmax", 300.0, flops=1e8, bytes=3e8, cpu_rate=600.0),
        measured("workload.llm", 900.0, unit="tokens/s", spread=0.6),
    ),
)


def test_the_table_tells_rate_ratio_limit_spread_and_noise():
    """One row per measured check; what holds it up, memory or arithmetic, is its limit; a wide spread is noisy."""
    rows = [tuple(map(render, row)) for row in speed_rows(REPORT)]
    wanted = (
        "Matrix product speed in float32",
        "20,000 GFLOP/s",
        "200 ×",
        "80 %, measured",
        "±2 % (30)",
        "1024 MiB",
        "",
    )
    assert rows[1] == wanted
    assert [row[3] for row in rows] == ["45 %, published", "80 %, measured", "40 %, published", "30 %, published", ""]
    assert [row[-1] for row in rows] == ["", "", "", "", "noisy"]
    assert len(SPEED_HEADINGS) == len(rows[0])
    assert [tuple(map(render, row)) for row in limit_rows(REPORT)] == [
        ("memory 1,000 GB/s, float16 50,000 GFLOP/s", "a data sheet (2026-11-21)"),
        ("float32 25,000 GFLOP/s", "the best of this run"),
    ]


@pytest.mark.parametrize("report", [REPORT, Report(device='<&"')], ids=["measured", "empty"])
def test_the_pictures_are_svg_with_words(report):
    """Each names itself, says its figures in words, and takes the page's colours."""
    drawn = figures(report)
    assert set(drawn) == {f"{name}.svg" for name in (PICTURES if report.speeds else PICTURES[:1])}
    spaces = {"s": "http://www.w3.org/2000/svg"}
    for name, text in drawn.items():
        root = ET.fromstring(text)  # noqa: S314 - our own text
        assert report.device in str(root.find("s:title", spaces).text)
        keys = report.speeds if name != "verification.svg" else [check.key for check in report.checks]
        assert all(render(check_title(key)) in str(root.find("s:desc", spaces).text) for key in keys)
        assert "#ffffff" not in text


def test_speeds_survive_json():
    """A report with speeds and limits reads back as it was."""
    assert from_json(to_json(REPORT), Report, "the report") == REPORT


@pytest.mark.parametrize(
    ("facts", "source"),
    [
        ({"device name": "NVIDIA GeForce RTX 4090", "device memory": "23.6 GiB"}, True),
        ({"device name": "NVIDIA GeForce RTX 3080", "device memory": "9.8 GiB"}, True),
        ({"device name": "NVIDIA GeForce RTX 3080"}, False),  # of 10 or of 12 GB
        ({"device name": "Banana 9000"}, False),
        ({}, False),
    ],
)
def test_limits_are_published_or_else_measured(facts, source):
    """A card that is known by its exact name has its data sheet's limits; any other the best of the run."""
    limits = device_limits(replace(REPORT, facts=facts, limits={}))
    assert set(limits) >= {"bandwidth", "float32", "float16"}
    assert all(bool(limit.source) is source for limit in limits.values())
    if not source:
        assert limits["float32"].value == pytest.approx(2e10 / 9e-4 / 1e9)


def test_without_measurements_there_are_no_limits():
    """A quick verification has no table and no limits."""
    assert device_limits(Report(device="cuda", facts={"device name": "NVIDIA GeForce RTX 4090"})) == {}
