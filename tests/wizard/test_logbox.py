"""The box for a log: pieces become one log, once; what cannot be taken is answered, and nothing is lost."""

from __future__ import annotations

import pytest
from runners import InlineRunner, wizard_on

from assistant.host.base import ReplayHost
from assistant.install import Sources
from assistant.machines import load
from assistant.model.record import replace
from assistant.session.actions import Show
from assistant.session.session import Session
from assistant.session.state import Page, State, Task
from assistant.wizard.app import SetupWizard
from assistant.wizard.shared_widgets import LogBox


class Box(LogBox):
    """A box that remembers what it took and what it answered."""

    def __init__(self, fault: str = "") -> None:
        self.edits, self.logs, self.answers = list[bool](), list[tuple[bytes, str]](), list[object]()
        super().__init__(lambda: self.edits.append(True), lambda data, name: self.logs.append((data, name)) or fault)

    def send(self, content: object, buffers: object = None) -> None:  # noqa: ARG002 - the library's own signature
        """Remember an answer."""
        self.answers.append(content)

    def receive(self, data: bytes, number: int = 0, key: str = "a", *, last: bool = False) -> None:
        """Take a piece as the browser sends it."""
        message = {"id": key, "piece": number, "last": last, "name": "train.log"}
        self._handle_custom_msg(message, [memoryview(data)])


def test_pieces_become_one_log() -> None:
    """Each is answered, so that the next one comes; the last makes the whole."""
    box = Box()
    for number, piece in enumerate((b"one ", b"two ", b"three")):
        box.receive(piece, number, last=number == 2)
    assert box.logs == [(b"one two three", "train.log")]
    assert box.answers == [{"id": "a", "piece": number, "fault": ""} for number in range(3)]
    box.close()


def test_another_window_that_begins_takes_the_place_of_the_first() -> None:
    """Two logs are never mixed, and a piece that was lost makes no log with a hole."""
    box = Box()
    box.receive(b"mine, ", 0, "a")
    box.receive(b"yours", 0, "b", last=True)
    box.receive(b"and the rest", 1, "a", last=True)
    box.receive(b"first", 0, "c")
    box.receive(b"third", 2, "c", last=True)
    assert box.logs == [(b"yours", "train.log")]
    box.close()


def test_why_a_log_is_refused_goes_back_to_the_browser() -> None:
    """There the page's button does nothing then."""
    box = Box("No room.")
    box.receive(b"text", last=True)
    assert box.answers == [{"id": "a", "piece": 0, "fault": "No room."}]
    box._handle_custom_msg({"edited": True}, [])
    assert box.edits == [True]
    box.close()


@pytest.fixture
def wizard() -> SetupWizard:
    """Show the page for what is wrong with a recorded machine."""
    host = ReplayHost(load("linux-arch-rx6700xt-directml"))
    session = Session(host, InlineRunner(), sources=Sources(host, offline=True), state=State(page=Page.WRONG))
    session.begin(Task.DETECT)
    return wizard_on(session)


def test_one_box_serves_every_language(wizard: SetupWizard) -> None:
    """What was typed is known to the browser alone: the box stays when the words change, and goes when all goes."""
    box = wizard._pages[Page.WRONG].box
    english = box.words["label"]
    try:
        wizard.speak("zh_CN")
        assert wizard._pages[Page.WRONG].box is box
        assert box.comm is not None
        assert box.language == "zh-CN"
    finally:
        wizard.speak("en")
    assert box.words["label"] == english
    wizard.close()
    assert box.comm is None


def test_an_edit_and_a_log_reach_the_state(wizard: SetupWizard) -> None:
    """From the first letter on the button looks for the cause; a binary file is refused in a sentence."""
    box = wizard._pages[Page.WRONG].box
    assert wizard.foot.buttons[0][1] == "Mend it"  # a finding of the machine itself
    box._handle_custom_msg({"edited": True}, [])
    assert wizard.foot.buttons[0][1] == "Find the cause"
    message = {"id": "a", "piece": 0, "last": True, "name": "x.log"}
    box._handle_custom_msg(message, [memoryview(b"\x7fELF" + bytes(5000))])
    assert wizard.session.state.edited
    box._handle_custom_msg(message, [memoryview(b"libd3d12.so: cannot open shared object file")])
    assert not wizard.session.state.edited
    wizard.press("main")
    assert box.shown["name"] == "x.log"
    assert wizard.session.state.diagnosed.diagnoses[0].key == "directml-on-native-linux"
    wizard.close()


def test_the_cause_is_looked_for_while_something_only_reads(wizard: SetupWizard) -> None:
    """A plan that is being made gives way; an installation does not."""
    wizard.session.dispatch(Show(page=Page.WRONG))
    assert wizard._footer(replace(wizard.session.state, running=Task.PLAN)).able
    assert not wizard._footer(replace(wizard.session.state, running=Task.INSTALL)).able
    wizard.close()
