"""The full verification in a real environment: it passes on a CPU, and faults planted in the real torch are caught."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tables import each

from assistant.i18n import render
from assistant.model.report import FULL, FindingRaised, Progress, Status, verdict
from assistant.verify import run_checks
from assistant.views import speed_lines

pytestmark = pytest.mark.full

FIRST = ("import", "device", "copy")


@pytest.fixture(scope="module")
def planted_python(cpu_environment, tmp_path_factory):
    """Make an environment that borrows the real one's packages and plants a fault when torch is imported."""
    ask = [
        cpu_environment.python,
        "-c",
        "import sys, sysconfig; print(sys._base_executable, sysconfig.get_path('purelib'))",
    ]
    base, packages = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip().split(" ", 1)
    folder = tmp_path_factory.mktemp("planted") / "environment"
    subprocess.run([base, "-m", "venv", "--without-pip", folder], check=True)
    ask = [
        str(folder / ("Scripts" if os.name == "nt" else "bin") / "python"),
        *ask[1:2],
        "import sysconfig; print(sysconfig.get_path('purelib'))",
    ]
    own = Path(subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip())
    shutil.copy(Path(__file__).parent / "planted" / "plant.py", own)
    (own / "planted.pth").write_text(f"{packages}\nimport plant\n", "utf-8")
    return ask[0]


FAULTS = {  # which check meets it, and what must be told of it
    "attention": ("attention", Status.WRONG, "1 of 4224 elements are wrong"),
    "transposed": ("conv_transposed", Status.WRONG, "elements are wrong"),
    "cholesky": ("linalg.cholesky", Status.WRONG, "1 of 1200 elements are wrong"),
    "complex": ("complex", Status.WRONG, "elements are wrong"),
    "seed": ("random", Status.WRONG, "The same seed gave different numbers."),
    "constant": ("random", Status.WRONG, "Another seed gave the same numbers."),
    "leak": ("memory", Status.WRONG, "MiB were not released after 40 results of 8 MiB"),
    "grow": ("linalg.svd", Status.FAILED, "took more than 1024 MiB of memory and was stopped"),
    "generous": ("out_of_memory", Status.FAILED, "bytes were granted"),
    "hang": ("linalg.qr", Status.TIMEOUT, "within 25 seconds"),
    "die": ("linalg.eigh", Status.FAILED, "SIGSEGV"),
    "missing": ("workload.tts", Status.UNSUPPORTED, "'aten::_weight_norm' is not currently implemented"),
    "slow": ("small_kernels", Status.SLOW, "A small operator takes"),
    "provider": ("onnxruntime", Status.FAILED, "ran MatMul, Relu on OtherExecutionProvider instead of CPU"),
    "strayed once": ("onnxruntime", Status.FAILED, "ran MatMul on OtherExecutionProvider instead of CPU"),
    "unplaced": ("onnxruntime", Status.FAILED, "names no node that CPUExecutionProvider ran"),
    "no float64": ("float64", Status.UNSUPPORTED, "doesn't support float64"),
    "no compiler": ("compile", Status.UNSUPPORTED, "needs a C++ compiler on the CPU, and none is found"),
}
SPARED = ("slow", "hang", "no float64", "no compiler")  # a device that lacks these, or is slow at them, is usable
TOGETHER = [  # faults that leave one another alone share a child: importing torch is what takes the time
    ["attention", "transposed", "cholesky", "complex", "seed", "provider"],
    ["constant", "unplaced"],
    ["leak", "missing", "strayed once"],
    ["grow"],
    ["generous"],
    # Waits its limit out; the pretended torch hangs in every run (test_verify_faults.py).
    pytest.param(["hang"], marks=pytest.mark.heavy),
    ["slow"],
    ["no float64"],
    ["no compiler"],
    pytest.param(["die"], marks=pytest.mark.skipif(os.name != "posix", reason="Windows has no signals")),
]


@each("faults", TOGETHER, ids=", ".join)
def test_faults_planted_in_the_real_torch_are_caught(planted_python, faults):
    """The check that meets one says so, a finding carries it, and the check after it runs."""
    events = []
    report = run_checks(
        planted_python,
        "cpu",
        events.append,
        level=(*FIRST, "matmul", *(FAULTS[fault][0] for fault in faults), "reductions"),
        limit_per_check=25.0 if "hang" in faults else 120.0,  # a busy machine takes its time to import torch
        memory_limit=1 << 30,
        variables={"PLANTED_FAULTS": ",".join(faults)},
    )
    found = {check.key: check for check in report.checks}
    told = {event.finding.key for event in events if isinstance(event, FindingRaised)}
    for fault in faults:
        key, status, detail = FAULTS[fault]
        assert found[key].status is status, report
        assert detail in str(found[key].detail)
        assert f"verify.{key}" in told
        if status is Status.UNSUPPORTED and fault in SPARED:
            assert render(verdict(report)) == f"Usable on the device cpu, but it lacks: {key}."
    unharmed = {key for key in found if found[key].status is Status.PASSED}
    assert unharmed >= {*FIRST, "matmul"}
    assert report.passed is (faults[0] in SPARED)
    assert report.checks[-1].status is Status.PASSED


@each(
    ("fault", "status", "detail"),
    [
        ("silent", Status.FAILED, "ran MatMul, Relu on CPUExecutionProvider instead of CUDAExecutionProvider"),
        ("pretended", Status.PASSED, ""),
    ],
)
def test_the_intended_provider_must_run_the_nodes(planted_python, fault, status, detail):
    """A session that silently took the CPU's provider is found out; one that did not passes by its results."""
    settings = {"PLANTED_FAULTS": fault}
    report = run_checks(planted_python, "cuda", lambda _: None, level=("onnxruntime",), variables=settings)
    assert report.checks[0].status is status, report
    assert detail in str(report.checks[0].detail)


def test_a_real_cpu_passes_in_full(cpu_environment):
    """Nothing is wrong or failed; progress is told; speeds are measured (how long it takes, `verify_time.py` tells)."""
    events = []
    report = run_checks(cpu_environment.python, "cpu", events.append, level="full", limit_per_check=120.0)
    statuses = {check.key: check.status for check in report.checks}
    assert report.passed, report
    assert Status.SKIPPED not in statuses.values()
    assert report.lacking == ("compile",)  # this environment's path contains a space
    assert "contains a space" in render({check.key: check.detail for check in report.checks}["compile"])
    assert all(check.detail for check in report.checks if check.key == "out_of_memory")
    assert tuple(statuses) == FULL
    progress = [event for event in events if isinstance(event, Progress)]
    assert [event.done for event in progress] == [*range(len(FULL)), len(FULL)]
    lines = dict(zip(report.speeds, map(render, speed_lines(report)), strict=True))
    measured = {"workload.llm", "workload.tts", "workload.vocoder", "workload.lora", "speed.matmul.float32"}
    assert set(lines) == measured
    assert lines["workload.llm"].endswith("tokens/s")
    assert lines["speed.matmul.float32"].endswith("TFLOP/s")
