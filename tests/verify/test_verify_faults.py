"""A verification that cannot fail is a defect: every fault planted in a torch must be caught and named."""

import os
import sys
import threading
import time
import venv

import pytest
from tables import each

from assistant import verify
from assistant.host.process import CancelToken
from assistant.model.errors import BadInput, Cancelled, WorkFailed
from assistant.model.plan import Backend, Plan
from assistant.model.report import QUICK, Environment, FindingRaised, LogLine, Progress, Status
from assistant.verify import run_checks

SPEED = "speed.matmul.float32"


def run(python, fault="", device="cpu", **options):
    """Verify the fake torch with one fault; give the report, its checks by key and the events."""
    events = []
    report = run_checks(python, device, events.append, variables={"FAKE_TORCH_FAULT": fault}, **options)
    return report, {check.key: check for check in report.checks}, events


@pytest.mark.parametrize("device", ["cpu", "cuda:1"])
def test_a_sound_torch_passes(fake_python, device):
    """Without a fault every check passes, or is skipped for want of ONNX Runtime, and no finding is raised."""
    report, checks, events = run(fake_python, device=device)
    assert report.passed
    assert report.usable
    assert [check.key for check in report.checks] == list(QUICK)
    assert {check.status for key, check in checks.items() if key != "onnxruntime"} == {Status.PASSED}
    assert checks["onnxruntime"].status in {Status.PASSED, Status.SKIPPED}
    assert not [event for event in events if isinstance(event, FindingRaised)]
    assert checks["matmul"].error < checks["matmul"].tolerance
    assert report.facts["torch"] == "2.9.9+fake"


def test_an_environment_is_verified_by_its_plan(fake_python):
    """Its device, its variables and what was asked for are the plan's; another device may be named."""
    made = Environment(path="environment", python=str(fake_python), packages={"numpy": "1"})
    variables = {"FAKE_TORCH_FAULT": "nan"}
    plan = Plan(backend=Backend.CUDA, variant="cu126", torch="2.9.9", python="3.12", env=variables, asked=("numpy",))
    report = verify.run(made, plan)
    found = {check.key: check.status for check in report.checks}
    assert report.device == "cuda"
    assert found["matmul"] is Status.WRONG
    assert found["package.numpy"] is Status.PASSED
    assert verify.report_findings(report)[0].key == "verify.matmul"
    assert verify.run(made, device="cpu").passed


FAULTS = [
    ("element", "cpu", "matmul", Status.WRONG, "1 of 34000 elements are wrong; element [199, 3] is"),
    ("later", "cpu", "matmul", Status.WRONG, "1 of 34000 elements are wrong"),
    ("nan", "cpu", "matmul", Status.WRONG, "element [0, 0] is nan"),
    ("half", "cpu", "matmul", Status.WRONG, "elements are wrong"),
    ("broadcast", "cpu", "linalg.solve.broadcast", Status.WRONG, "192 of 240 elements are wrong"),
    ("missing:linalg_solve", "cuda", "linalg.solve", Status.UNSUPPORTED, "'aten::linalg_solve' is not currently"),
    ("fallback:conv2d", "cuda", "conv2d", Status.UNSUPPORTED, "aten::conv2d ran on the CPU instead of cuda"),
    ("secretcpu", "cuda", "matmul", Status.FAILED, "The result is on cpu, not on cuda."),
    ("nomemory", "cuda", "device", Status.FAILED, "A tensor of 1048576 bytes took 0 bytes on cuda."),
    ("abi", "cpu", "import", Status.FAILED, "OSError: libcudart.so.12: cannot open shared object file"),
    ("hang:import", "cpu", "import", Status.TIMEOUT, "within 3 seconds"),
    ("exit:conv2d", "cpu", "conv2d", Status.FAILED, "exit status 7"),
    ("", "xpu", "device", Status.FAILED, "not linked with support for xpu"),
    ("", "rocm", "device", Status.FAILED, "is not a ROCm build"),
    ("", "directml", "device", Status.FAILED, "No module named 'torch_directml'"),
]
if os.name == "posix":
    FAULTS.append(("signal:linalg_solve", "cpu", "linalg.solve", Status.FAILED, "SIGSEGV"))


@pytest.mark.parametrize(("fault", "device", "key", "status", "detail"), FAULTS)
def test_each_planted_fault_is_caught(fake_python, fault, device, key, status, detail):
    """The check that meets the fault says so, a finding carries it, and the report does not pass."""
    limit = 3.0 if fault.startswith("hang") else 60.0
    report, checks, events = run(fake_python, fault, device, limit_per_check=limit)
    assert checks[key].status is status
    assert detail in str(checks[key].detail)
    assert not report.passed
    assert report.usable is (status is Status.UNSUPPORTED)
    findings = {event.finding.key: event.finding for event in events if isinstance(event, FindingRaised)}
    assert detail in str(findings[f"verify.{key}"].evidence[0])
    assert [check.key for check in report.checks] == list(QUICK)


@pytest.mark.parametrize(
    ("fault", "status", "detail"),
    [
        ("", Status.PASSED, ""),
        ("slowmatmul", Status.SLOW, "slower than this machine's CPU"),
        ("secretlarge", Status.FAILED, "The result is on cpu, not on cuda."),
    ],
)
def test_a_device_is_measured_beside_the_cpu(fake_python, fault, status, detail):
    """Its rate and the CPU's are told; slower than the CPU is slow and no failure; work done elsewhere is refused."""
    report, checks, _ = run(fake_python, fault, "cuda", level=("import", "device", "copy", "matmul", SPEED))
    found = checks[SPEED]
    assert found.status in ({status, Status.SLOW} if status is Status.PASSED else {status})
    assert detail in str(found.detail)
    assert report.passed is (status is not Status.FAILED)
    if status is not Status.FAILED:
        assert found.speed.unit == "TFLOP/s"
        assert found.speed.rate > 0
        assert found.speed.cpu_rate > 0


def test_every_operator_that_falls_back_is_told(fake_python):
    """Torch warns of the first one only, unless it is told to warn always."""
    checks = run(fake_python, "fallbacks", "cuda")[1]
    for key, operator in (("matmul", "aten::matmul"), ("conv2d", "aten::conv2d")):
        assert checks[key].status is Status.UNSUPPORTED
        assert operator in str(checks[key].detail)


def test_a_hang_names_its_line_and_the_others_still_run(fake_python):
    """A check that hangs keeps the earlier results, the later ones run, and its stack reaches detail and log."""
    report, checks, events = run(fake_python, "hang:conv2d", limit_per_check=3.0)
    others = {check.key: check.status for check in report.checks if check.key != "conv2d"}
    assert checks["conv2d"].status is Status.TIMEOUT
    assert {key for key, status in others.items() if status not in {Status.PASSED, Status.SLOW}} <= {"onnxruntime"}
    progress = [event for event in events if isinstance(event, Progress)]
    assert progress[-1].done == progress[-1].total == len(QUICK)
    if os.name == "posix":  # elsewhere no signal makes a hanging Python tell its stack
        assert "in check_conv2d" in str(checks["conv2d"].detail)
        assert any("in check_conv2d" in str(event.text) for event in events if isinstance(event, LogLine))


def test_a_device_that_hangs_again_and_again_is_given_up(fake_python):
    """After the third one in a row that does not end, the rest is skipped: nobody waits for each of them."""
    report, checks, _ = run(fake_python, "hang:linalg_solve", limit_per_check=3.0)
    assert [key for key in checks if checks[key].status is Status.TIMEOUT] == [
        "linalg.solve",
        "linalg.solve.batched",
        "linalg.solve.broadcast",
    ]
    place = QUICK.index("linalg.solve.broadcast")
    assert {check.status for check in report.checks[place + 1 :]} == {Status.SKIPPED}


def test_slow_checks_between_others_skip_themselves_alone(fake_python):
    """On a busy machine several may not finish; the device does not hang while others pass."""
    level = ("import", "device", "copy", "linalg.solve", "matmul", "linalg.solve.batched", "conv2d")
    level = (*level, "linalg.solve.broadcast", "training", "reductions")
    _, checks, _ = run(fake_python, "hang:linalg_solve", level=level, limit_per_check=3.0)
    slow = {key for key, check in checks.items() if check.status is Status.TIMEOUT}
    assert slow == {key for key in level if key.startswith("linalg")}
    assert {checks[key].status for key in level if key not in slow} == {Status.PASSED}


def test_a_fallback_on_the_cpu_itself_is_no_fault(fake_python):
    """On device cpu, work done on the CPU is what was asked for."""
    report, _, _ = run(fake_python, "fallback:conv2d", "cpu")
    assert report.passed


def test_noise_of_libraries_becomes_log_lines(fake_python):
    """Text without a line feed on the child's stdout loses no result."""
    report, _, events = run(fake_python, "noise:sum")
    assert report.passed
    assert any("no newline from the library" in str(event.text) for event in events if isinstance(event, LogLine))


@pytest.mark.process
def test_without_torch_the_report_says_so(tmp_path):
    """An interpreter without torch gives a report whose import failed and whose other torch checks were skipped."""
    bare = tmp_path / "bare"
    venv.create(bare, with_pip=False)
    python = bare / ("Scripts" if os.name == "nt" else "bin") / "python"
    report, checks, _ = run(python)
    assert checks["import"].status is Status.FAILED
    assert "No module named 'torch'" in str(checks["import"].detail)
    assert {check.status for check in report.checks[1:]} == {Status.SKIPPED}
    assert not report.passed
    assert not report.usable


@pytest.mark.process
def test_an_interpreter_that_is_none_fails_in_one_sentence(tmp_path):
    """A missing interpreter cannot be started; the next step is given."""
    with pytest.raises(WorkFailed, match="cannot be started") as caught:
        run(tmp_path / "python")
    assert caught.value.hint


@each("device", ["banana", "", "cuda:", "cuda:x", "cpu;rm"])
def test_an_unknown_device_is_refused(device):
    """A device that no backend has is bad input."""
    with pytest.raises(BadInput, match="no device called"):
        run(sys.executable, device=device)


def test_cancelling_ends_the_child_at_once(fake_python):
    """A stop asked for while a check hangs raises Cancelled long before the limit."""
    cancel = CancelToken()
    threading.Timer(1.0, cancel.set).start()
    started = time.monotonic()
    with pytest.raises(Cancelled):
        run(fake_python, "hang:matmul", cancel=cancel)
    assert time.monotonic() - started < 10
