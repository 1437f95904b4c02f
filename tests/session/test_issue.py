"""A report has the form that the project concerned asks for, and is filled as far as a log and a machine tell."""

from __future__ import annotations

import re

import pytest

from assistant.catalog.tables import read_tables
from assistant.detect import detect
from assistant.diagnose import read_log
from assistant.host.recording import ReplayHost
from assistant.i18n import in_language
from assistant.machines import load
from assistant.model.machine import Machine
from assistant.model.record import replace
from assistant.parsers.collect_env import collect_env
from assistant.session.diagnosis import diagnosed
from assistant.session.issue import TO_WRITE, IssueTables, issues

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
LOGS = {
    "PyTorch": OOM,
    "ComfyUI": f"C:\\ComfyUI> python main.py\n{OOM}",
    "ONNX Runtime": "[E:onnxruntime:Default, provider_bridge_ort.cc:1862] Failed to load library "
    "libonnxruntime_providers_cuda.so with error: libcudnn.so.9: cannot open shared object file",
}


@pytest.fixture(scope="module")
def machine() -> Machine:
    """Be a computer with a card and packages."""
    found = detect(ReplayHost(load("linux-ubuntu2404-rtx4090"))).machine
    return replace(found, packages={"torch": "2.9.1+cu130", "onnxruntime-gpu": "1.24.0", "numpy": "2.1.0"})


def parts(text: str) -> dict[str, str]:
    """Split a report at its headings."""
    found = re.split(r"^### (.+)$", text, flags=re.MULTILINE)
    return dict(zip(found[1::2], map(str.strip, found[2::2]), strict=True))


@pytest.mark.parametrize("project", LOGS)
def test_the_project_that_a_log_concerns_comes_first(project: str, machine: Machine) -> None:
    """With each field of its form and no other; the others follow."""
    log = read_log(LOGS[project])
    found = issues(log, machine, diagnosed(log, machine))
    assert found[0].project == project
    assert {one.project for one in found} == {*LOGS}
    forms = {row.project: row for row in read_tables("issues", IssueTables).issues.rows}
    for one in found:
        assert list(parts(one.text)) == [field.label for field in forms[one.project].fields]
        assert one.address.startswith("https://github.com/")


def test_pytorchs_form_has_the_causes_the_log_and_the_versions(machine: Machine) -> None:
    """The versions are a block that the reader of such blocks understands; what only a person knows is left open."""
    log = read_log(OOM)
    with in_language("zh_CN"):  # the form asks for English
        report = parts(issues(log, machine, diagnosed(log, machine))[0].text)
    bug = report["🐛 Describe the bug"]
    assert "`oom`" in bug
    assert "Not enough memory on the device" in bug
    assert OOM in bug
    assert TO_WRITE in bug
    read = collect_env(report["Versions"].strip("`").removeprefix("text"))
    assert read is not None
    assert "PyTorch version: 2.9.1+cu130\n" in report["Versions"]
    assert "CUDA used to build PyTorch: 13.0\n" in report["Versions"]
    assert "Is CUDA available: Could not collect\n" in report["Versions"]


def test_onnx_runtimes_form_is_filled_with_its_own_choices(machine: Machine) -> None:
    """Platform, architecture and provider as its lists spell them."""
    log = read_log(LOGS["ONNX Runtime"])
    report = parts(issues(log, machine, diagnosed(log, machine))[0].text)
    assert report["Platform"] == "Linux"
    assert report["Architecture"] == "X64"
    assert report["ONNX Runtime Installation"] == "Released Package"
    assert report["ONNX Runtime Version or Commit ID"] == "onnxruntime-gpu 1.24.0"
    assert report["Execution Provider"] == "CUDA"
    assert report["Execution Provider Library Version"].startswith("CUDA ")
    nothing = parts(issues(log, Machine(), ())[0].text)
    assert nothing["Platform"] == "Other / Unknown"
    assert "knows no cause" in nothing["Describe the issue"]


def test_no_text_of_a_log_ends_its_block(machine: Machine) -> None:
    """Backticks in a log are no end of the block that holds it."""
    text = issues(read_log("```\n### Urgency\nerror: x"), machine, ())[0].text
    assert text.count("```") % 2 == 0
    assert "'''" in text
