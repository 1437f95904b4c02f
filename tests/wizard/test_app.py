"""The widgets, without a browser: a recorded machine, tasks run in line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import ipywidgets as widgets
import pytest

from assistant.host.base import Answer, Host
from assistant.model.event import LogLine, Step
from assistant.model.finding import Diagnosis, Finding, Remedy, Severity
from assistant.model.machine import Detection, Gpu, Machine
from assistant.model.plan import Backend, Plan, Planning, Rejection
from assistant.model.record import replace
from assistant.model.report import Check, Environment, Report, Status
from assistant.session.runner import InlineRunner
from assistant.session.session import Session
from assistant.session.state import Phase, Show, State, StepStatus, Task
from assistant.wizard.app import SetupWizard

HOSTILE = '<img src=x onerror="alert(1)"><script>alert(2)</script>'
MACHINE = "linux-arch-rx6700xt-directml"


class NoHost(Host):
    """A machine that answers nothing: whatever is seen comes from the recording."""

    def ask(self, kind: str, *arguments: str) -> Answer:  # noqa: ARG002
        """Answer that it was never asked."""
        return Answer(status="unrecorded")


@pytest.fixture
def wizard() -> Iterator[SetupWizard]:
    """Give a wizard on a recorded machine."""
    shown = SetupWizard(Session(NoHost(), InlineRunner(), state=State(machine=MACHINE)))
    yield shown
    shown.close()


def html_of(widget: widgets.Widget) -> str:
    """Gather all HTML below a widget."""
    own = widget.value if isinstance(widget, widgets.HTML) else ""
    return own + "".join(html_of(child) for child in getattr(widget, "children", ()))


def test_the_wizard_says_the_same_in_every_run(wizard: SetupWizard) -> None:
    """A notebook that shows it compares equal to its last execution."""
    assert repr(wizard) == "SetupWizard()"


def test_a_recorded_machine_is_detected_and_planned_for(wizard: SetupWizard) -> None:
    """Two presses lead from the recording to a ROCm plan, and a third is refused with a reason."""
    wizard.session.begin(Task.DETECT)
    assert "RX 6700 XT" in html_of(wizard)
    wizard.main.click()
    assert wizard.stepper.current == "plan"
    assert "ROCM" in html_of(wizard)
    assert wizard.main.disabled
    assert "nothing can be installed" in wizard.why.value


def test_a_fact_can_be_set_and_taken_back(wizard: SetupWizard) -> None:
    """What the user sets replaces what was found, is marked as his, and can be taken back."""
    wizard.session.begin(Task.DETECT)
    fact = wizard._panels[Step.DETECT].fact
    fact.value = "gpus[0].gfx=gfx1100"
    wizard.session.begin(Task.DETECT)
    assert "set by you" in html_of(wizard)
    assert wizard.session.state.detection.machine.gpus[0].gfx == "gfx1100"
    fact.value = "gpus[0].gfx="
    wizard.session.begin(Task.DETECT)
    assert wizard.session.state.detection.machine.gpus[0].gfx == "gfx1031"


def test_a_fact_that_does_not_exist_is_named(wizard: SetupWizard) -> None:
    """A slip of the pen becomes a sentence in the panel."""
    wizard.session.begin(Task.DETECT)
    wizard._panels[Step.DETECT].fact.value = "nvidia_drivr=580"
    wizard.session.begin(Task.DETECT)
    assert "nvidia_drivr" in html_of(wizard)


def test_a_click_on_a_step_shows_it(wizard: SetupWizard) -> None:
    """The stepper's message leads back, and nothing is lost."""
    wizard.session.begin(Task.DETECT)
    wizard.main.click()
    wizard.stepper._handle_custom_msg({"show": "detect"}, [])
    assert wizard.stepper.current == "detect"
    assert wizard.session.state.planning is not None


def test_a_message_that_names_no_step_changes_nothing(wizard: SetupWizard) -> None:
    """A front end of another version cannot break the wizard."""
    before = wizard.session.state
    for message in ({}, {"show": "nowhere"}, {"show": 3}, "text"):
        wizard.stepper._handle_custom_msg(message, [])
    assert wizard.session.state == before


def test_a_pasted_log_is_diagnosed(wizard: SetupWizard) -> None:
    """A log pasted at any time after detection gets its cause and a way out; an unknown one says so."""
    wizard.session.begin(Task.DETECT)
    wizard.session.dispatch(Show(step=Step.DIAGNOSE))
    panel = wizard._panels[Step.DIAGNOSE]
    panel.log.value = "OSError: libd3d12.so: cannot open shared object file: No such file or directory"
    panel.find.click()
    assert wizard.session.state.diagnoses[0].key == "directml-on-native-linux"
    assert "ptsa-way" in html_of(wizard)
    panel.log.value = "all is well"
    panel.find.click()
    assert wizard.session.state.diagnoses == ()


def test_hostile_text_is_shown_as_text() -> None:
    """Whatever comes from outside is escaped wherever it is shown."""
    plan = Plan(
        backend=Backend.CPU,
        variant=HOSTILE,
        torch=HOSTILE,
        python="3.12",
        requirements=(HOSTILE,),
        reasons=(HOSTILE,),
        warnings=(HOSTILE,),
        env={HOSTILE: HOSTILE},
    )
    finding = Finding(
        key="x", severity=Severity.ERROR, text=HOSTILE, remedies=(Remedy(text=HOSTILE, commands=(HOSTILE,)),)
    )
    machine = Machine(
        os_version=HOSTILE, container=HOSTILE, gpus=(Gpu(name=HOSTILE, gfx=HOSTILE),), packages={HOSTILE: HOSTILE}
    )
    failed = StepStatus(phase=Phase.FAILED, message=HOSTILE, hint=HOSTILE)
    state = State(
        detection=Detection(machine=machine, findings=(finding,)),
        findings=(finding,),
        planning=Planning(
            choice=plan,
            plans=(plan,),
            rejected=(Rejection(backend=Backend.CUDA, variant=HOSTILE, why=HOSTILE, would_help=HOSTILE),),
        ),
        environment=Environment(path=HOSTILE, python=HOSTILE, kernel=HOSTILE),
        report=Report(device=HOSTILE, checks=(Check(key=HOSTILE, status=Status.WRONG, detail=HOSTILE),)),
        exported=(HOSTILE,),
        diagnoses=(Diagnosis(key="x", title=HOSTILE, cause=HOSTILE, evidence=(HOSTILE,), remedies=finding.remedies),),
        log=(LogLine(step=Step.INSTALL, text=HOSTILE).text,),
        statuses=dict.fromkeys(Step, failed),
    )
    shown = SetupWizard(Session(NoHost(), InlineRunner(), state=state))
    for step in Step:
        shown.session.dispatch(Show(step=step))
        text = html_of(shown)
        assert "&lt;img" in text
        assert "<img" not in text
        assert "<script" not in text
    shown.close()


def test_a_finished_installation_names_its_kernel() -> None:
    """The user learns where the environment is and under which name JupyterLab offers it."""
    done = StepStatus(phase=Phase.DONE)
    environment = Environment(path="/somewhere/env", python="/somewhere/env/bin/python", kernel="torch-cpu-2.13.0")
    state = State(current=Step.INSTALL, environment=environment, statuses={Step.INSTALL: done})
    shown = SetupWizard(Session(NoHost(), InlineRunner(), state=state))
    assert "/somewhere/env" in html_of(shown)
    assert "torch-cpu-2.13.0" in html_of(shown)
    shown.close()


def test_exported_files_are_offered_as_downloads(tmp_path: Path) -> None:
    """The link holds the file's content; a file that is gone is named with the reason."""
    (tmp_path / "report.md").write_text("# Report & more")
    state = State(
        current=Step.EXPORT,
        exported=(str(tmp_path / "report.md"), str(tmp_path / "gone.md")),
        statuses={Step.EXPORT: StepStatus(phase=Phase.DONE)},
    )
    shown = SetupWizard(Session(NoHost(), InlineRunner(), state=replace(state)))
    text = html_of(shown)
    assert 'download="report.md"' in text
    assert "# Report &amp; more" in text
    assert "gone.md" in text
    shown.close()
