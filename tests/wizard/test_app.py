"""The widgets, without a browser: a recorded machine, tasks run in line."""

from __future__ import annotations

import io
import re
import sys
import threading
import zipfile
from collections.abc import Collection, Iterator
from contextvars import ContextVar
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import ipywidgets as widgets
import pytest
from ipywidgets.widgets.widget import _instances
from runners import InlineRunner, NoHost, wait_for, watch, wizard_on
from tables import each

from assistant.host.base import Answer, ReplayHost
from assistant.host.live import LiveHost
from assistant.i18n import _, language
from assistant.install import Package, Prepared, Resolution, Sources
from assistant.machines import load
from assistant.model.finding import Diagnosis, Finding, Remedy, Severity
from assistant.model.machine import Detection, Evidence, Gpu, Machine, Vendor
from assistant.model.plan import Backend, Plan, Planning, Rejection
from assistant.model.record import replace
from assistant.model.report import Check, Environment, LogLine, Progress, Report, Status, Step
from assistant.session.actions import Abandoned, Failed, Paste, Reported, Show, Simulate
from assistant.session.session import Session
from assistant.session.state import (
    Choices,
    Detected,
    Diagnosed,
    Environments,
    EnvironmentSummary,
    Exported,
    Installed,
    Page,
    Phase,
    Planned,
    State,
    StepStatus,
    Survey,
    Task,
    Verified,
)
from assistant.session.store import Store
from assistant.wizard import app, html, open_wizard
from assistant.wizard.app import SetupWizard
from assistant.wizard.panels import PAGES, setup
from assistant.wizard.panels.export import find_file, read_files
from assistant.wizard.panels.setup import Offer
from assistant.wizard.shared_widgets import Details, Foldable

HOSTILE = '<img src=x onerror="alert(1)"><script>alert(2)</script>'
MACHINE = "linux-arch-rx6700xt-directml"


@pytest.fixture
def wizard() -> Iterator[SetupWizard]:
    """Give a wizard on a recorded machine, which was looked at and planned for."""
    shown = wizard_on(Session(NoHost(), InlineRunner(), state=State(machine=MACHINE), guided=True))
    shown.session.begin(Task.DETECT)
    yield shown
    shown.close()


def test_a_second_call_shows_the_wizard_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that is reloaded runs the cell again: it gets the same wizard in the same language."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    first = open_wizard(MACHINE, language="zh_CN")
    assert open_wizard(MACHINE) is first
    assert language() == "zh_CN"
    assert open_wizard(MACHINE, language="en") is first
    assert language() == "en"
    other = open_wizard("windows11-rx7800xt")
    assert other is not first
    assert first.comm is None
    other.session.cancel()
    other.close()


def test_where_no_widget_is_drawn_plain_text_says_what_to_do(wizard: SetupWizard) -> None:
    """It promises nothing that is not so, and leads to the next step: what to install where, or the terminal."""
    text = wizard._repr_mimebundle_()["text/plain"]
    assert "appears here" not in text
    assert text.splitlines()[0] == (
        "If you still see this text after the cell has run, the guided setup cannot be drawn here."
    )
    assert "pip install ipywidgets anywidget" in text
    assert "python -m assistant setup" in text


def html_of(widget: widgets.Widget, hidden: Collection[int] = ()) -> str:
    """Gather all HTML below a widget, every fold opened; what stands at a `hidden` place is out of sight."""
    if isinstance(widget, SetupWizard):
        return html_of(widget.middle, widget.head.hidden)
    for place, child in enumerate(getattr(widget, "children", ())):
        if isinstance(child, Foldable) and place not in hidden:
            child.unfolded = True  # the page then holds what is below it
    own = widget.value if isinstance(widget, widgets.HTML | Details) else ""
    below = enumerate(getattr(widget, "children", ()))
    return own + "".join(html_of(child) for place, child in below if place not in hidden)


def offer_of(shown: SetupWizard) -> Offer:
    """Find the offer to go on with a saved setup."""
    return shown._pages[Page.SETUP].offer


def sent_later(shown: SetupWizard, key: str) -> str:
    """Open a fold whose content is sent then, and give what arrives."""
    sent: list[bytes] = []
    shown.head.send = lambda _content, buffers: sent.extend(buffers)
    shown.head._handle_custom_msg({"file": key, "read": True}, [])
    return sent[0].decode()


def press_on(shown: SetupWizard, key: str) -> None:
    """Press a button of a drawing, by its key."""
    shown.head._handle_custom_msg({"press": key}, [])


def test_the_wizard_says_the_same_in_every_run(wizard: SetupWizard) -> None:
    """A notebook that shows it compares equal to its last execution."""
    assert repr(wizard) == "SetupWizard()"


def changes_of(wizard):
    """Open the fold of what can be changed, and give its controls."""
    changes = wizard._pages[Page.SETUP].changes
    changes.fold.unfolded = True
    return changes


def test_a_release_of_pytorch_can_be_typed(wizard: SetupWizard) -> None:
    """It is planned for; what is no release is refused below its field, and the plan stays."""
    page, before = changes_of(wizard), wizard.session.state.plan
    page.release.value = "nonsense!"
    assert page.box.children[page.box.children.index(page.release) + 1] is page.fault
    assert wizard.session.state.plan == before
    page.release.value = "2.9.1"
    assert wizard.session.state.choices.request.pins == ("torch==2.9.1",)
    page.release.value = ""
    assert wizard.session.state.choices.request.pins == ()


def test_a_folder_on_a_full_disk_is_refused_at_its_field(wizard: SetupWizard, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before Install, not after it: what the home has free says nothing of another disk."""
    page = changes_of(wizard)
    monkeypatch.setattr(LiveHost, "facts", lambda *_asked: {"free": 10**6})
    page.target.value = "/mnt/stick/env"
    assert "/mnt/stick/env has 0.0 GB free" in page.fault.value
    assert wizard.session.state.choices.target == ""
    monkeypatch.setattr(LiveHost, "facts", lambda *_asked: {"free": 10**12})
    page.target.value = "/mnt/disk/env"
    assert wizard.session.state.choices.target == "/mnt/disk/env"
    assert "GB free" not in html_of(wizard)


def test_a_recorded_machine_is_looked_at_and_planned_for_by_itself(wizard: SetupWizard) -> None:
    """The recording leads to a ROCm plan without a press; installing is refused with a reason."""
    assert "RX 6700 XT" in html_of(wizard)
    assert wizard.session.state.plan.backend is Backend.ROCM
    assert wizard.foot.buttons[0] == ("main", "Install", False)
    assert "nothing can be installed" in str(wizard.foot.note)
    assert ("other0", "Back to this machine", True) in wizard.foot.buttons
    wizard.press("other0")
    assert wizard.session.state.machine == ""


def test_a_fact_can_be_set_and_taken_back(wizard: SetupWizard) -> None:
    """What the user sets replaces what was found, is marked as his, and can be taken back."""
    page = changes_of(wizard)
    page.fact.value = "gpus[0].gfx"
    assert page.fact_value.placeholder == "gfx1100"
    page.fact_value.value = "gfx1100"
    assert "set by you" in sent_later(wizard, "facts")
    assert 'data-file="facts"' in html_of(wizard)
    assert wizard.session.state.detection.machine.gpus[0].gfx == "gfx1100"
    assert 'data-press="fact:gpus[0].gfx"' in page.below.value
    wizard.head._handle_custom_msg({"press": "fact:gpus[0].gfx"}, [])
    assert wizard.session.state.detection.machine.gpus[0].gfx == "gfx1031"
    assert "fact:" not in page.below.value


@pytest.mark.parametrize(
    ("fact", "value"), [("nvidia_driver", "banana"), ("memory_gb", "-5"), ("os", "templeos"), ("python", "=")]
)
def test_a_value_that_does_not_fit_is_refused_and_changes_nothing(wizard: SetupWizard, fact: str, value: str) -> None:
    """A sentence says what would fit; no step has to be repeated."""
    before, page = wizard.session.state, changes_of(wizard)
    page.fact.value, page.fact_value.value = fact, value
    assert value in page.fault.value
    assert page.box.children[page.box.children.index(page.fact_value) + 1] is page.fault
    assert "Example" in page.fault.value
    assert wizard.session.state is before


@pytest.mark.parametrize("folder", ["relative/folder", "C:\\Users\\me\\torch", "kernel"])
def test_a_folder_is_named_from_the_top(wizard: SetupWizard, folder: str) -> None:
    """A path that starts nowhere would become a folder among the notebooks; the kernel is no folder."""
    page = changes_of(wizard)
    page.target.value = folder
    assert "full path" in page.fault.value
    assert page.box.children[page.box.children.index(page.target) + 1] is page.fault
    assert wizard.session.state.choices.target == ""


def test_a_refusal_stays_until_something_else_is_chosen(wizard: SetupWizard) -> None:
    """With what was typed: on the way back from another page, and in another language; not beside a new choice."""
    page = changes_of(wizard)
    page.target.value = "relative/folder"
    wizard.session.dispatch(Show(page=Page.WRONG))
    wizard.session.dispatch(Show(page=Page.SETUP))
    assert page.fault in page.box.children
    assert page.target.value == "relative/folder"
    try:
        wizard.speak("zh_CN")
        assert "完整路径" in page.fault.value
    finally:
        wizard.speak("en")
    assert "full path" in page.fault.value
    page.backend.value = "cpu"
    assert page.fault not in page.box.children
    assert page.target.value == ""
    page.target.value = "relative/folder"
    page.target.value = ""
    assert page.fault not in page.box.children


def test_what_a_line_folds_away_is_drawn_once_when_it_is_opened(
    wizard: SetupWizard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It can be long: the alternatives of a machine, or a log."""
    drawn = []
    monkeypatch.setattr(setup, "draw_why", lambda *_of: drawn.append(True) or html.NOTHING)
    wizard._pages[Page.SETUP].why.set_state({"unfolded": True})
    assert len(drawn) == 1


def test_the_assistants_own_environment_is_not_offered() -> None:
    """The next update would replace it with all that was installed there."""
    for ours in ("yes", ""):
        shown = wizard_on(
            Session(
                NoHost(),
                InlineRunner(),
                state=State(detected=Detected(detection=Detection(machine=Machine()), pythons={"ours": ours})),
            )
        )
        places = [key for _words, key in changes_of(shown).where.options]
        assert places == ([""] if ours else ["", "kernel"])
        shown.close()


def test_a_click_in_the_head_shows_another_page(wizard: SetupWizard) -> None:
    """Going there and back loses nothing."""
    before = wizard.session.state
    wizard.head._handle_custom_msg({"page": "wrong"}, [])
    assert wizard.head.page == "wrong"
    assert wizard.foot.buttons[0][1:] in {("Find the cause", True), ("Mend it", True)}
    wizard.head._handle_custom_msg({"page": "setup"}, [])
    assert wizard.session.state == before


def test_a_message_that_means_nothing_changes_nothing(wizard: SetupWizard) -> None:
    """A front end of another version cannot break the wizard."""
    before = wizard.session.state
    for message in ({}, {"page": "nowhere"}, {"page": 3}, {"press": "nothing"}, {"press": 3, "offer": []}, "text"):
        wizard.head._handle_custom_msg(message, [])
        wizard.foot._handle_custom_msg(message, [])
    wizard.head._handle_custom_msg({"language": "xx"}, [])
    assert wizard.session.state == before


def hostile_state(folder: Path) -> State:
    """Plant hostile text in every field of a state that takes text from outside."""
    plan = Plan(
        backend=Backend.CPU,
        variant=HOSTILE,
        torch=HOSTILE,
        python=HOSTILE,
        index_url=HOSTILE,
        requirements=(HOSTILE,),
        reasons=(HOSTILE,),
        warnings=(HOSTILE,),
        env={HOSTILE: HOSTILE},
        download_mb=1,
    )
    ways = (Remedy(text=HOSTILE, commands=(HOSTILE,), env={HOSTILE: HOSTILE}),)
    finding = Finding(key="x", severity=Severity.ERROR, text=HOSTILE, remedies=ways)
    card = {"name": HOSTILE, "gfx": HOSTILE, "pci_id": HOSTILE, "driver": HOSTILE}
    machine = Machine(
        os="linux",
        os_version=HOSTILE,
        arch="x86_64",
        container=HOSTILE,
        nvidia_driver=HOSTILE,
        gpus=(Gpu(vendor=Vendor.NVIDIA, compute_capability="8.9", **card), Gpu(vendor=Vendor.AMD, **card)),
        packages={HOSTILE: HOSTILE},
        evidence=(Evidence(fact=HOSTILE, source=HOSTILE, text=HOSTILE),),
    )
    file = folder / "<img src=x onerror=alert(1)>.md"
    file.write_text(HOSTILE)
    failed = StepStatus(
        phase=Phase.FAILED, message=HOSTILE, hint=HOSTILE, progress=Progress(step=Step.INSTALL, text=HOSTILE)
    )
    known = EnvironmentSummary(
        path=HOSTILE, name=HOSTILE, of=HOSTILE, torch=HOSTILE, python=HOSTILE, findings=(finding,), checked="x"
    )
    return State(
        raised=(finding, replace(finding, key="y")),
        preview=Prepared(
            plan=plan,
            target=HOSTILE,
            commands=((HOSTILE,),),
            resolution=Resolution(lock="", packages=(Package(name=HOSTILE, version=HOSTILE, url=HOSTILE),)),
        ),
        log=(LogLine(step=Step.INSTALL, text=HOSTILE).text,),
        log_file=HOSTILE,
        question=HOSTILE,
        statuses=dict.fromkeys(Step, failed),
        environments=Environments(
            survey=Survey(environments=(known,), notes=(finding,)), picked=HOSTILE, status=StepStatus(phase=Phase.DONE)
        ),
        detected=Detected(
            detection=Detection(machine=machine, findings=(finding,)), pythons={"kernel": HOSTILE, "server": HOSTILE}
        ),
        choices=Choices(overrides={HOSTILE: HOSTILE}),
        planned=Planned(
            planning=Planning(
                choice=plan,
                plans=(plan, replace(plan, torch=f"2 {HOSTILE}")),
                rejected=(Rejection(backend=Backend.CUDA, variant=HOSTILE, why=HOSTILE, would_help=HOSTILE),),
            )
        ),
        installed=Installed(environment=Environment(path=HOSTILE, python=HOSTILE, kernel=HOSTILE)),
        verified=Verified(
            report=Report(device=HOSTILE, checks=(Check(key=HOSTILE, status=Status.WRONG, detail=HOSTILE),))
        ),
        exported=Exported(files=(str(file), HOSTILE)),
        diagnosed=Diagnosed(
            diagnoses=(Diagnosis(key="x", title=HOSTILE, cause=HOSTILE, evidence=(HOSTILE,), remedies=ways),)
        ),
    )


class Tags(HTMLParser):
    """Collects what a browser would make of some HTML: elements that could act, and handlers of events."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what no panel of ours holds."""
        if tag in {"img", "script", "iframe", "object"} or any(name.startswith("on") for name, _value in attrs):
            self.found.append(tag)


@pytest.mark.parametrize("phase", [Phase.DONE, Phase.FAILED, Phase.READY])
def test_hostile_text_is_shown_as_text(tmp_path: Path, phase: Phase) -> None:
    """Whatever comes from outside is escaped wherever it is shown, in cards, pictures and links too."""
    state = hostile_state(tmp_path)
    statuses = {step: replace(status, phase=phase) for step, status in state.statuses.items()}
    shown = wizard_on(Session(NoHost(), InlineRunner(), state=replace(state, statuses=statuses)))
    for page in PAGES:
        shown.session.dispatch(Show(page=page))
        text = html_of(shown)
        assert Tags(text).found == []
        assert "&lt;img" in text or page is Page.ENVIRONMENTS or phase is not Phase.DONE
    shown.close()


def test_hostile_text_of_a_saved_setup_is_shown_as_text(tmp_path: Path) -> None:
    """What an older setup of another machine said is escaped in the offer, too."""
    store = Store(tmp_path)
    store.save(replace(hostile_state(tmp_path), question=""))
    host = ReplayHost(load(MACHINE))
    shown = wizard_on(Session(host, InlineRunner(), store, sources=Sources(host, offline=True)))
    shown.session.begin(Task.DETECT)
    assert "another machine" in offer_of(shown).drawn
    assert "&lt;img" in offer_of(shown).drawn
    assert Tags(html_of(shown)).found == []
    shown.close()


def test_the_sign_of_hostile_text_would_be_seen() -> None:
    """The test above finds what it looks for."""
    assert Tags(HOSTILE).found == ["img", "script"]
    assert Tags('<svg onload="x">').found == ["svg"]


def test_a_finished_installation_names_its_kernel() -> None:
    """The user learns where the environment is and under which name JupyterLab offers it."""
    shown = wizard_on(Session(NoHost(), InlineRunner(), state=finished()))
    assert "/somewhere/env" in html_of(shown)
    assert "torch-cpu-2.13.0" in html_of(shown)
    assert shown.foot.buttons[0] == ("main", "Open a notebook with it", True)
    shown.close()


def finished() -> State:
    """Give the state of a setup that was gone through to its end."""
    plan = Plan(backend=Backend.CPU, variant="cpu", torch="2.13.0", python="3.12")
    report = Report(device="cpu", checks=(Check(key="matmul", status=Status.PASSED, seconds=0.1, error=0.0),))
    return State(
        statuses={step: StepStatus(phase=Phase.DONE) for step in Step if step is not Step.EXPORT},
        detected=Detected(detection=Detection(machine=Machine(os="linux"))),
        planned=Planned(planning=Planning(choice=plan, plans=(plan,))),
        installed=Installed(
            environment=Environment(
                path="/somewhere/env", python="/somewhere/env/bin/python", kernel="torch-cpu-2.13.0"
            )
        ),
        verified=Verified(report=report),
    )


def test_files_are_given_with_their_content_and_missing_ones_with_the_reason(tmp_path: Path) -> None:
    """A file that is gone does not hide the others."""
    file = tmp_path / "a.txt"
    file.write_bytes(b"\xff text")
    there, gone = read_files([str(file), str(tmp_path / "gone")])
    assert (there.name, there.content, there.fault) == ("a.txt", b"\xff text", "")
    assert gone.content == b""
    assert gone.fault


def test_exported_files_are_offered_as_downloads(tmp_path: Path) -> None:
    """A link or a fold asks for its file and for no other; a file that is gone is named with the reason."""
    (tmp_path / "report.md").write_text("# Report & more")
    (tmp_path / "plot.png").write_bytes(b"PNG\0")
    state = State(
        page=Page.EXPORT,
        statuses={Step.EXPORT: StepStatus(phase=Phase.DONE)},
        exported=Exported(files=(str(tmp_path / "report.md"), str(tmp_path / "gone.md"), str(tmp_path / "plot.png"))),
    )
    shown = wizard_on(Session(NoHost(), InlineRunner(), state=replace(state)))
    text = html_of(shown)
    assert "Download report.md" in text
    assert '<a href="#" data-file="0">' in text
    assert text.count("<details data-file=") == text.count('<details data-file="0">') == 1  # a picture is no text
    assert "# Report" not in text  # it is sent when it is asked for
    assert "gone.md" in text
    assert find_file(state, "0") == ("report.md", b"# Report & more")
    pack = find_file(state, "configuration.zip")
    assert pack is not None
    with zipfile.ZipFile(io.BytesIO(pack[1])) as opened:
        assert opened.read("report.md") == b"# Report & more"
        assert sorted(opened.namelist()) == ["plot.png", "report.md"]
    for key in ("1", "3", "-1", str(tmp_path / "report.md"), "../report.md"):
        assert find_file(state, key) is None
    shown.close()


@each("name", ["linux-ubuntu2404-rtx4090", "windows11-rx7800xt", "macos14-m1"])
def test_no_recorded_machine_can_be_installed_for(name: str) -> None:
    """Whatever is pressed, in whatever order, a simulation neither prepares nor installs; its banner says so."""
    shown = wizard_on(Session(NoHost(), InlineRunner(), state=State(machine=name)))
    begun: list[Task | None] = []
    watch(shown.session, lambda _old, new: begun.append(new.running))
    shown.session.begin(Task.DETECT)
    for task in Task:
        for page in PAGES:
            shown.session.dispatch(Show(page=page))
            shown.press("main")
            shown.session.begin(task)
    assert set(begun) <= {None, Task.DETECT, Task.PLAN, Task.DIAGNOSE, Task.SURVEY}
    assert "nothing can be installed" in shown.banner.value
    shown.close()


def test_coming_back_from_a_simulation_finds_the_setup_as_it_was() -> None:
    """The machine at hand is neither looked at nor planned for again."""
    host = ReplayHost(load(MACHINE))
    shown = wizard_on(Session(host, InlineRunner(), sources=Sources(host, offline=True)))
    for task in (Task.DETECT, Task.PLAN):
        shown.session.begin(task)
    real = shown.session.state
    shown.session.dispatch(Simulate(machine="macos14-m1"))
    shown.session.dispatch(Simulate(machine=""))
    assert shown.session.state == real
    shown.close()


def test_each_news_is_drawn_until_the_wizard_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a kernel: a thread draws what another one reports, with the context of the cell that opened the wizard."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    answered: ContextVar[str] = ContextVar("answered", default="")
    answered.set("the cell")
    drawn_for: set[str] = set()
    draw_head = app.draw_head
    monkeypatch.setattr(app, "draw_head", lambda *given: (drawn_for.add(answered.get()), draw_head(*given)))
    shown = open_wizard(MACHINE)
    wait_for(lambda: "RX 6700 XT" in shown._pages[Page.SETUP].lead.value)
    shown.close()
    wait_for(lambda: "assistant-drawing" not in {thread.name for thread in threading.enumerate()})
    assert drawn_for == {"the cell"}


def test_a_press_that_saw_other_words_does_nothing() -> None:
    """Of twenty quick clicks only the first counts: the others meant a button that says another thing by now."""
    shown = wizard_on(Session(NoHost(), InlineRunner(), state=replace(finished(), page=Page.WRONG)))
    begun: list[Task | None] = []
    watch(shown.session, lambda _old, new: begun.append(new.running))
    shown.head._handle_custom_msg({"page": "setup"}, [])
    shown.head._handle_custom_msg({"page": "wrong"}, [])
    seen = shown.foot.offer
    shown.head._handle_custom_msg({"page": "export"}, [])
    assert shown.foot.offer != seen
    for _click in range(20):
        shown.foot._handle_custom_msg({"press": "main", "offer": seen}, [])
    assert set(begun) == {None}
    shown.close()


def test_a_press_counts_while_environments_are_looked_at_behind_the_page() -> None:
    """A survey that ends between the press and its arrival changes nothing of what the button says or does."""
    surveying = replace(finished(), page=Page.SETUP, running=Task.SURVEY)
    shown = wizard_on(Session(NoHost(), InlineRunner(), state=surveying))
    seen, main = shown.foot.offer, shown.foot.buttons[0]
    shown.session.dispatch(Abandoned())
    assert shown.session.state.running is None
    assert (shown.foot.offer, shown.foot.buttons[0]) == (seen, main)
    shown.close()


def test_the_language_is_switched_without_losing_anything(wizard: SetupWizard) -> None:
    """Results and the page stay; every word is Chinese, and English again after."""
    before, english = wizard.session.state, html_of(wizard)
    try:
        wizard.head._handle_custom_msg({"language": "zh_CN"}, [])
        chinese, state = html_of(wizard), wizard.session.state
        assert wizard.head.language == "zh_CN"
        assert wizard.foot.buttons[0][1] == "安装"
        assert "包含适用于" in chinese
        assert state == before
    finally:
        wizard.head._handle_custom_msg({"language": "en"}, [])
    assert html_of(wizard) == english
    assert wizard.session.state == before


class Counted(ReplayHost):
    """A recorded machine that counts what it is asked."""

    asked = 0

    def ask(self, kind: str, *arguments: str) -> Answer:
        """Count one more question."""
        self.asked += 1
        return super().ask(kind, *arguments)


@pytest.mark.parametrize("restarted", [False, True], ids=["at once", "after a restart of the kernel"])
def test_another_language_draws_again_and_does_nothing_again(tmp_path: Path, *, restarted: bool) -> None:
    """Facts, plan, causes and failures are drawn in the new language; no host, planner or diagnosis is asked."""
    store, host = Store(tmp_path), Counted(load(MACHINE))
    session = Session(host, InlineRunner(), store, sources=Sources(host, offline=True))
    for task in (Task.DETECT, Task.PLAN):
        session.begin(task)
    session.dispatch(Paste(log="OSError: libd3d12.so: cannot open shared object file: No such file or directory"))
    session.begin(Task.DIAGNOSE)
    session.dispatch(
        Failed(step=Step.INSTALL, message=_("You don't have permission to write to {path}.", path="/elsewhere"))
    )
    state = session.state
    if restarted:
        store.save(state)
        state = Store(tmp_path).load() or State()
    shown = wizard_on(Session(host, InlineRunner(), state=state))
    asked = host.asked
    try:
        shown.speak("zh_CN")
        for page, words in ((Page.SETUP, "/elsewhere"), (Page.WRONG, "DirectML")):
            shown.session.dispatch(Show(page=page))
            drawn = html_of(shown)
            assert words in drawn
            assert not re.search(
                r"holds code for|permission to write|cannot open", drawn.replace(state.pasted.text, "")
            )
    finally:
        shown.speak("en")
        shown.close()
    assert host.asked == asked
    assert replace(shown.session.state, page=state.page, log_file=state.log_file) == state


def test_a_saved_setup_of_another_machine_is_told_and_can_be_dropped(tmp_path: Path) -> None:
    """It cannot be gone on with; dropping it forgets it for good."""
    store = Store(tmp_path)
    first, second = (ReplayHost(load(name)) for name in (MACHINE, "linux-ubuntu2404-rtx4090"))
    session = Session(first, InlineRunner(), store, sources=Sources(first, offline=True))
    session.begin(Task.DETECT)
    session.begin(Task.PLAN)
    shown = wizard_on(Session(second, InlineRunner(), store, sources=Sources(second, offline=True)))
    shown.session.begin(Task.DETECT)
    assert "another machine" in offer_of(shown).drawn
    assert "RTX 4090" in offer_of(shown).drawn
    assert "offer:resume" not in offer_of(shown).drawn
    press_on(shown, "offer:drop")
    assert not offer_of(shown).drawn
    assert store.read() is None
    shown.close()


def test_a_saved_setup_of_this_machine_is_gone_on_with(tmp_path: Path) -> None:
    """The wizard says where it stood, and one press continues there."""
    store, host = Store(tmp_path), ReplayHost(load(MACHINE))
    session = Session(host, InlineRunner(), store, sources=Sources(host, offline=True))
    session.begin(Task.DETECT)
    session.begin(Task.PLAN)
    shown = wizard_on(Session(host, InlineRunner(), store, sources=Sources(host, offline=True)))
    shown.session.begin(Task.DETECT)
    shown.session.begin(Task.PLAN)
    assert "got as far as Install" in offer_of(shown).drawn
    press_on(shown, "offer:resume")
    assert shown.session.state.plan == session.state.plan
    assert not offer_of(shown).drawn
    shown.close()


@pytest.mark.process  # the picture is asked of its Python
def test_a_finished_setup_is_where_the_next_start_begins(tmp_path: Path) -> None:
    """The main button goes on with what stands; to install is the second choice, and one press leads to the end."""
    store, host = Store(tmp_path), ReplayHost(load("linux-debian12-cpu-container"))
    session = Session(host, InlineRunner(), sources=Sources(host, offline=True))
    session.begin(Task.DETECT)
    made = Environment(path=str(tmp_path), python=sys.executable, kernel="torch-cpu-2.13.0")
    store.save(
        replace(finished(), detected=Detected(detection=session.state.detection), installed=Installed(environment=made))
    )
    shown = wizard_on(Session(host, InlineRunner(), store, sources=Sources(host, offline=True)))
    shown.session.begin(Task.DETECT)
    shown.session.begin(Task.PLAN)
    assert "is finished" in offer_of(shown).drawn
    assert shown.foot.buttons[0] == ("main", "Use it", True)
    shown.press("main")
    assert shown.session.state.environment == made
    assert shown.foot.buttons[0] == ("main", "Open a notebook with it", True)
    shown.close()


def test_what_was_open_stays_open_in_another_language() -> None:
    """Whoever reads a fold and changes the language goes on reading there, also by way of another page."""
    shown = wizard_on(Session(NoHost(), InlineRunner(), state=finished()))
    page = shown._pages[Page.SETUP]
    page.done.checks.unfolded, page.done.packages.placeholder = True, "torchvision"
    shown.speak("zh_CN")
    assert page.done.checks.title == "各项检查及用时"
    shown.session.dispatch(Show(page=Page.WRONG))
    shown.speak("en")
    shown.session.dispatch(Show(page=Page.SETUP))
    assert shown._pages[Page.SETUP] is page
    assert page.done.checks.title == "The checks, one by one, with times"
    assert page.done.checks.unfolded
    assert not page.log.unfolded
    shown.close()


def test_another_language_chooses_nothing() -> None:
    """Lists whose words change keep what was chosen, and no plan is made anew."""
    shown = wizard_on(Session(NoHost(), InlineRunner(), state=State(machine=MACHINE), guided=True))
    shown.session.begin(Task.DETECT)
    form = changes_of(shown)
    form.backend.value = "cpu"
    before = shown.session.state
    shown.speak("zh_CN")
    assert shown.session.state is before
    assert (form.backend.value, form.machine.value) == ("cpu", MACHINE)
    assert form.backend.description == "后端"
    shown.speak("en")
    shown.close()


def test_another_language_offers_nothing_that_was_just_begun(tmp_path: Path) -> None:
    """What this very setup has saved by then is no earlier one."""
    host = ReplayHost(load(MACHINE))
    shown = wizard_on(Session(host, InlineRunner(), Store(tmp_path), sources=Sources(host, offline=True)))
    shown.session.begin(Task.DETECT)
    shown.session.begin(Task.PLAN)
    shown.speak("zh_CN")
    hidden = not offer_of(shown).drawn
    shown.speak("en")
    shown.close()
    assert hidden


def test_the_shells_pip_is_nobodys_trouble_here(tmp_path: Path) -> None:
    """Which pip a shell finds says nothing of a kernel, which has its own: other findings are told, this one is not."""
    found = [Finding(key=key, severity=Severity.WARNING, text=_("Told.")) for key in ("foreign-pip", "pythonpath-leak")]
    plan = finished().planning
    for count, findings in enumerate((found[:1], found)):
        state = State(
            raised=tuple(findings),
            detected=Detected(detection=Detection(machine=Machine())),
            planned=Planned(planning=plan),
        )
        shown = wizard_on(Session(NoHost(), InlineRunner(), Store(tmp_path), state=state))
        assert html_of(shown).count("Told.") == count
        shown.close()


def test_no_part_of_a_page_moves_as_others_come_and_go() -> None:
    """The browser makes all that stands below such a part anew: a press on a fold would be lost, and what was open."""
    shown = wizard_on(Session(NoHost(), InlineRunner(), state=State(machine=MACHINE), guided=True))
    page, placed = shown._pages[Page.SETUP], [shown.middle.children]
    shown.middle.observe(lambda change: placed.append(change["new"]), "children")
    assert page.why in page.hidden
    shown.session.begin(Task.DETECT)
    assert page.why not in page.hidden
    changes_of(shown).backend.value = "cpu"
    shown.session.dispatch(Failed(step=Step.INSTALL, message=""))
    assert page.log not in page.hidden
    assert {placed[-1][place] for place in shown.head.hidden} == page.hidden
    assert all(later[: len(before)] == before for before, later in pairwise(placed))
    shown.close()


def test_another_answer_makes_another_plan_by_itself(wizard: SetupWizard) -> None:
    """What rested on the old answer is made anew without a press."""
    assert wizard.session.state.plan.backend is Backend.ROCM
    changes_of(wizard).backend.value = "cpu"
    assert wizard.session.state.plan.backend is Backend.CPU
    assert "for your processor" in html_of(wizard)


def test_nightly_builds_are_asked_for_on_the_page(tmp_path: Path) -> None:
    """The choice becomes a wish; the plan that follows is last night's build, and says what that is."""
    host = ReplayHost(load("macos15-m3max"))
    session = Session(host, InlineRunner(), Store(tmp_path), sources=Sources(host, offline=True))
    shown = wizard_on(session)
    session.begin(Task.DETECT)
    session.begin(Task.PLAN)
    changes_of(shown).builds.value = True
    session.begin(Task.PLAN)
    assert session.state.plan.variant == "nightly/cpu"
    assert "A nightly build is made each night" in html_of(shown)
    shown.close()


def test_a_closed_wizard_leaves_nothing_behind(wizard: SetupWizard) -> None:
    """Running the cell again does not pile up models in the kernel; what widgets share stays."""
    before = set(_instances)
    shown = wizard_on(Session(NoHost(), InlineRunner(), state=State(machine=MACHINE), guided=True))
    shown.session.begin(Task.DETECT)
    shown.speak("zh_CN")
    shown.speak("en")
    assert len(set(_instances) - before) < 60
    changes = changes_of(shown)
    changes.release.value = "nonsense!"
    assert changes.fault.model_id in _instances
    changes.release.value = ""
    shown.close()
    left = {type(_instances[key]).__name__ for key in set(_instances) - before}
    assert left <= {"Layout"}
    assert wizard.comm is not None


def test_a_lively_download_sends_a_message_per_percent() -> None:
    """A thousand steps of progress become a hundred for the browser, and the last one is told."""
    shown = wizard_on(Session(NoHost(), InlineRunner(), state=State(running=Task.INSTALL)))
    told: list[object] = []
    shown.foot.observe(lambda change: told.append(change["new"]["share"]), "progress")
    for number in range(1001):
        progress = Progress(step=Step.INSTALL, text="", done=number, total=1000, unit="packages")
        shown.session.dispatch(Reported(events=(progress,)))
    assert 100 <= len(told) < 400
    assert told[-1] == 100
    shown.close()
