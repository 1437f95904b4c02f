"""The diagnose panel: what is offered to one press, what the press does, and what is only told."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from assistant.host.live import LiveHost
from assistant.markup import plain
from assistant.model.event import Step
from assistant.model.finding import Diagnosis, Remedy
from assistant.model.machine import Detection, Gpu, Machine, Vendor
from assistant.model.plan import Backend, Plan
from assistant.model.report import Environment
from assistant.session.actions import Action, Begin, Paste, Wish
from assistant.session.runner import InlineRunner
from assistant.session.session import Session
from assistant.session.state import Outcome, State, Task
from assistant.wizard.panels.diagnose import DiagnosePanel

pytestmark = pytest.mark.process

GONE = """python -c 'import importlib.util as u, sys; sys.exit(u.find_spec("six") is not None)'"""
PLAN = Plan(backend=Backend.ROCM, variant="rocm7.2", torch="2.14.1", python="3.12")
HERE = Machine(os="linux", wsl=False, arch="x86_64", python="3.12", gpus=(Gpu(vendor=Vendor.AMD, name="RX 7900 XTX"),))


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """Make an environment with one small package."""
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "-q", "--python", sys.executable, tmp_path / "env"], check=True)
    python = tmp_path / "env" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    subprocess.run([*uv, "pip", "install", "-q", "--python", python, "six"], check=True)
    return Environment(path=str(tmp_path / "env"), python=str(python))


def state_of(*remedies: Remedy, **fields: object) -> State:
    """Give a setup with one cause and its ways out."""
    cause = Diagnosis(key="cause", title="A cause", cause="It is so.", remedies=remedies)
    return State(detection=Detection(machine=HERE), diagnoses=(cause,), **fields)


def panel_for(dispatch: Callable[[Action], None]) -> DiagnosePanel:
    """Make the panel as the wizard does."""
    panel = DiagnosePanel(dispatch)
    panel.step = Step.DIAGNOSE
    return panel


def panel_of(session: Session) -> DiagnosePanel:
    """Show a session's panel, kept up to date."""
    panel = panel_for(session.dispatch)
    session.watch(lambda _old, new: panel.update(new))
    panel.update(session.state)
    return panel


def test_one_press_mends_and_says_fixed(environment: Environment) -> None:
    """The commands stand above the button; after the press the check's answer stands at the top."""
    way = Remedy(text="Remove six.", commands=("python -m pip uninstall -y six",), check=(GONE,))
    session = Session(LiveHost(), InlineRunner(), state=state_of(way, environment=environment))
    panel = panel_of(session)
    assert "uninstall" in panel.preview.value
    assert environment.python in panel.preview.value
    panel.apply.click()
    assert session.state.mended == {"cause#1": Outcome.FIXED}
    assert "Fixed: Remove six." in panel.body.value
    assert "Uninstalled" in panel.lines.value


def test_a_way_for_the_user_alone_has_no_button(environment: Environment) -> None:
    """What needs sudo is shown to be copied."""
    panel = panel_of(
        Session(
            LiveHost(),
            InlineRunner(),
            state=state_of(Remedy(text="Join.", commands=("sudo usermod -aG render me",)), environment=environment),
        )
    )
    assert "ptsa-hidden" in panel.apply._dom_classes
    assert "sudo usermod" in panel.body.value


def test_a_simulated_machine_offers_plans_alone(environment: Environment) -> None:
    """Nothing can be run for it, whatever is pressed."""
    ways = (Remedy(text="Run.", commands=("python -c pass",)), Remedy(text="Plan.", plan=PLAN))
    session = Session(
        LiveHost(),
        InlineRunner(),
        state=state_of(*ways, environment=environment, machine="linux-arch-rx6700xt-directml"),
    )
    assert [name for _label, name in panel_of(session).fix.options] == ["cause#2"]


def test_a_plan_becomes_the_wish_of_the_plan_step() -> None:
    """The press asks for the plan's backend and Python, and lets the plan step begin."""
    actions: list[object] = []
    panel = panel_for(actions.append)
    panel.update(state_of(Remedy(text="Install the build for this GPU.", plan=PLAN)))
    actions.clear()
    panel.apply.click()
    wish, begin = actions
    assert isinstance(wish, Wish)
    assert (wish.request.backend, wish.request.python) == (Backend.ROCM, "3.12")
    assert begin == Begin(task=Task.PLAN)


def test_a_log_that_nobody_knows_gets_a_report_without_private_things() -> None:
    """What comes nearest is named, and the report has no home folder in it."""
    session = Session(LiveHost(), InlineRunner(), state=State(detection=Detection(machine=HERE)))
    panel = panel_of(session)
    session.dispatch(
        Paste(log="File /home/jane/app.py\nRuntimeError: HIP error: something new\ntoken=hf_abcdefghijklmnop")
    )
    session.begin(Task.DIAGNOSE)
    assert session.state.diagnoses == ()
    assert session.state.near
    assert plain(session.state.near[0]) in panel.body.value
    assert "HIP error: something new" in panel.body.value
    assert "jane" not in session.state.inquiry
    assert "hf_abcdefghijklmnop" not in session.state.inquiry


def test_a_log_from_another_system_runs_nothing_here(environment: Environment) -> None:
    """A Windows log pasted on Linux is told its ways out, and none of them can be pressed."""
    session = Session(LiveHost(), InlineRunner(), state=state_of(environment=environment))
    panel = panel_of(session)
    session.dispatch(Paste(log='OSError: [WinError 126] Error loading "C:\\v\\torch\\lib\\fbgemm.dll"'))
    session.begin(Task.DIAGNOSE)
    assert session.state.elsewhere
    assert session.state.diagnoses
    assert not panel.fix.options
