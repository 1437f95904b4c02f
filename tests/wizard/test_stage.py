"""What the setup's page shows and its footer offers in each state."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import ipywidgets as widgets
import pytest
from loopback import LoopbackIndex
from runners import InlineRunner, wizard_on
from tables import each

from assistant.host.base import ReplayHost
from assistant.host.live import LiveHost
from assistant.i18n import render, use_language
from assistant.install import Prepared, Resolution
from assistant.machines import load
from assistant.model.errors import Cancelled
from assistant.model.finding import Finding, Severity
from assistant.model.machine import Detection, Machine
from assistant.model.plan import KERNEL_TARGET, Backend, Plan, Planning
from assistant.model.record import replace, to_json
from assistant.model.report import Check, Environment, Part, Progress, Report, Status, Step
from assistant.session.actions import Answer, Asked, Begin, Failed, Finished, Show, reduce
from assistant.session.session import Session
from assistant.session.state import (
    Choices,
    Detected,
    Exported,
    Installed,
    Page,
    Phase,
    Planned,
    Result,
    Stage,
    State,
    StepStatus,
    Task,
    Verified,
    find_stage,
)
from assistant.wizard.app import SetupWizard
from assistant.wizard.head import OpenNotebook, draw_progress, use_kernel
from assistant.wizard.panels.base import busy_footer
from assistant.wizard.panels.choice import draw_ready_to_install, draw_why
from assistant.wizard.panels.export import find_file
from assistant.wizard.panels.install import draw_commands, draw_done, draw_failed, draw_pack, draw_restart_warning
from assistant.wizard.panels.setup import SetupPage
from assistant.wizard.shared_widgets import Details, Foot

PLAN = Plan(backend=Backend.CPU, variant="cpu", torch="2.13.0", python="3.12")
FOUND = Detected(detection=Detection(machine=Machine(os="linux")))
PLANNED = Planned(planning=Planning(choice=PLAN, plans=(PLAN,)))
MADE = Installed(environment=Environment(path="/env", python="/env/bin/python"))
PROVED = Verified(report=Report(device="cpu", checks=(Check(key="matmul", status=Status.PASSED, error=0.0),)))
RESOLVED = Prepared(plan=PLAN, target="/env", resolution=Resolution(lock="", packages=()))
PREPARED = "linux-ubuntu2404-rtx4090"


@pytest.fixture
def page() -> Iterator[SetupPage]:
    """Give the setup's page; it is asked what it would offer, and nothing is drawn."""
    host = ReplayHost(load(PREPARED))
    made = SetupPage(Session(host, InlineRunner()))
    yield made
    made.close()


def after(*tasks: tuple[Task, Result], machine: str = "") -> State:
    """Give the state after tasks that ended well."""
    state = State(machine=machine)
    for task, result in tasks:
        begun = replace(state, running=task)
        state = reduce(begun, Finished(task=task, result=result))
    return state


def html_of(widget: widgets.Widget) -> str:
    """Gather all HTML that stands below a widget, without what is folded away."""
    own = widget.value if isinstance(widget, widgets.HTML) and not isinstance(widget, Details) else ""
    return own + "".join(html_of(child) for child in getattr(widget, "children", ()))


PLANNED_FOR = ((Task.DETECT, FOUND), (Task.PLAN, PLANNED))
WHOLE = (*PLANNED_FOR, (Task.INSTALL, MADE), (Task.VERIFY, PROVED))


def test_the_five_views_follow_from_the_state() -> None:
    """Looking until there is a plan, ready to agree, working, done with a report, failed with a way to try again."""
    assert find_stage(State()) is Stage.LOOKING
    assert find_stage(after((Task.DETECT, FOUND))) is Stage.LOOKING
    assert find_stage(after(*PLANNED_FOR)) is Stage.READY
    assert find_stage(replace(after(*PLANNED_FOR), running=Task.PREPARE)) is Stage.READY
    assert find_stage(replace(after(*PLANNED_FOR), running=Task.INSTALL)) is Stage.WORKING
    assert find_stage(after(*WHOLE[:3])) is Stage.READY  # the verification begins at once
    assert find_stage(after(*WHOLE)) is Stage.DONE
    assert find_stage(replace(after(*WHOLE), running=Task.VERIFY)) is Stage.WORKING


@pytest.mark.parametrize("step", [Step.DETECT, Step.PLAN, Step.INSTALL, Step.VERIFY])
def test_what_failed_can_be_tried_again(step: Step, page: SetupPage) -> None:
    """The main button says so and does it; beside it the cause can be looked for."""
    state = reduce(replace(after(*WHOLE), preview=RESOLVED), Failed(step=step, message="No."))
    assert find_stage(state) is Stage.FAILED
    offered = page.footer(state)
    assert offered.label == "Try again"
    assert offered.actions == (Begin(task=Task(step.value)),)
    assert offered.others[0].actions == (Show(page=Page.WRONG), Begin(task=Task.DIAGNOSE))


def test_packages_that_cannot_be_resolved_are_no_failed_installation(page: SetupPage) -> None:
    """The page stays at the plan, says why, and offers to resolve them again."""
    state = reduce(after(*PLANNED_FOR), Failed(step=Step.INSTALL, message="No."))
    assert find_stage(state) is Stage.READY
    offered = page.footer(state)
    assert (offered.label, offered.actions) == ("Try again", (Begin(task=Task.PREPARE),))
    assert [other.label for other in offered.others] == ["Find the cause"]


@pytest.mark.process
def test_an_index_that_is_down_leaves_the_plan_and_another_way(
    tmp_path: Path, loopback_index: LoopbackIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real resolver asks a closed port, in a notebook that forces colours: one sentence, and a button that helps."""
    loopback_index.add("ipykernel", "7.0")
    loopback_index.add("torch", "2.13.0")
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    variables = {"FORCE_COLOR": "1", "PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": loopback_index.url}
    variables |= {"UV_DEFAULT_INDEX": loopback_index.url, "UV_HTTP_RETRIES": "0"}
    for name, value in {**variables, "UV_CACHE_DIR": str(tmp_path / "cache")}.items():
        monkeypatch.setenv(name, value)
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    down = replace(PLAN, python=python, index_url="http://127.0.0.1:9/simple", requirements=("torch==2.13.0",))
    planned = Planned(planning=Planning(choice=down, plans=(down,)))
    state = replace(
        after((Task.DETECT, FOUND), (Task.PLAN, planned)),
        choices=replace(after((Task.DETECT, FOUND), (Task.PLAN, planned)).choices, target=str(tmp_path / "env")),
    )
    shown = wizard_on(Session(LiveHost(), InlineRunner(), state=state, guided=True))
    shown.session.begin(Task.PREPARE)
    state = shown.session.state
    assert find_stage(state) is Stage.READY
    why = "The package index cannot be reached: http://127.0.0.1:9/simple/torch/: Connection refused"
    assert why in html_of(shown)
    assert "Nothing was installed" not in html_of(shown)
    assert why in shown.foot.status
    assert "\x1b" not in to_json(state) + "".join(map(render, state.failures))
    assert [label for _name, label, able in shown.foot.buttons if able] == [
        "Try again",
        "Take PyPI's build and its several GB of CUDA",
        "Find the cause",
    ]
    shown.close()


def test_nothing_is_installed_before_the_packages_are_resolved(page: SetupPage) -> None:
    """The button waits, and says for what."""
    offered = page.footer(replace(after(*PLANNED_FOR), running=Task.PREPARE))
    assert (offered.label, offered.able, offered.actions) == ("Install", False, ())
    assert "package" in render(offered.note)


def test_a_simulation_stops_before_the_installation(page: SetupPage) -> None:
    """The reason stands beside the button."""
    offered = page.footer(after(*PLANNED_FOR, machine="some"))
    assert not offered.able
    assert "simulation" in render(offered.note)


def test_the_end_is_a_beginning(page: SetupPage) -> None:
    """The main button opens a notebook on the new kernel."""
    assert page.footer(after(*WHOLE)).actions == (OpenNotebook(made=MADE.environment, plan=PLAN),)


def test_a_stale_installation_is_offered_again() -> None:
    """After another answer the page is that of the choice, whatever stands from before."""
    state = after(*WHOLE)
    statuses = {**state.statuses, Step.INSTALL: StepStatus(phase=Phase.STALE)}
    assert find_stage(replace(state, statuses=statuses)) is Stage.READY


def test_while_something_runs_only_cancel_is_offered() -> None:
    """The main button waits, and a press on it does nothing."""
    offered = busy_footer(reduce(State(), Begin(task=Task.DETECT)))
    assert (offered.cancel, offered.able, offered.actions) == (True, False, ())


def test_a_question_of_a_running_task_is_answered_by_the_main_button() -> None:
    """Yes goes on, Cancel takes back; the question is gone with the answer."""
    state = reduce(reduce(State(), Begin(task=Task.DETECT)), Asked(question="Keep it?"))
    assert busy_footer(state).cancel
    assert busy_footer(state).actions == (Answer(yes=True),)
    assert str(reduce(state, Answer(yes=True)).question) == ""


@each("step", [Step.DETECT, Step.PLAN])
def test_what_was_cancelled_is_not_called_impossible(step: Step) -> None:
    """Nobody is told that there is no PyTorch, nor sent to look for a cause, because he pressed Cancel."""
    end = Failed(step=step, message="Cancelled.", exit_code=Cancelled.exit_code)
    state = reduce(replace(after(*PLANNED_FOR), running=Task(step.value)), end)
    made = SetupPage(Session(ReplayHost(load(PREPARED)), InlineRunner(), state=state))
    offered = made.footer(state)
    made.close()
    assert "<h2" in (drawn := str(draw_failed(state)))
    assert "No PyTorch" not in drawn
    assert "could not" not in drawn
    assert (offered.label, offered.others) == ("Try again", ())


def test_a_kernel_that_runs_the_old_torch_is_to_be_restarted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where its own environment was changed after it had imported torch, and nowhere else."""
    monkeypatch.setitem(sys.modules, "torch", object())
    assert "restart it" in str(draw_restart_warning(State(choices=Choices(target=KERNEL_TARGET))))
    assert str(draw_restart_warning(State(choices=Choices(target="/env")))) == ""
    monkeypatch.delitem(sys.modules, "torch")
    assert str(draw_restart_warning(State(choices=Choices(target=KERNEL_TARGET)))) == ""


def test_a_step_of_the_receipt_keeps_its_seconds(page: SetupPage) -> None:
    """What is done has a tick and its time, what runs shows the figures of the one progress, what comes waits."""
    state = after(*PLANNED_FOR).with_status(Step.PLAN, StepStatus(phase=Phase.DONE, seconds=1.25))
    for part in (Part.DOWNLOAD, Part.UNPACK, Part.CHECK):
        progress = Progress(step=Step.INSTALL, text="", done=3, total=12, unit="checks", part=part)
        running = StepStatus(phase=Phase.RUNNING, progress=progress)
        page.follow(replace(state.with_status(Step.INSTALL, running), running=Task.INSTALL))
        time.sleep(0.06)
    shown = page.lead.value
    assert "1.2 s" in shown
    signs = re.findall(r'<li class="ptsa-phase-(\w+)"', shown) or re.findall(r"ptsa-phase-(\w+)", shown)
    assert signs == ["ok", "ok", "ok", "ok", "running", "waiting"]
    assert shown.count('data-shows="figures"') == 1
    assert len(re.findall(r"\d\.\d s<", shown)) == 3


def test_each_check_is_a_square_that_turns_green(page: SetupPage) -> None:
    """One that found something is of another kind; the browser, told by the foot, makes the others green."""
    progress = Progress(step=Step.INSTALL, text="", done=3, total=12, unit="checks", part=Part.CHECK)
    odd = Finding(key="verify.device", severity=Severity.ERROR, text="No.")
    state = after(*PLANNED_FOR).with_status(Step.INSTALL, StepStatus(phase=Phase.RUNNING, progress=progress))
    page.follow(replace(state, running=Task.INSTALL, reported=(odd,)))
    assert re.findall('<i class="(.*?)"', page.aside.value) == ["ptsa-odd"]
    assert page.aside.value.count("<i") == 12
    foot, drawn = Foot(), page.aside.value
    for part, done in ((Part.CHECK, 0.25), (Part.REGISTER, 1)):
        at = replace(progress, part=part, unit="checks" if part is Part.CHECK else "")
        status = StepStatus(phase=Phase.RUNNING, progress=at)
        draw_progress(foot, replace(state.with_status(Step.INSTALL, status), running=Task.INSTALL), 0)
        assert foot.progress["checks"] == done
    assert page.aside.value == drawn


def test_a_check_without_time_enough_does_not_spoil_a_setup_that_works() -> None:
    """On a busy machine the compiler takes longer than a minute: that was told as a failure."""
    late = Check(key="compile", status=Status.TIMEOUT, detail="It did not end.\nFile x.py, line 1\nFile y.py, line 2")
    report = replace(PROVED.report, checks=(*PROVED.report.checks, late))
    state = after(*WHOLE[:3], (Task.VERIFY, Verified(report=report)))
    shown = str(draw_done(state))
    assert "PyTorch works on your" in shown
    assert "not finished in time: Compile with torch.compile" in shown
    assert "failed" not in shown
    stuck = replace(report, checks=(*report.checks, replace(late, key="attention"), replace(late, key="conv1d")))
    assert not stuck.usable  # three in a row: the device hangs


def test_what_was_done_is_ticked(page: SetupPage) -> None:
    """A first notebook, packages, a saved configuration: each card has a tick once that is done, and not before."""
    state = after(*WHOLE)
    page.session.state = state
    page.follow(state)
    assert "ptsa-light-good" not in page.done.next.value
    page.note(page.footer(state).actions[0])
    assert page.done.next.value.count("ptsa-light-good") == 1
    page.follow(replace(state, exported=Exported(files=("a",))))
    assert page.done.next.value.count("ptsa-light-good") == 2


def test_a_chinese_page_offers_jupyterlabs_chinese() -> None:
    """As a command to copy, for the server's own Python; nothing of it is there in English."""
    state = after(*WHOLE)
    pythons = {"kernel": "/k/bin/python", "server": "/s/bin/python"}
    state = replace(state, detected=replace(state.detected, pythons=pythons))
    assert draw_pack(state) == ""
    use_language("zh_CN")
    try:
        command = "/k/bin/python -m uv pip install --python /s/bin/python jupyterlab-language-pack-zh-CN"
        assert f'data-copy="{command}"' in draw_pack(state)
    finally:
        use_language("en")


def test_the_notebook_that_asked_goes_on_with_what_was_made() -> None:
    """Its kernel is changed by one press; where the page is not beside a notebook, a first one is opened."""
    made = Installed(environment=Environment(path="/env", python="/env/bin/python", kernel="pt"), proof=PROVED.report)
    state = after(*WHOLE[:2], (Task.INSTALL, made))
    for failed in (True, False):
        page = SetupPage(Session(LiveHost(), InlineRunner(), state=State(failed_cell=failed)))
        offered = page.footer(state)
        names = [offered.label, *(other.label for other in offered.others)]
        assert ("Use it in this notebook" in names) is failed
        assert offered.actions[0] == use_kernel("pt") if failed else isinstance(offered.actions[0], OpenNotebook)
        assert str(offered.note).endswith(".")
        page.close()


def test_a_notebook_that_got_its_kernel_is_said_to_have_it() -> None:
    """Nothing else on the page changes by the press; where no page takes it, what to do by hand is said."""
    made = Installed(environment=Environment(path="/env", python="/env/bin/python", kernel="pt"), proof=PROVED.report)
    state = replace(after(*WHOLE[:2], (Task.INSTALL, made)), failed_cell=True)
    wizard = SetupWizard(Session(LiveHost(), InlineRunner(), state=state))
    wizard.press("main")
    assert "Run the cell again" in str(wizard.foot.note)
    wizard.foot._handle_custom_msg({"refused": "ptsa-use-kernel"}, [])
    assert "Change Kernel" in str(wizard.foot.note)
    wizard.close()


def test_the_commands_come_with_the_file_that_they_install(page: SetupPage) -> None:
    """It is sent when its link is pressed; an environment that was there before is no folder of its own."""
    state = replace(after(*PLANNED_FOR), preview=replace(RESOLVED, resolution=Resolution(lock="# x", packages=())))
    assert 'data-file="pylock.toml"' in str(draw_commands(state))
    assert find_file(state, "pylock.toml") == ("pylock.toml", b"# x")
    assert find_file(after(*PLANNED_FOR), "pylock.toml") is None
    page.changes.fold.unfolded = True
    page.follow(replace(state, choices=Choices(target="/old/env")))
    assert (page.changes.where.label, page.changes.target.value) == ("In the folder below", "/old/env")


def test_one_download_has_one_size() -> None:
    """The sentence, the card of the build and the list of commands say the same, also before packages are resolved."""
    state = after(*PLANNED_FOR)
    plans = (replace(PLAN, download_mb=2680), replace(PLAN, torch="2.0.0", backend=Backend.CPU, download_mb=207))
    planned = Planned(planning=Planning(choice=plans[0], plans=plans))
    state = replace(state, planned=planned)
    assert str(draw_ready_to_install(state)).count("2.7 GB") == 2
    exact = replace(RESOLVED, download=79_000_000)
    state = replace(state, preview=exact)
    shown = str(draw_ready_to_install(state)) + str(draw_commands(state)) + str(draw_why(planned.planning, plans[0]))
    assert shown.count("79 MB") == 3
    assert "2680" not in shown
    assert "2.7 GB" not in shown
