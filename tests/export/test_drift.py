"""What differs between a setup and what is there is named, one line each, and nothing else is."""

import shutil
import venv

import msgspec
import pytest
from export.setups import DETECTION, ENVIRONMENT, GPU, LOCK, PLAN, REPORT
from tables import each

from assistant.catalog import load_catalog
from assistant.detect import detect
from assistant.export import Setup
from assistant.export.config import (
    Config,
    config_text,
    machine_drift,
    package_drift,
    plan_drift,
    read_config,
    report_drift,
)
from assistant.host.base import ReplayHost
from assistant.host.files import shared_environments_folder
from assistant.host.process import CancelToken
from assistant.install import Package, Prepared, Resolution, Sources, Tools
from assistant.install.kernel import register_kernel
from assistant.install.site import interpreter, write_marker
from assistant.machines import load
from assistant.model.errors import WorkFailed
from assistant.model.machine import Machine
from assistant.model.plan import Backend, Planning, Request
from assistant.model.report import Status
from assistant.plan import make_plans
from assistant.session.apply import check_lock, choose_approach, find_exported_environment, plan_changes
from assistant.session.state import Detected, Installed, Planned, State
from assistant.session.steps import write_export

change = msgspec.structs.replace
MACHINE = DETECTION.machine


def texts(found):
    """Give the lines."""
    return [drift.text for drift in found]


@each(
    ("now", "said"),
    [
        ({"nvidia_driver": "570.1"}, ["driver NVIDIA: was 580.95.05, is 570.1"]),
        ({"nvidia_driver": None}, ["driver NVIDIA: 580.95.05 is gone"]),
        ({"rocm_version": "7.2"}, ["driver ROCm: 7.2 is new"]),
        ({"gpus": ()}, ["GPU: NVIDIA GeForce RTX 4090 is gone"]),
        ({"os_version": "Ubuntu 26.04"}, ["system os: was Ubuntu 24.04, is Ubuntu 26.04"]),
        ({"arch": "aarch64"}, ["system arch: was x86_64, is aarch64"]),
        ({"gpus": (change(GPU, driver="2"),)}, []),
        ({"memory_gb": 8, "disk_free_gb": 1, "env": {}, "evidence": ()}, []),
        ({}, []),
    ],
)
def test_driver_system_and_gpus_are_compared(now, said):
    """What computes is compared; memory, free space and evidence are not."""
    assert texts(machine_drift(MACHINE, change(MACHINE, **now))) == said


def test_a_driver_of_a_gpu_is_compared():
    """On Windows each GPU has a driver of its own."""
    old, new = (change(MACHINE, gpus=(change(GPU, driver=version),)) for version in ("31.0.1", "32.0.2"))
    assert texts(machine_drift(old, new)) == ["driver NVIDIA GeForce RTX 4090: was 31.0.1, is 32.0.2"]


def test_packages_gone_changed_and_added_are_named():
    """Each package that differs has a line."""
    assert texts(package_drift({"torch": "2.6.0+cu126", "a": "1"}, {"torch": "2.6.0", "b": "2"})) == [
        "package a: 1 is gone",
        "package b: 2 is new",
        "package torch: was 2.6.0+cu126, is 2.6.0",
    ]


def test_files_are_compared_where_both_hashes_are_known():
    """The same version with another file is another package."""
    hashes = {"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "9"}
    assert texts(package_drift({}, {}, hashes)) == ["file of the package b: was 2, is 9"]


def test_another_version_is_named_once_and_another_pip_not_at_all():
    """Another version always has another file, and pip is no part of a setup."""
    hashes = {"a": "1", "pip": "2"}, {"a": "8", "pip": "9"}
    found = package_drift({"a": "1.0", "pip": "25.0"}, {"a": "1.1", "pip": "26.0"}, hashes)
    assert texts(found) == ["package a: was 1.0, is 1.1"]


def test_a_check_that_was_right_and_is_not_is_named():
    """A failure that was there before, and a check that was not run, are no drift."""
    wrong = change(REPORT.checks[1], status=Status.WRONG)
    assert texts(report_drift(REPORT, change(REPORT, checks=(wrong,)))) == ["check matmul: was passed, is wrong"]
    assert not report_drift(change(REPORT, checks=(wrong,)), change(REPORT, checks=(wrong,)))
    assert not report_drift(REPORT, change(REPORT, checks=()))
    assert texts(report_drift(REPORT, change(REPORT, device="cpu"))) == ["device: was cuda, is cpu"]
    assert texts(report_drift(REPORT, change(REPORT, facts={"python": "3.13.1"}))) == ["Python: was 3.12.4, is 3.13.1"]


def test_what_steers_a_terminal_is_not_printed():
    """Text of a configuration is made printable."""
    assert all(line.isprintable() for line in texts(machine_drift(change(MACHINE, os_version="\x1b[2J\n"), MACHINE)))


def config(name: str, backend: Backend | None = None) -> Config:
    """Give the configuration of a recorded machine that took the best plan, or that of a backend."""
    machine = detect(ReplayHost(load(name))).machine
    plan = make_plans(machine, load_catalog(), Request(backend=backend)).choice
    return Config(
        plan=plan,
        environment=change(ENVIRONMENT, path="env", python="bin/python"),
        verification=REPORT,
        machine=machine,
    )


@each(
    ("there", "here", "backend"),
    [
        ("linux-ubuntu2404-rtx4090", "linux-arch-rx9070xt", Backend.ROCM),
        ("linux-ubuntu2404-rtx4090", "linux-debian12-cpu-container", Backend.CPU),
        ("linux-arch-rx9070xt", "macos15-m3max", Backend.MPS),
        ("linux-debian12-cpu-container", "windows11-arc-b580", Backend.XPU),
        ("macos15-m3max", "windows10-rx580", Backend.DIRECTML),
        ("windows10-rx580", "linux-ubuntu2404-rtx4090", Backend.CUDA),
    ],
)
def test_other_hardware_gets_the_plan_of_its_own_backend(there, here, backend):
    """Elsewhere the configuration is planned anew, for the GPU that is there, and says what changed."""
    exported, machine = config(there), detect(ReplayHost(load(here))).machine
    way = choose_approach(exported, machine, load_catalog())
    assert way.plan is None
    assert way.differs
    plan = make_plans(machine, load_catalog(), way.request).choice
    assert plan.backend is backend
    assert any("backend" in line for line in texts(plan_changes(exported, plan, None)))


def test_a_configuration_finds_the_environment_that_it_was_exported_from(tmp_path, monkeypatch):
    """Also one that the user had before, beside another that was made for such a plan; once it is gone, none."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    folders = [shared_environments_folder() / "env", tmp_path / "project" / ".venv"]
    made, exported = (
        change(ENVIRONMENT, path=str(folder), python=str(interpreter(folder)), kernel=f"kernel-{place}")
        for place, folder in enumerate(folders)
    )
    for folder, environment in zip(folders, (made, exported), strict=True):
        venv.create(folder)
        register_kernel(PLAN, environment)
    write_marker(folders[0], PLAN, made)
    setup = Setup(machine=MACHINE, plan=PLAN, environment=exported, report=REPORT, lock=LOCK)
    config = read_config(config_text(setup))
    assert str(tmp_path) not in config_text(setup)
    assert find_exported_environment(config, "", made.path) == folders[1]
    shutil.rmtree(folders[1])
    assert find_exported_environment(config, "", made.path) is None
    elsewhere = change(config, environment=change(config.environment, kernel=None))
    assert find_exported_environment(elsewhere, "", "") == folders[0]


def test_a_recipe_is_planned_anew_as_that_recipe():
    """On another card, too, it keeps to what the recipe needs."""
    exported = config("linux-ubuntu2404-rtx4090")
    exported = change(exported, plan=change(exported.plan, recipe="invokeai"))
    machine = detect(ReplayHost(load("linux-ubuntu2404-rx7900xtx"))).machine
    assert choose_approach(exported, machine, load_catalog()).request.bundle == "invokeai"


def test_who_chose_the_cpu_beside_a_gpu_gets_the_cpu_again():
    """A plan that was not the best then was meant."""
    machine = detect(ReplayHost(load("linux-arch-rx9070xt"))).machine
    way = choose_approach(config("linux-ubuntu2404-rtx4090", Backend.CPU), machine, load_catalog())
    assert make_plans(machine, load_catalog(), way.request).choice.backend is Backend.CPU


def test_a_driver_that_is_too_old_now_is_planned_anew():
    """The same GPU behind an older driver does not get a build that it cannot run."""
    exported = config("linux-ubuntu2404-rtx4090")
    way = choose_approach(
        exported, change(exported.machine, nvidia_driver="535.54", cuda_driver_api="12.2"), load_catalog()
    )
    assert way.plan is None
    assert way.request.backend is None


def test_a_machine_that_is_unknown_is_no_error():
    """A configuration on a machine of which nothing is known is planned anew or refused later, in a sentence."""
    assert choose_approach(config("linux-ubuntu2404-rtx4090"), Machine(), load_catalog()).plan is None


def test_hardware_is_the_same_by_system_processor_and_gpus():
    """The order of GPUs says nothing."""
    two = change(MACHINE, gpus=(GPU, change(GPU, name="B")))
    exported = change(config("linux-ubuntu2404-rtx4090"), machine=two)
    assert exported.same_hardware(change(two, gpus=two.gpus[::-1]))
    assert not exported.same_hardware(MACHINE)


def test_another_file_of_the_same_version_is_refused():
    """The lock holds by hash; a package that cannot be had is named."""
    exported = change(config("linux-ubuntu2404-rtx4090"), hashes={"torch": "a" * 64})
    exported = change(exported, environment=change(exported.environment, packages={"torch": "2.6.0"}))
    found = Resolution(lock="", packages=(Package(name="torch", version="2.6.0", url="x", sha256="b" * 64),))
    with pytest.raises(WorkFailed, match="file of the package torch: was aaa"):
        check_lock(exported, found)
    check_lock(change(exported, hashes={"torch": "b" * 64}), found)
    with pytest.raises(WorkFailed, match=r"package torch: 2\.6\.0 is gone"):
        check_lock(exported, Resolution(lock="", packages=()))


def test_a_setup_that_holds_pip_is_exported_with_its_lock(tmp_path):
    """A package may require pip; what is exported names no pip, and is accepted where it is read."""
    packages = tuple(
        Package(name=name, version=ENVIRONMENT.packages[name], url="x", sha256="a" * 64) for name in ("torch", "pip")
    )
    preview = Prepared(plan=PLAN, target=ENVIRONMENT.path, resolution=Resolution(lock=LOCK, packages=packages))
    state = State(
        detected=Detected(detection=DETECTION),
        planned=Planned(planning=Planning(choice=PLAN, plans=(PLAN,))),
        preview=preview,
        installed=Installed(environment=ENVIRONMENT, proof=REPORT),
    ).with_choices(folder=str(tmp_path), purpose="colleague")
    host = ReplayHost(load("linux-ubuntu2404-rtx4090"))  # the Python of that environment does not answer
    write_export(state, Tools(host, Sources(host), lambda _event: None, CancelToken()))
    exported = read_config((tmp_path / "assistant.toml").read_text(encoding="utf-8"))
    assert (tmp_path / "pylock.toml").exists()
    assert exported.hashes.keys() == {"torch"}
    assert "pip" not in exported.environment.packages


def test_plans_differ_in_what_they_install():
    """Backend, variant, versions, index and variables; not reasons."""
    other = change(PLAN, variant="cu130", env={"A": "1"}, reasons=(), index_url=None)
    assert texts(plan_drift(PLAN, other)) == [
        "plan variant: was cu126, is cu130",
        "plan index: was https://download.pytorch.org/whl/cu126, is pip's own",
        "plan A: 1 is new",
        "plan CUDA_MODULE_LOADING: LAZY is gone",
    ]
