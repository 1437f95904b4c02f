"""What a broken torch, a wrong device or a closed folder says is understood by the diagnosis."""

import subprocess
import sys
from pathlib import Path

import pytest

from assistant import start
from assistant.diagnose import diagnose
from assistant.export.write import write_all
from assistant.i18n import render
from assistant.model.errors import WorkFailed
from assistant.model.machine import Machine
from assistant.model.report import FindingRaised
from assistant.verify import run_checks

DEVICE = Path(start.__file__).parent / "runtime" / "device.py"
ASK = """
import os, sys, importlib.util
spec = importlib.util.spec_from_file_location("device", sys.argv[1])
device = importlib.util.module_from_spec(spec)
spec.loader.exec_module(device)
for value in sys.argv[2:]:
    os.environ["INFERENCE_DEVICE"] = value
    try:
        device.pick_device()
    except device.DeviceError as error:
        print(error)
"""


def first_cause(text):
    """Diagnose a text on a Linux machine; give the key that comes first."""
    found = diagnose(text, Machine(os="linux"))
    return found[0].key if found else None


@pytest.mark.parametrize(
    ("fault", "key"),
    [("abi", "ort-cuda-libs-not-on-path"), ("symbol", "torch-abi-mismatch"), ("gone", "kernel-env-mismatch")],
)
def test_a_torch_that_does_not_load_is_found_out(fake_python, fault, key):
    """The import's own words stand in the check and in the finding, and name the cause."""
    events = []
    report = run_checks(fake_python, "cpu", events.append, level=("import",), variables={"FAKE_TORCH_FAULT": fault})
    assert not report.usable
    assert first_cause(render(report.checks[0].detail)) == key
    (finding,) = [event.finding for event in events if isinstance(event, FindingRaised)]
    assert first_cause("\n".join(map(str, finding.evidence))) == key


def test_a_device_that_cannot_be_had_is_found_out(cpu_environment):
    """Each refusal is one line that says what to do, and names the cause."""
    command = [cpu_environment.python, "-c", ASK, str(DEVICE), "banana", "cpu:7", "cuda"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    keys = ["inference-device-unknown", "device-index-out-of-range", "inference-device-unavailable"]
    assert [first_cause(line) for line in told] == keys


@pytest.mark.process
def test_without_torch_the_file_for_devices_says_so():
    """Where torch is missing, the message names the Python and the way out, and the diagnosis knows the cause."""
    done = subprocess.run([sys.executable, "-S", str(DEVICE)], capture_output=True, text=True, check=False)
    assert done.returncode
    assert "PyTorch cannot be loaded by" in done.stderr.splitlines()[-1]
    assert first_cause(done.stderr) == "kernel-env-mismatch"


def test_a_folder_that_cannot_be_written_is_found_out(tmp_path):
    """The sentence names the folder, and the diagnosis names the cause."""
    (tmp_path / "results").write_text("a file stands where the folder is to be")
    with pytest.raises(WorkFailed) as caught:
        write_all(tmp_path / "results" / "deep", {"report.md": "text"}, lambda _foreign: False)
    assert "cannot be written to" in str(caught.value.message)
    assert first_cause(str(caught.value)) == "folder-not-writable"
