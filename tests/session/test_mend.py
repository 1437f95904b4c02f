"""Remedies that are applied for real, in a real environment, by the session's own job."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from install.broken import BrokenEnvironment
from loopback import LoopbackIndex
from runners import InlineRunner

from assistant.host.live import LiveHost
from assistant.install import ChangeRequest, Site, Sources
from assistant.install.site import Distribution
from assistant.model.finding import Diagnosis, Finding, Interpreter, Remedy, Severity
from assistant.model.machine import Detection, Machine
from assistant.model.record import replace
from assistant.model.report import Environment, Step
from assistant.session.actions import Mend, Pick, blockers
from assistant.session.remediation import all_fixes, requested_change, runnable_commands
from assistant.session.session import Runner, Session, ThreadRunner
from assistant.session.state import (
    Detected,
    Diagnosed,
    Environments,
    EnvironmentSummary,
    Installed,
    Outcome,
    Phase,
    Source,
    State,
    Survey,
    Task,
)

pytestmark = pytest.mark.process

ENVIRONMENT = Environment(path="/env", python="/env/bin/python", kernel="torch")
GONE = """python -c 'import importlib.util as u, sys; sys.exit(u.find_spec("six") is not None)'"""
NOWHERE = Source()
LINUX = Detection(machine=Machine(os="linux"))


@pytest.fixture(scope="module")
def real(large_folder: Callable[[str], Path]) -> Environment:
    """Make an environment with one small package, without pip, as uv makes them."""
    folder = large_folder("mend") / "an environment"
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "-q", "--python", sys.executable, folder], check=True)
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    subprocess.run([*uv, "pip", "install", "-q", "--python", python, "six"], check=True)
    return Environment(path=str(folder), python=str(python))


def state_with(
    remedy: Remedy,
    environment: Environment | None = ENVIRONMENT,
    source: Source = NOWHERE,
    found: Detection = LINUX,
    **fields: object,
) -> State:
    """Return a setup whose diagnosis has one remedy."""
    cause = Diagnosis(key="cause", title="A cause", cause="It is so.", remedies=(remedy,))
    return State(
        detected=Detected(detection=found),
        diagnosed=Diagnosed(diagnoses=(cause,), source=source),
        installed=Installed(environment=environment) if environment else None,
        **fields,
    )


def mended(remedy: Remedy, environment: Environment, runner: Runner | None = None) -> Session:
    """Choose the remedy and begin."""
    session = Session(LiveHost(), runner or InlineRunner(), state=state_with(remedy, environment))
    session.dispatch(Mend(way="cause#1"))
    session.begin(Task.MEND)
    return session


@pytest.mark.parametrize(
    ("command", "start"),
    [
        ('python -m pip install "numpy<2"', ["pip", "install", "--python", "/env/bin/python", "numpy<2"]),
        ("python -m pip uninstall -y torch", ["pip", "uninstall", "--python", "/env/bin/python", "torch"]),
        ("python -m pip install --no-cache-dir torch", ["pip", "install", "--python", "/env/bin/python", "--no-cache"]),
    ],
)
def test_pip_is_uv_in_the_environment(command: str, start: list[str]) -> None:
    """The environment of the setup is meant, which may have no pip; quoted words stay one word."""
    (words,) = runnable_commands(Remedy(text="x", commands=(command,)), ENVIRONMENT) or ()
    assert list(words[1 : len(start) + 1]) == start


@pytest.mark.parametrize(
    "command",
    [
        "sudo usermod -aG render me",
        "python -m pip install torch | tee log",
        "python -m pip install torch > log",
        "python -m pip install $PACKAGE",
        "python -m pip install `cat list`",
        "python -m pip install torch; rm -rf /",
        "python -m pip install torch && reboot",
        "export X=1",
        "X=1 python -m pip install torch",
        "set TEMP=D:\\tmp",
        "%pip install torch",
        "rm -rf /",
        "wsl --update",
        "python -m pip install 'torch",
        "python other.py",
    ],
)
def test_what_wants_a_shell_or_more_rights_is_not_run(command: str) -> None:
    """Such a command is shown to be copied, and so is a way of which one command is such."""
    assert runnable_commands(Remedy(text="x", commands=(command,)), ENVIRONMENT) is None
    assert runnable_commands(Remedy(text="x", commands=("python -m pip install six", command)), ENVIRONMENT) is None


def test_nothing_runs_on_a_simulated_machine_elsewhere_or_without_an_environment() -> None:
    """There the ways out are words."""
    remedy = Remedy(text="x", commands=("python -m pip install six",))
    assert all_fixes(state_with(remedy))["cause#1"].offered
    assert not all_fixes(state_with(remedy, machine="wsl-ubuntu2404-rx7900xtx"))["cause#1"].offered
    assert not all_fixes(state_with(remedy, source=Source(elsewhere=True)))["cause#1"].offered
    assert not all_fixes(state_with(remedy, environment=None))["cause#1"].offered
    session = Session(LiveHost(), InlineRunner(), state=state_with(remedy, machine="macos15-m3max", way="cause#1"))
    session.begin(Task.MEND)
    assert session.state.mended == {}
    assert blockers(session.state, Task.MEND)


def test_a_way_out_is_carried_out_and_its_check_says_fixed(real: Environment) -> None:
    """A package is removed from the environment by the job, and the log tells what changed."""
    session = mended(Remedy(text="Remove it.", commands=("python -m pip uninstall -y six",), check=(GONE,)), real)
    assert session.state.mended["cause#1"].outcome is Outcome.FIXED
    assert session.state.status(Step.DIAGNOSE).phase is Phase.DONE
    assert any("six" in line and "is removed" in line for line in map(str, session.state.log))


def test_a_check_that_fails_says_not_fixed(real: Environment) -> None:
    """What ran well need not have helped."""
    session = mended(Remedy(text="x", commands=("python -c pass",), check=("python -c 'import nothing_such'",)), real)
    assert session.state.mended["cause#1"].outcome is Outcome.NOT_FIXED


def test_without_a_check_it_is_only_done(real: Environment) -> None:
    """Nothing is claimed that nobody looked at."""
    done = mended(Remedy(text="x", commands=("python -c pass",)), real).state.mended["cause#1"]
    assert (done.outcome, done.text) == (Outcome.DONE, "x")


def test_a_command_that_fails_is_a_sentence(real: Environment) -> None:
    """The step fails with the command and its exit code, and nothing counts as mended."""
    session = mended(Remedy(text="x", commands=("python -c 'raise SystemExit(7)'",)), real)
    status = session.state.status(Step.DIAGNOSE)
    assert status.phase is Phase.FAILED
    assert "7" in str(status.message)
    assert session.state.mended == {}


def test_it_can_be_cancelled(real: Environment) -> None:
    """The job ends with its child, long before the child would."""
    session = mended(Remedy(text="x", commands=("python -c 'import time; time.sleep(300)'",)), real, ThreadRunner())
    while not session.state.log:  # the child is named once it is being started
        time.sleep(0.02)
    session.cancel()
    while session.state.running:
        time.sleep(0.02)
    assert session.state.status(Step.DIAGNOSE).phase is Phase.FAILED


def test_variables_go_into_the_kernel(real: Environment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The environment's kernel starts with them from then on, beside those that it had; the check sees them too."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path))
    spec = tmp_path / "kernels" / "torch" / "kernel.json"
    spec.parent.mkdir(parents=True)
    spec.write_text(json.dumps({"argv": [real.python], "env": {"A": "1"}}))
    check = """python -c 'import os; assert os.environ["PYTORCH_ENABLE_MPS_FALLBACK"] == "1"'"""
    environment = Environment(path=real.path, python=real.python, kernel="torch")
    session = mended(Remedy(text="x", env={"PYTORCH_ENABLE_MPS_FALLBACK": "1"}, check=(check,)), environment)
    assert session.state.mended["cause#1"].outcome is Outcome.FIXED
    assert json.loads(spec.read_text())["env"] == {"A": "1", "PYTORCH_ENABLE_MPS_FALLBACK": "1"}


def test_the_environment_that_the_log_names_is_mended_and_no_other(real: Environment, tmp_path: Path) -> None:
    """A log of a program with an environment of its own: that one is changed, or, where it is not here, none."""
    remedy = Remedy(text="Remove it.", commands=("python -m pip uninstall -y six",))
    there = Source(interpreter=Interpreter(path=real.python))
    gone = Source(interpreter=Interpreter(path=str(tmp_path / "gone" / "bin" / "python")))
    assert all_fixes(state_with(remedy, source=there))["cause#1"].environment == Environment(
        path=real.path, python=real.python
    )
    assert all_fixes(state_with(remedy, source=gone))["cause#1"].environment is None
    assert not all_fixes(state_with(remedy, source=gone))["cause#1"].offered
    assert all_fixes(state_with(remedy, source=there, environment=None))["cause#1"].offered


@pytest.mark.parametrize(
    ("commands", "wanted"),
    [
        (["install numpy<2"], ChangeRequest(requires=("numpy<2",))),
        (["install new[cuda]"], ChangeRequest(requires=("new[cuda]",))),
        (["install --upgrade six[x] new numpy<2"], ChangeRequest(requires=("six[x]>1.0", "new", "numpy<2"))),
        (["uninstall six gone"], ChangeRequest(removes=("six", "gone"))),
        (["uninstall six gone", "install six"], ChangeRequest(("six",), removes=("gone",), reinstalls=("six",))),
        (["install --reinstall six"], None),
        (["install --no-cache six"], None),
        (["install --find-links wheels six"], None),
    ],
)
def test_commands_of_pip_are_read_as_a_change_of_packages(commands: list[str], wanted: ChangeRequest | None) -> None:
    """What also says how the packages are to come is left to the command itself."""
    six = Distribution(name="six", version="1.0+cpu", place="/env/lib/site-packages")
    site = Site(prefix="/env", base_prefix="/usr", python="/env/bin/python", version="3.12.1", purelib="")
    words = [("uv", "pip", verb, "--python", "/env/bin/python", *rest) for verb, *rest in map(str.split, commands)]
    found = requested_change(words, replace(site, distributions=(six,)))
    assert found == wanted or (found and sorted(found.requires) == sorted(wanted.requires))


@pytest.fixture
def broken(tmp_path: Path, loopback_index: LoopbackIndex, monkeypatch: pytest.MonkeyPatch) -> BrokenEnvironment:
    """Make an environment with two ONNX Runtimes, whose packages come from an index of the test's own."""
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    for name in ("JUPYTER_DATA_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME", "UV_CACHE_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "own" / name))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("UV_DEFAULT_INDEX", loopback_index.url)
    return BrokenEnvironment(loopback_index, tmp_path / "broken")


def at(broken: BrokenEnvironment, index: LoopbackIndex, *commands: str) -> Session:
    """Apply commands to that environment, which the list of environments holds already."""
    environment = Environment(path=str(broken.target), python=str(broken.target / "bin" / "python"))
    survey = Survey(environments=(EnvironmentSummary(path=environment.path, name="broken"),))
    state = state_with(Remedy(text="x", commands=commands), environment, environments=Environments(survey=survey))
    host = LiveHost()
    session = Session(host, InlineRunner(), state=state, sources=Sources(host, index_url=index.url))
    session.dispatch(Mend(way="cause#1"))
    session.begin(Task.MEND)
    return session


ONE_RUNTIME = ("python -m pip uninstall -y onnxruntime onnxruntime-gpu", "python -m pip install onnxruntime")


def test_a_fix_can_be_undone_in_my_environments(broken: BrokenEnvironment, loopback_index: LoopbackIndex) -> None:
    """All of its commands are one change, which the list offers to take back; nothing else is moved."""
    session = at(broken, loopback_index, *ONE_RUNTIME)
    assert session.state.status(Step.DIAGNOSE).phase is Phase.DONE, session.state.status(Step.DIAGNOSE)
    undo = session.state.environments.survey.summary_at(str(broken.target)).undo
    assert {move.name: (move.before, move.after) for move in undo.moves} == {
        "onnxruntime": ("1.20", "1.20"),
        "onnxruntime-gpu": ("1.20", ""),
    }
    session.dispatch(Pick(path=str(broken.target)))
    session.begin(Task.UNDO)
    assert session.state.environments.status.phase is Phase.DONE, session.state.environments.status
    assert Site.ask(broken.target, LiveHost()).versions["onnxruntime-gpu"] == "1.20"


def test_a_fix_that_fails_leaves_the_environment_as_it_was(
    broken: BrokenEnvironment, loopback_index: LoopbackIndex
) -> None:
    """What the first command would have removed is still there when the second finds no package."""
    before = broken.picture()
    session = at(broken, loopback_index, ONE_RUNTIME[0], "python -m pip install onnxruntime==9")
    assert session.state.status(Step.DIAGNOSE).phase is Phase.FAILED
    assert broken.picture() == before


def test_a_fix_that_needs_another_torch_still_brings_it(
    broken: BrokenEnvironment, loopback_index: LoopbackIndex
) -> None:
    """No mending of packages moves torch unasked, so the command itself does; the log says that it stays so."""
    loopback_index.add("torch-directml", "0.2.5", requires=("torch==2.2.1",))
    loopback_index.add("torch", "2.2.1")
    session = at(broken, loopback_index, "python -m pip install torch-directml")
    assert session.state.status(Step.DIAGNOSE).phase is Phase.DONE, session.state.status(Step.DIAGNOSE)
    assert any("cannot be undone later" in str(line) for line in session.state.log)
    assert list(broken.target.glob("lib/*/site-packages/torch_directml-0.2.5.dist-info"))
    assert session.state.environments.survey.summary_at(str(broken.target)).undo is None


def test_after_a_fix_the_environment_is_judged_anew(real: Environment) -> None:
    """What was found before and is gone is said no more; what was found on the machine itself stays."""
    of_machine = Finding(key="proxy-misconfigured", severity=Severity.WARNING, text="The proxy.")
    of_packages = Finding(key="onnxruntime-packages-conflict", severity=Severity.ERROR, text="Two of them.")
    of_kernel = Finding(key="kernel-broken", severity=Severity.WARNING, text="A kernel that can start by now.")
    found = Detection(machine=Machine(os="linux"), findings=(of_machine, of_kernel))
    state = state_with(Remedy(text="x", commands=("python -c pass",)), real, found=found)
    session = Session(LiveHost(), InlineRunner(), state=replace(state, raised=(of_packages,)))
    session.dispatch(Mend(way="cause#1"))
    session.begin(Task.MEND)
    keys = {finding.key for finding in session.state.findings}
    assert keys & {of_machine.key, of_kernel.key, of_packages.key} == {of_machine.key}
