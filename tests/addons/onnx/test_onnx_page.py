"""The wizard's page for ONNX models: an upload is checked, converted and tried as a task of the session."""

from __future__ import annotations

import datetime as dt
import errno
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from addons.onnx.traps import trap
from runners import InlineRunner, watch, wizard_on

from assistant.host.base import ReplayHost
from assistant.install import Sources
from assistant.machines import load
from assistant.model.report import Step
from assistant.session.actions import Show
from assistant.session.session import Runner, Session, ThreadRunner
from assistant.session.state import Page, Phase, State, Task
from assistant.wizard.app import SetupWizard
from assistant_addons.onnx.page import OnnxPage

pytestmark = pytest.mark.process

MINUTES = 180.0


def opened(runner: Runner, machine: str = "linux-debian12-cpu-container") -> SetupWizard:
    """Show what may be wrong with a machine that was detected."""
    host = ReplayHost(load(machine))
    session = Session(host, InlineRunner(), sources=Sources(host, offline=True))
    session.begin(Task.DETECT)
    shown = wizard_on(Session(host, runner, state=session.state))
    shown.session.dispatch(Show(page=Page.WRONG))
    return shown


@pytest.fixture(params=[InlineRunner, ThreadRunner], ids=["inline", "thread"])
def wizard(request: pytest.FixtureRequest) -> Iterator[SetupWizard]:
    """Give a wizard whose tasks run as in the tests, and one whose tasks run as in a kernel."""
    shown = opened(request.param())
    yield shown
    shown.close()


def page_of(wizard: SetupWizard) -> OnnxPage:
    """Open the part for a model as the user does."""
    page = wizard._pages[Page.WRONG]
    page.addons.folds["onnx"].unfolded = True
    return page.addons.shown["onnx"]


def finished(wizard: SetupWizard) -> State:
    """Wait until nothing runs any more, and that is shown."""
    until = time.monotonic() + MINUTES
    session = wizard.session
    while session.state.running or "stop" in buttons(wizard):
        assert time.monotonic() < until
        time.sleep(0.05)
    return session.state


def buttons(wizard: SetupWizard) -> set[str]:
    """Name the buttons that the foot shows, which is drawn last."""
    return {name for name, _words, _able in wizard.foot.buttons}


def give(page: OnnxPage, name: str, kind: str) -> None:
    """Upload a model of the collection."""
    content, now = trap(kind).SerializeToString(), dt.datetime.now(tz=dt.UTC)
    page.upload.value = ({"name": name, "type": "", "size": len(content), "content": content, "last_modified": now},)


def test_an_uploaded_model_is_checked_converted_and_tried(wizard: SetupWizard) -> None:
    """The button returns at once; the answer holds all three parts, and the result can be downloaded."""
    page = page_of(wizard)
    give(page, "net.onnx", "squares leave the range")
    page.go.click()
    state = finished(wizard)
    bar, link = 'aria-label="DirectML: 5"', 'download="net.dml.onnx"'
    for words in ("Check for DirectML", bar, "stays FP32", "MB before,", "It runs and agrees", link):
        assert words in page.result.value
    assert state.status(Step.DIAGNOSE).phase is Phase.READY  # nothing was diagnosed


def test_each_part_is_shown_when_it_is_there_and_cancel_ends_the_rest() -> None:
    """The check is in sight while the conversion runs; a cancelled examination keeps it and says so."""
    wizard = opened(InlineRunner())
    page = page_of(wizard)
    give(page, "net.onnx", "squares leave the range")
    seen: list[str] = []

    def cancel_conversion(_old: State, new: State) -> None:
        if new.running is Task.ADDON and not new.stopping and new.extras["onnx"].value.checked:
            seen.append(page.result.value)
            wizard.press("stop")

    watch(wizard.session, cancel_conversion)
    page.go.click()
    assert len(seen) == 1
    assert "Every operator" in seen[0]
    assert "Every operator" in page.result.value
    assert "You cancelled the work" in page.result.value
    state = wizard.session.state
    assert (state.running, state.extras["onnx"].value.conversion) == (None, None)
    wizard.close()


def test_another_language_shows_the_same_results() -> None:
    """The panel is made anew, and the answer is in sight again."""
    wizard = opened(InlineRunner())
    page = page_of(wizard)
    page.go.click()
    try:
        wizard.speak("zh_CN")
        chinese = wizard._pages[Page.WRONG]
        assert "没有给出模型" in chinese.addons.shown["onnx"].result.value
        assert chinese.addons.folds["onnx"].unfolded
    finally:
        wizard.speak("en")
    assert "No model was given" in wizard._pages[Page.WRONG].addons.shown["onnx"].result.value
    wizard.close()


def test_what_is_no_model_ends_in_a_sentence(wizard: SetupWizard) -> None:
    """Nothing given, a file that is not there, and markup in a name: one framed sentence, escaped."""
    page = page_of(wizard)
    page.go.click()
    finished(wizard)
    assert "No model was given" in page.result.value
    page.path.value = "<b>no.onnx"
    page.go.click()
    finished(wizard)
    assert "cannot be read" in page.result.value
    assert "<b>no" not in page.result.value
    assert wizard.session.state.failures == []


def test_a_full_disk_is_a_sentence_on_the_page(wizard: SetupWizard, monkeypatch: pytest.MonkeyPatch) -> None:
    """An upload that cannot be written is said where the button is, and the next one that can is examined."""
    page = page_of(wizard)
    give(page, "net.onnx", "squares leave the range")

    def full(_path: Path, _data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("assistant_addons.onnx.page.write_atomically", full)
        page.go.click()
        assert "The model could not be written: No space left on device." in page.result.value
        assert not wizard.session.state.extras
    page.go.click()
    finished(wizard)
    assert "could not be written" not in page.result.value
    assert "Every operator" in page.result.value
