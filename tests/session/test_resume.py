"""Going on with a saved setup."""

from __future__ import annotations

from pathlib import Path

from assistant.model.event import Step
from assistant.model.machine import Detection, Gpu, Machine
from assistant.model.plan import Backend, Plan, Planning
from assistant.model.record import replace
from assistant.model.report import Environment
from assistant.session.resume import furthest, resumable
from assistant.session.state import Phase, Resume, State, StepStatus, reduce

MACHINE = Machine(os="linux", arch="x86_64", python="3.12.4")
PLAN = Plan(backend=Backend.CPU, variant="cpu", torch="2.13.0", python="3.12")
SAVED = State(
    detection=Detection(machine=MACHINE),
    planning=Planning(choice=PLAN, plans=(PLAN,)),
    statuses={step: StepStatus(phase=Phase.DONE) for step in (Step.DETECT, Step.PLAN)},
)


def test_a_setup_of_this_machine_goes_on() -> None:
    """It goes on at the first step that is not done."""
    assert resumable(SAVED, MACHINE)
    assert furthest(SAVED) is Step.INSTALL
    assert reduce(State(), Resume(state=SAVED)) == SAVED


def test_free_disk_and_other_small_change_do_not_matter() -> None:
    """Facts that change by the hour do not make another machine."""
    assert resumable(SAVED, replace(MACHINE, disk_free_gb=1.0))


def test_a_setup_of_another_machine_is_not_offered() -> None:
    """Another GPU, driver or Python is another machine."""
    assert not resumable(SAVED, replace(MACHINE, gpus=(Gpu(name="new"),)))
    assert not resumable(SAVED, replace(MACHINE, nvidia_driver="580"))
    assert not resumable(SAVED, replace(MACHINE, python="3.13.1"))


def test_a_setup_whose_environment_is_gone_is_not_offered(tmp_path: Path) -> None:
    """What was deleted since cannot be gone on with."""
    gone = Environment(path=str(tmp_path), python=str(tmp_path / "bin" / "python"))
    assert not resumable(replace(SAVED, environment=gone), MACHINE)


def test_a_look_or_a_simulation_is_nothing_to_go_on_with() -> None:
    """Neither a mere detection nor a recorded machine is offered."""
    assert not resumable(None, MACHINE)
    assert not resumable(replace(SAVED, planning=None), MACHINE)
    assert not resumable(replace(SAVED, machine="some-machine"), MACHINE)
