"""The measured speeds in words."""

from assistant.i18n import render
from assistant.model.record import from_json, to_json
from assistant.model.report import Check, Report, Speed, Status
from assistant.views import speed_lines

REPORT = Report(
    device="cuda",
    checks=(
        Check(key="matmul", status=Status.PASSED, seconds=1e-3),
        Check(
            key="speed.matmul.float32",
            status=Status.PASSED,
            speed=Speed(rate=20.0, unit="TFLOP/s", cpu_rate=0.1),
        ),
        Check(key="workload.llm", status=Status.PASSED, speed=Speed(rate=900.0, unit="tokens/s")),
    ),
)


def test_each_speed_is_a_line_beside_the_cpus():
    """A line per work that was measured, with the ratio where the CPU was measured, too."""
    assert list(map(render, speed_lines(REPORT))) == [
        "Matrix product speed in float32: 20 TFLOP/s, 200 times as fast as this machine's CPU",
        "Generate tokens with a language model: 900 tokens/s",
    ]
    assert speed_lines(Report(device="cuda")) == []


def test_speeds_survive_json():
    """A report with speeds reads back as it was."""
    assert from_json(to_json(REPORT), Report, "the report") == REPORT
