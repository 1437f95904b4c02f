"""One judge of a machine: what is said rests on detection, the planner's own obstacles and checks of the facts."""

from __future__ import annotations

import json
import venv
from pathlib import Path

import forked
import pytest
from tables import each

from assistant.catalog import load_catalog
from assistant.host.base import Host, ReplayHost
from assistant.i18n import render
from assistant.install.site import Distribution, Site
from assistant.machines import load
from assistant.model.finding import Finding, Severity
from assistant.model.machine import Answer, Detection, Gpu, Machine, Vendor
from assistant.model.record import replace
from assistant.plan import make_plans
from assistant.session.environments import (
    environment_findings,
    examine,
    findings_still_true,
    machine_findings,
    package_findings,
)

CATALOG = load_catalog()
NVIDIA, AMD, INTEL = (Gpu(vendor=vendor, name=vendor.value) for vendor in (Vendor.NVIDIA, Vendor.AMD, Vendor.INTEL))


def told_of(machine: Machine, **options: object) -> dict[str, Finding]:
    """Judge a machine of which nothing but its facts is known; the findings by their keys."""
    return {finding.key: finding for finding in machine_findings(Detection(machine=machine), **options)}


def in_order(**facts: object) -> Machine:
    """Give a machine on which nothing is wrong, but for the facts given."""
    usual = {
        "os": "linux",
        "arch": "x86_64",
        "wsl": False,
        "python": "3.12.4",
        "python_implementation": "CPython",
        "python_bits": 64,
        "gpus": (Gpu(vendor=Vendor.NVIDIA, name="NVIDIA GeForce RTX 4090", compute_capability="8.9"),),
        "nvidia_driver": "580.95.05",
        "memory_gb": 32,
        "disk_free_gb": 100,
    }
    return Machine(**{**usual, **facts})


@each(
    ("variable", "value", "gpu", "hides"),
    [
        ("HIP_VISIBLE_DEVICES", "-1", NVIDIA, False),
        ("HIP_VISIBLE_DEVICES", "-1", AMD, True),
        ("CUDA_VISIBLE_DEVICES", "-1,0", NVIDIA, True),
        ("CUDA_VISIBLE_DEVICES", "", NVIDIA, True),
        ("CUDA_VISIBLE_DEVICES", "0", NVIDIA, False),
        ("CUDA_VISIBLE_DEVICES", "-1", AMD, True),
        ("NVIDIA_VISIBLE_DEVICES", "void", NVIDIA, True),
        ("NVIDIA_VISIBLE_DEVICES", "void", AMD, False),
        ("ROCR_VISIBLE_DEVICES", "-1", AMD, True),
        ("ZE_AFFINITY_MASK", "-1", INTEL, True),
    ],
)
def test_a_variable_hides_its_own_vendors_gpus_only(variable: str, value: str, gpu: Gpu, *, hides: bool) -> None:
    """The planner and the doctor tell the same, by the same key."""
    machine = in_order(gpus=(gpu,), env={variable: value}, nvidia_driver="580.95.05" if gpu is NVIDIA else None)
    rejected = {row.key for row in make_plans(machine, CATALOG).rejected}
    assert ("devices-hidden" in rejected) is hides
    told = told_of(machine, live=True)["devices-hidden"]
    assert told.wrong is hides
    assert (f"{variable}={value}" in render(told.text)) is hides


@each(
    ("facts", "key"),
    [
        ({"python_bits": 32}, "python-32bit"),
        ({"python_implementation": "PyPy"}, "python-not-cpython"),
        ({"libc": "musl 1.2.5"}, "libc-musl"),
        ({"os": "windows", "packages": {"torch": "2.9.0"}}, "torch-cpu-build-installed"),
        ({"packages": {"torch": "2.9.0+cpu"}}, "torch-cpu-build-installed"),
        ({"gpus": (AMD,), "nvidia_driver": None, "packages": {"torch": "2.9.0"}}, "wrong-backend-build-for-gpu"),
        ({"os": "windows", "packages": {"torch": "2.9.0+rocm7"}}, "wrong-backend-build-for-gpu"),
        ({"nvidia_driver": None, "nvidia_driver_state": "nouveau"}, "nvidia-nouveau"),
        ({"nvidia_driver": "440.33"}, "nvidia-driver-too-old"),
        ({"packages": {"torch": "2.2.2+cu121", "numpy": "2.1.0"}}, "numpy2-abi"),
        ({"packages": {"torch": "2.9.0+cu130", "torchvision": "0.24.0+cu126"}}, "torch-torchvision-mismatch"),
        ({"packages": {"onnxruntime": "1.2", "onnxruntime-gpu": "1.2"}}, "onnxruntime-packages-conflict"),
        ({"packages": {"torch-directml": "0.2.5"}}, "directml-on-native-linux"),
        ({"disk_free_gb": 3}, "disk-full"),
        ({"memory_gb": 2}, "pip-out-of-ram"),
    ],
)
def test_trouble_is_seen_before_it_strikes(facts: dict[str, object], key: str) -> None:
    """One fact that is wrong raises its key, and nothing else, with a next step."""
    wrong = [finding for finding in told_of(in_order(**facts)).values() if finding.wrong]
    assert [finding.key for finding in wrong] == [key]
    assert wrong[0].remedies


@each(
    ("here", "coming", "key"),
    [
        ({"onnxruntime": "1.20"}, {"onnxruntime-gpu": "1.20"}, "onnxruntime-packages-conflict"),
        ({"torchvision": "0.20.0+cu124"}, {"torch": "2.9.0+cu126"}, "torch-torchvision-mismatch"),
        ({"numpy": "2.1.0"}, {"torch": "2.2.2+cu121"}, "numpy2-abi"),
    ],
)
def test_packages_are_judged_alike_before_and_after_they_come(
    here: dict[str, str], coming: dict[str, str], key: str
) -> None:
    """The same key and sentence for an environment that will hold them and for one that does, with a way out."""
    before = package_findings({**here, **coming}, "3.12.1", in_order())
    after = environment_findings(site({**here, **coming}), in_order())
    assert [finding.key for finding in before] == [key]
    assert before == after
    assert before[0].remedies
    assert key in told_of(in_order(packages={**here, **coming}))


def site(packages: dict[str, str]) -> Site:
    """Describe an environment by hand."""
    place = "/env/lib/site-packages"
    own = tuple(Distribution(name=name, version=version, place=place) for name, version in packages.items())
    base = {"prefix": "/env", "base_prefix": "/usr", "python": "/env/bin/python", "version": "3.12.1"}
    return Site(**base, purelib=place, distributions=own)


def test_what_goes_together_raises_nothing() -> None:
    """No finding without a reason, for flavours that are none and for a CPU build that was asked for."""
    assert environment_findings(site({"onnxruntime": "1.20", "onnxruntime-extensions": "0.10"}), in_order()) == ()
    assert environment_findings(site({"numpy": "2.1", "torch": "2.9.0+cpu"}), in_order(), gpu_plan=False) == ()


class Later(Host):
    """A host on which packages and kernels are others by now."""

    def __init__(self, **answers: object) -> None:
        self.answers = answers

    def ask(self, kind: str, *_arguments: str) -> Answer:
        """Answer in JSON, or that nobody could look."""
        known = {"platform": {"executable": "/usr/bin/python3"}, **self.answers}
        return Answer(text=json.dumps(known[kind])) if kind in known else Answer(status="denied")


def test_what_was_mended_since_is_no_longer_true() -> None:
    """Packages of this Python and kernels are looked at again; where that cannot be done, what was found counts."""
    gone = Finding(key="kernel-broken", severity=Severity.WARNING, text="Its program is gone.")
    disk = Finding(key="disk-full", severity=Severity.ERROR, text="The disk is full.")
    machine = in_order(packages={"torch": "2.2.2+cu121", "numpy": "2.1.0"})
    found = Detection(machine=machine, findings=(*machine_findings(Detection(machine=machine)), gone, disk))
    wrong = replace(found, findings=tuple(finding for finding in found.findings if finding.wrong))

    def left(**answers: object) -> list[str]:
        return [finding.key for finding in findings_still_true(wrong, Later(**answers))]

    assert left() == ["numpy2-abi", "kernel-broken", "disk-full"]
    assert left(packages=dict(machine.packages), kernels={}) == ["numpy2-abi", "disk-full"]
    assert left(packages={"torch": "2.2.2+cu121", "numpy": "1.26.4"}) == ["kernel-broken", "disk-full"]


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """Make a virtual environment that holds two flavours of ONNX Runtime, as far as its metadata tell."""
    venv.create(tmp_path / "env", symlinks=True)
    packages = next((tmp_path / "env").glob("lib/python*/site-packages"))
    for name in ("onnxruntime", "onnxruntime_gpu"):
        info = packages / f"{name}-1.20.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1.20\n")
    return tmp_path / "env"


@pytest.mark.process
def test_another_environment_is_judged_by_its_own_packages(environment: Path, tmp_path: Path) -> None:
    """`doctor FOLDER` tells of its conflicts, and one clear sentence where there is no environment."""
    told = forked.run("doctor", "--json", environment)
    keys = {finding["key"] for finding in json.loads(told.stdout)["findings"] if finding["severity"] != "ok"}
    assert "onnxruntime-packages-conflict" in keys
    refused = forked.run("doctor", "--json", tmp_path)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "is not an environment" in refused.stderr


def test_a_variable_of_mps_must_be_a_number() -> None:
    """PyTorch ends at its import otherwise."""
    mac = Machine(os="macos", arch="arm64", env={"PYTORCH_ENABLE_MPS_FALLBACK": "true"})
    assert told_of(mac)["mps-fallback-variable-invalid"].severity is Severity.ERROR
    mac = replace(mac, env={"PYTORCH_ENABLE_MPS_FALLBACK": "1"})
    assert told_of(mac)["mps-fallback-variable-invalid"].severity is Severity.OK


def test_an_old_card_is_news_and_nothing_to_mend() -> None:
    """No driver helps a GTX 780, so none is advised; why the CPU is taken is told all the same."""
    found = told_of(in_order(gpus=(Gpu(vendor=Vendor.NVIDIA, name="NVIDIA GeForce GTX 780"),), nvidia_driver="470.256"))
    assert not any(finding.wrong for finding in found.values())
    assert found["gpu-without-code"].severity is Severity.INFO
    assert "nvidia-driver-too-old" not in found


def test_the_cause_is_told_and_not_its_effect() -> None:
    """A Linux driver inside WSL keeps NVIDIA's tools from working: one fault, with the way out."""
    found = examine(ReplayHost(load("wsl-ubuntu2204-rtx3060-linux-driver")))
    assert [finding.key for finding in found if finding.wrong] == ["wsl-linux-driver-installed"]


def test_a_newer_driver_for_a_newer_release_is_news() -> None:
    """The plan works as it is; the doctor says what more there would be."""
    found = told_of(in_order(nvidia_driver="570.86.15"))
    assert found["nvidia-driver-too-old"].severity is Severity.INFO
    assert "580" in render(found["nvidia-driver-too-old"].remedies[0].text)


def test_a_proxy_with_the_wrong_scheme_is_named() -> None:
    """The variable is named, never its value; a right one is good news."""
    wrong = told_of(in_order(env={"HTTPS_PROXY": "https://me:secret@proxy:3128"}))["proxy-misconfigured"]
    right = told_of(in_order(env={"HTTPS_PROXY": "http://proxy:3128"}))["proxy-misconfigured"]
    assert (wrong.severity, right.severity) == (Severity.WARNING, Severity.OK)
    assert "HTTPS_PROXY" in render(wrong.text)
    assert "secret" not in str(wrong)


def test_what_is_unknown_is_not_judged() -> None:
    """A machine that tells nothing gets no bad news."""
    assert not any(finding.wrong for finding in told_of(Machine()).values())


def test_a_machine_in_order_gets_good_news() -> None:
    """Everything fits, and versions are told as they were read."""
    found = told_of(in_order(packages={"torch": "2.14.1+cu130", "numpy": "2.3.0"}))
    assert {finding.severity for finding in found.values()} == {Severity.OK}
    assert "580.95.05" in render(found["nvidia-driver-too-old"].text)


def test_what_a_recording_may_not_know_is_told_of_a_machine_at_hand_only() -> None:
    """Kernels, drivers and variables are good news where they were looked for."""
    machine = in_order(gpus=(AMD,), nvidia_driver=None, packages={"onnxruntime": "1.20"})
    here = {key for key, finding in told_of(machine, live=True).items() if finding.severity is Severity.OK}
    assert {"kernel-broken", "devices-hidden", "hsa-override-set", "kfd-permission", "amdgpu-driver-not-loaded"} <= here
    assert not {"kernel-broken", "devices-hidden", "kfd-permission"} & set(told_of(machine))
    assert "onnxruntime-packages-conflict" in told_of(machine)
