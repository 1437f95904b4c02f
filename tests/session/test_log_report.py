"""A report holds the causes, the log and the machine, as far as a log and a machine tell them."""

from __future__ import annotations

import re

import pytest

from assistant.detect import detect, read_report
from assistant.diagnose import read_log
from assistant.host.base import ReplayHost
from assistant.i18n import in_language
from assistant.machines import load
from assistant.model.machine import Machine
from assistant.model.record import replace
from assistant.session.diagnosis import TO_WRITE, find_causes_and_lines, log_report, places_in_log

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."


@pytest.fixture(scope="module")
def machine() -> Machine:
    """Be a computer with a card and packages."""
    found = detect(ReplayHost(load("linux-ubuntu2404-rtx4090"))).machine
    return replace(found, packages={"torch": "2.9.1+cu130", "onnxruntime-gpu": "1.24.0", "numpy": "2.1.0"})


def parts(text: str) -> dict[str, str]:
    """Split a report at its headings."""
    found = re.split(r"^### (.+)$", text, flags=re.MULTILINE)
    return dict(zip(found[1::2], map(str.strip, found[2::2]), strict=True))


def test_a_report_has_the_causes_the_log_and_the_machine(machine: Machine) -> None:
    """The machine is what the assistant reads again; what only a person knows is left open."""
    log = read_log(OOM)
    with in_language("zh_CN"):  # who helps asks for English
        report = parts(log_report(log, machine, find_causes_and_lines(log, machine)))
    assert list(report) == ["What happened", "Likely causes", "Log", "Machine"]
    assert report["What happened"] == TO_WRITE
    assert "`oom`" in report["Likely causes"]
    assert "Not enough memory on the device" in report["Likely causes"]
    assert OOM in report["Log"]
    read = read_report(report["Machine"]).machine
    assert (read.os, read.gpus, read.packages) == (machine.os, machine.gpus, machine.packages)
    assert not read.evidence


def test_no_text_of_a_log_ends_its_block(machine: Machine) -> None:
    """Backticks in a log are no end of the block that holds it."""
    text = log_report(read_log("error: ```\n### Urgency, error: x"), machine, ())
    assert text.count("```") % 2 == 0
    assert "'''" in text
    assert "knows no cause" in parts(text)["Likely causes"]


def test_only_what_tells_the_cause_is_shown(machine: Machine) -> None:
    """The traceback and its error are; what was printed before and after them stays with the user."""
    trace = ["Traceback (most recent call last):", '  File "/opt/app/train.py", line 3, in <module>', "    go()", OOM]
    log = read_log("\n".join(["my diary", *trace, "my letter"]))
    shown = parts(log_report(log, machine, find_causes_and_lines(log, machine)))["Log"]
    assert shown.splitlines()[1:-1] == trace


def test_of_an_unknown_failure_the_lines_that_name_an_error_are_shown(machine: Machine) -> None:
    """Whoever helps needs them, and nothing of the rest."""
    log = read_log("my diary\nError: the frobnicator is upside down\nmy letter")
    shown = parts(log_report(log, machine, ()))["Log"]
    assert shown.splitlines()[1:-1] == ["Error: the frobnicator is upside down"]


def test_a_private_key_that_begins_above_the_shown_lines_is_not_shown(machine: Machine) -> None:
    """Neither the report's lines nor those around a cause hold a part of it."""
    line = "Pl4nted/key+line"
    lines = ["-----BEGIN PRIVATE KEY-----", *[f"{line} error"] * 40, "-----END PRIVATE KEY-----", OOM]
    log = read_log("\n".join([*lines, "after"]))
    assert line not in log_report(log, machine, ())
    (place,) = places_in_log(log, (lines.index(OOM) - 3,))
    assert place
    assert line not in str(place.lines)
