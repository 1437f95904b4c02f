"""The real thing: a CPU environment with torch, NumPy, onnx and ONNX Runtime."""

import base64

import pytest

from assistant.model.plan import Backend, Plan
from assistant.model.record import replace
from assistant.model.report import Status
from assistant.verify import draw_picture, run_checks

pytestmark = pytest.mark.full


def test_a_cpu_build_does_not_pass_for_a_gpu(cpu_environment):
    """Asked for a GPU, a CPU build of torch fails at the device and computes nothing."""
    report = run_checks(cpu_environment.python, "cuda", lambda _: None)
    checks = {check.key: check for check in report.checks}
    assert checks["import"].status is Status.PASSED
    assert checks["device"].status is Status.FAILED
    assert {check.status for check in report.checks[2:]} == {Status.SKIPPED}


def test_what_stands_on_a_real_torch_is_imported_and_tried(cpu_environment):
    """Each in a process of its own, after the checks; one that is not there is told."""
    names = ("torch", "numpy", "onnx", "onnxruntime", "torchcodec")
    report = run_checks(cpu_environment.python, "cpu", lambda _: None, packages=names)
    found = {check.key.removeprefix("package."): check for check in report.checks[-len(names) :]}
    assert {name: check.status for name, check in found.items()} == {
        **dict.fromkeys(names, Status.PASSED),
        "torchcodec": Status.FAILED,
    }
    assert "torchcodec is not installed" in str(found["torchcodec"].detail)
    assert {check.status for check in report.checks[: -len(names)]} == {Status.PASSED}


def test_a_picture_is_drawn_on_the_device(cpu_environment):
    """It is a PNG of the first notebook's fractal, with the points and the time that it took; no CPU beats itself."""
    plan = Plan(backend=Backend.CPU, variant="cpu", torch="2.13.0", python="3.11")
    picture = draw_picture(cpu_environment, plan)
    assert base64.b64decode(picture.png).startswith(b"\x89PNG")
    assert (picture.points, picture.times) == (240_000, None)
    assert picture.seconds > 0
    assert draw_picture(replace(cpu_environment, python="/nowhere/python"), plan) is None
    assert draw_picture(cpu_environment, replace(plan, backend=Backend.CUDA)) is None
