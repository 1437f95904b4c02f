"""Every key is reached from a log that shows it, and logs without trouble are left alone."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from assistant.diagnose import diagnose, load_rules, read_log
from assistant.machines import load, shipped
from assistant.model.machine import Evidence, Gpu, Machine, Vendor
from assistant.model.record import from_plain, replace
from assistant.session.diagnosis import explain_unknown, find_causes, machine_of_log

HERE = Path(__file__).parent


def rows(name: str) -> list[dict[str, object]]:
    """Read a file of cases, each with the key, a log and the machine that it comes from."""
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


# A CPU build beside an NVIDIA GPU, no XPU where its build is installed, providers that the package should have.
TRUE = {
    "collect_env_cpu": {"windows-nvidia", "windows-arc", "linux-cuda", "wsl-nvidia"},
    "ort_device_discovery": {"linux-cuda", "windows-directml"},
    "ort_providers": {"linux-cuda", "windows-directml"},
}
CASES, WORDINGS = rows("cases.jsonl"), rows("wordings.jsonl")
HEALTHY = sorted((HERE / "healthy").glob("*.txt"))
IN_TROUBLE = {"linux-ubuntu2204-rtx3090-nodriver", "linux-ubuntu2404-rtx4070-mismatch"}
MACHINES = {
    "unknown": Machine(),
    "windows-nvidia": Machine(os="windows", gpus=(Gpu(vendor=Vendor.NVIDIA, name="GeForce RTX 3060"),)),
    "windows-hybrid": Machine(
        os="windows",
        gpus=(
            Gpu(vendor=Vendor.INTEL, name="Intel(R) UHD Graphics 770", integrated=True),
            Gpu(vendor=Vendor.AMD, name="Radeon RX 6600"),
        ),
        packages={"torch-directml": "0.1.13", "hip-sdk": "6.2"},
    ),
    "windows-arc": Machine(
        os="windows",
        gpus=(Gpu(vendor=Vendor.INTEL, name="Intel Arc A770"),),
        packages={"torch": "2.8.0+xpu", "DirectML.dll": "1.15"},
    ),
    "linux-amd": Machine(os="linux", wsl=False, gpus=(Gpu(vendor=Vendor.AMD, name="Radeon RX 6800"),)),
    "wsl-amd": Machine(os="linux", wsl=True, gpus=(Gpu(vendor=Vendor.AMD, name="Radeon RX 7900 XTX"),)),
    "mac": Machine(os="macos", gpus=(Gpu(vendor=Vendor.APPLE, name="Apple M2"),)),
    "linux-cuda": Machine(
        os="linux",
        wsl=False,
        gpus=(Gpu(vendor=Vendor.NVIDIA, name="RTX 3090"),),
        packages={"torch": "2.8.0+cu128", "onnxruntime-gpu": "1.22.0"},
    ),
    "linux-rocm": Machine(
        os="linux",
        wsl=False,
        gpus=(Gpu(vendor=Vendor.AMD, name="Radeon RX 6700 XT"),),
        packages={"torch": "2.8.0+rocm6.4"},
    ),
    "windows-directml": Machine(
        os="windows",
        gpus=(Gpu(vendor=Vendor.AMD, name="Radeon RX 6600"),),
        packages={"torch": "2.4.1+cpu", "torch-directml": "0.2.5.dev240914", "onnxruntime-directml": "1.22.0"},
    ),
    "intel-mac": Machine(os="macos", arch="x86_64", gpus=(Gpu(vendor=Vendor.AMD, name="Radeon Pro 555"),)),
    "wsl-old-amd": Machine(os="linux", wsl=True, gpus=(Gpu(vendor=Vendor.AMD, name="Radeon RX 6800"),)),
    "wsl-nvidia": Machine(os="linux", wsl=True, gpus=(Gpu(vendor=Vendor.NVIDIA, name="RTX 4070"),)),
}


def test_the_first_cause_is_the_right_one() -> None:
    """The log and the facts together name the cause first, with the line, a way out and a source."""
    wrong = {}
    for number, case in enumerate(CASES):
        best = next(
            iter(find_causes(read_log(str(case["log"])), from_plain(case["machine"], Machine, "the case"))), None
        )
        whole = best and best.evidence and best.remedies and best.sources and 0 < best.confidence <= 1
        if not whole or best.key != case["key"]:
            wrong[f"{number}-{case['key']}"] = best
    assert wrong == {}


def test_other_wordings_are_understood_too() -> None:
    """What the tools print in other releases, languages and moods names the same cause, decided by the facts."""
    told = [
        (row, find_causes(read_log(str(row["log"])), from_plain(row["machine"], Machine, "row"))) for row in WORDINGS
    ]
    missed = [f"{row['key']}: {row['log']}" for row, found in told if not found or found[0].key != row["key"]]
    assert len(missed) <= 0.02 * len(WORDINGS), "\n".join(missed)


def test_every_rule_has_a_case_and_three_other_wordings() -> None:
    """No rule is shipped untried."""
    keys = {rule.key for rule in load_rules().rules}
    assert keys == {case["key"] for case in CASES}
    wordings = Counter(row["key"] for row in WORDINGS)
    assert {key for key in keys if wordings[key] < 3} == set()


def test_a_healthy_or_unrelated_log_is_left_alone() -> None:
    """No cause is invented, whatever machine the log comes from."""
    wrong = {}
    for path in HEALTHY:
        log = read_log(path.read_bytes())
        found = {name for name, machine in MACHINES.items() if diagnose(log, machine)}
        if found != TRUE.get(path.stem, set()):
            wrong[path.stem] = found
    assert wrong == {}


def test_what_shipped_machines_answered_is_left_alone() -> None:
    """Outputs of tools on machines without trouble raise nothing; those in trouble do."""
    texts = {name: "\n".join(said.answer.text for said in load(name).said) for name in shipped()}
    assert {name for name, text in texts.items() if diagnose(text)} == IN_TROUBLE


@pytest.mark.parametrize(
    ("facts", "key"),
    [
        (Machine(os="macos"), "cuda-requested-on-mac"),
        (Machine(packages={"torch": "2.8.0+xpu"}), "cuda-hardcoded-on-xpu"),
        (Machine(os="windows", gpus=(Gpu(vendor=Vendor.AMD, name="RX 6600"),)), "wrong-backend-build-for-gpu"),
        (Machine(os="windows", gpus=(Gpu(vendor=Vendor.NVIDIA, name="RTX 3060"),)), "torch-cpu-build-installed"),
    ],
)
def test_one_message_is_decided_by_facts(facts: Machine, key: str) -> None:
    """The same sentence has another cause on another machine."""
    assert diagnose("AssertionError: Torch not compiled with CUDA enabled", facts)[0].key == key


def test_a_missing_fact_is_asked_for() -> None:
    """Without knowing whether this is WSL, the first remedy asks, and the confidence is lower."""
    log = "OSError: libd3d12.so: cannot open shared object file: No such file or directory"
    unknown, known = diagnose(log)[0], diagnose(log, Machine(os="linux", wsl=False))[0]
    assert "WSL" in str(unknown.remedies[0].text)
    assert unknown.remedies[0].commands
    assert unknown.confidence < known.confidence


def test_facts_are_read_from_the_log() -> None:
    """A version that the log states decides as a stated fact does."""
    log = "torch: 2.6.0+xpu\nAssertionError: Torch not compiled with CUDA enabled"
    assert diagnose(log)[0].key == "cuda-hardcoded-on-xpu"


def test_a_pasted_report_inside_the_log_is_read() -> None:
    """What collect_env says of the machine counts."""
    log = read_log(
        "AssertionError: Torch not compiled with CUDA enabled\nCollecting environment information...\n"
        "PyTorch version: 2.6.0+cpu\nOS: Microsoft Windows 11 Pro (10.0.26100 64-bit)\n"
        "Python version: 3.12.4 (64-bit runtime)\nGPU models and configuration: GPU 0: NVIDIA GeForce RTX 4070\n"
        "Nvidia driver version: 560.94\n"
    )
    machine = machine_of_log(log, Machine(os="linux"))
    assert (machine.os, machine.packages["torch"], machine.nvidia_driver) == ("windows", "2.6.0+cpu", "560.94")
    best = find_causes(log, machine)[0]
    assert best.key == "torch-cpu-build-installed"
    assert best.remedies[0].plan
    assert best.remedies[0].plan.backend.value == "cuda"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (
            "The operator 'aten::_linalg_solve_ex.result' is not currently implemented for the MPS device.",
            "mps-op-missing",
        ),
        ("RuntimeError: No XPU devices are available.", "xpu-unsupported-igpu"),
    ],
)
def test_a_log_whose_cause_this_machine_cannot_have_is_another_s(text: str, key: str) -> None:
    """Somebody reads a colleague's message on a computer with another system or GPU."""
    here = Machine(os="linux", gpus=(Gpu(vendor=Vendor.NVIDIA, name="NVIDIA GeForce RTX 4070"),))
    log = read_log(text)
    machine = machine_of_log(log, here)
    assert not machine.gpus
    assert find_causes(log, machine)[0].key == key


def test_a_remedy_names_no_plan_that_the_machine_cannot_have() -> None:
    """An old Radeon on Linux gets the honest CPU plan, a new one gets ROCm."""
    log = read_log("OSError: libd3d12.so: cannot open shared object file")
    for name, backend in {"Radeon RX 580": "cpu", "Radeon RX 7900 XTX": "rocm"}.items():
        machine = Machine(
            os="linux", wsl=False, arch="x86_64", python="3.12", gpus=(Gpu(vendor=Vendor.AMD, name=name),)
        )
        plan = find_causes(log, machine)[0].remedies[0].plan
        assert plan
        assert plan.backend.value == backend


def test_a_gpu_is_asked_for_only_where_nobody_looked() -> None:
    """A computer that was detected and has none gets its build; one that was never looked at, a question first."""
    log = read_log("OSError: libd3d12.so: cannot open shared object file")
    there = Machine(os="linux", wsl=False, arch="x86_64", python="3.12")
    looked = replace(there, evidence=(Evidence(fact="os", source="platform"),))
    for here, texts in ((looked, ("Install PyTorch for CPU",)), (there, ("First find out which GPU",))):
        remedies = find_causes(log, machine_of_log(log, here))[0].remedies
        assert str(remedies[0].text).startswith(texts)


def test_the_commands_fit_the_system() -> None:
    """Windows is offered no apt, Linux no reg."""
    log = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"
    windows = diagnose(log, Machine(os="windows"))[0]
    linux = diagnose(log, Machine(os="linux"))[0]
    assert any("set TEMP" in command for remedy in windows.remedies for command in remedy.commands)
    assert not any("set TEMP" in command for remedy in linux.remedies for command in remedy.commands)


def test_an_unknown_failure_ends_in_a_question() -> None:
    """What is told is named, and the fact that would decide is asked for; a log without trouble is asked nothing."""
    answer = explain_unknown(read_log("my gpu is not used"), MACHINES["windows-nvidia"])
    assert [one.key for one in answer.symptoms] == ["gpu-unused"]
    assert answer.question is not None
    assert answer.question.commands == ("python -m pip list",)
    assert explain_unknown(read_log("RuntimeError: something new"), Machine()).question is not None
    assert explain_unknown(read_log("all is well"), Machine()).question is None
