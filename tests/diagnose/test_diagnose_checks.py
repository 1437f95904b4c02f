"""The doctor's checks, each on facts made for it."""

from __future__ import annotations

import pytest

from assistant.diagnose import check_up
from assistant.diagnose.checks import passed
from assistant.model.finding import Severity
from assistant.model.machine import Gpu, Machine, Vendor
from assistant.session.diagnosis import with_ways_out

NVIDIA, AMD = (Gpu(vendor=vendor, name=vendor.value) for vendor in (Vendor.NVIDIA, Vendor.AMD))


@pytest.mark.parametrize(
    ("machine", "key"),
    [
        (Machine(python="3.12", python_bits=32), "python-32bit"),
        (Machine(os="windows", gpus=(NVIDIA,), packages={"torch": "2.9.0"}), "torch-cpu-build-installed"),
        (Machine(os="linux", gpus=(NVIDIA,), packages={"torch": "2.9.0+cpu"}), "torch-cpu-build-installed"),
        (Machine(os="linux", gpus=(AMD,), packages={"torch": "2.9.0"}), "wrong-backend-build-for-gpu"),
        (Machine(os="windows", gpus=(NVIDIA,), packages={"torch": "2.9.0+rocm7"}), "wrong-backend-build-for-gpu"),
        (Machine(os="linux", nvidia_driver="535.183.01"), "nvidia-driver-too-old"),
        (Machine(packages={"torch": "2.2.2", "numpy": "2.1.0"}), "numpy2-abi"),
        (Machine(disk_free_gb=3), "disk-full"),
        (Machine(memory_gb=2), "pip-out-of-ram"),
        (Machine(os="macos", env={"PYTORCH_ENABLE_MPS_FALLBACK": "true"}), "mps-fallback-variable-invalid"),
    ],
)
def test_trouble_is_seen_before_it_strikes(machine: Machine, key: str) -> None:
    """Each check raises its key, with a way out from the rules."""
    bad = [finding for finding in check_up(machine) if finding.severity in {Severity.WARNING, Severity.ERROR}]
    assert [finding.key for finding in bad] == [key]
    assert with_ways_out(bad, machine)[0].remedies


def test_a_proxy_with_the_wrong_scheme_is_named() -> None:
    """The variable is named; a right one is good news."""
    wrong = check_up(Machine(), {"HTTPS_PROXY": "https://proxy:3128"})[-1]
    right = check_up(Machine(), {"HTTPS_PROXY": "http://proxy:3128"})[-1]
    assert (wrong.severity, right.severity) == (Severity.WARNING, Severity.OK)
    assert "HTTPS_PROXY" in str(wrong.text)


def test_what_is_unknown_is_not_judged() -> None:
    """A machine that tells nothing gets no bad news."""
    assert all(finding.severity in {Severity.OK, Severity.INFO} for finding in check_up(Machine()))


def test_a_machine_in_order_gets_good_news() -> None:
    """Everything fits."""
    machine = Machine(
        os="linux",
        python="3.12.4",
        python_bits=64,
        gpus=(NVIDIA,),
        nvidia_driver="580.95.05",
        memory_gb=32,
        disk_free_gb=100,
        packages={"torch": "2.14.1+cu130", "numpy": "2.3.0"},
    )
    assert {finding.severity for finding in check_up(machine)} == {Severity.OK}


def test_versions_are_told_as_they_were_read() -> None:
    """A driver keeps the zeros of its number."""
    (news,) = [each for each in check_up(Machine(os="linux", nvidia_driver="580.95.05")) if "NVIDIA" in str(each.text)]
    assert "580.95.05" in str(news.text)


def test_what_detection_checks_is_told_as_good_news_too() -> None:
    """Each of its checks has a line on a machine at hand; of a described one only what its facts can tell."""
    machine = Machine(os="linux", wsl=False, gpus=(AMD,), packages={"onnxruntime": "1.20"})
    here = {finding.key for finding in passed(machine, {"kfd-permission"}, live=True)}
    assert {"kernel-broken", "devices-hidden", "hsa-override-set", "onnxruntime-packages-conflict"} <= here
    assert "kfd-permission" not in here
    assert {finding.key for finding in passed(machine, set(), live=False)} == {"onnxruntime-packages-conflict"}
