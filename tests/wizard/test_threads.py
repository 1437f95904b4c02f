"""One thread draws while another takes what the browser sets: nothing of either is lost."""

from __future__ import annotations

import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import comm
import pytest
from comm.base_comm import BaseComm
from runners import InlineRunner, NoHost

from assistant.model.plan import Backend
from assistant.session.session import Session
from assistant.session.state import Page, State, Task
from assistant.wizard.app import SetupWizard
from assistant.wizard.shared_widgets import DRAWING

MACHINE = "linux-arch-rx6700xt-directml"
ROUNDS = 200

pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")


@pytest.fixture(scope="module")
def planned() -> State:
    """Give the state of a recorded machine that was looked at and planned for."""
    session = Session(NoHost(), InlineRunner(), state=State(machine=MACHINE), guided=True)
    session.begin(Task.DETECT)
    return session.state


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, dict[str, Any]]]:
    """Give what a browser knows of each model: what it was sent; threads change often meanwhile."""
    known: dict[str, dict[str, Any]] = defaultdict(dict)

    class Wire(BaseComm):  # type: ignore[misc]  # the library has no types
        def publish_msg(self, _kind: str, data: dict[str, Any] | None = None, **_rest: object) -> None:
            known[self.comm_id].update((data or {}).get("state", {}))

    monkeypatch.setattr(comm, "create_comm", Wire)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield known
    sys.setswitchinterval(interval)


def beside(work: Callable[[], object]) -> threading.Thread:
    """Begin some work in another thread."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_what_the_user_chooses_while_the_page_is_drawn_is_taken_afterwards(planned: State) -> None:
    """What is drawn is no choice, and what is chosen is no drawing: it waits its turn."""
    wizard = SetupWizard(Session(NoHost(), InlineRunner(), state=planned))
    changes = wizard._pages[Page.SETUP].changes
    changes.fold.set_state({"unfolded": True})
    chosen = [value for _label, value in changes.backend.options].index("cpu")
    with DRAWING, changes.quiet():
        user = beside(lambda: changes.backend.set_state({"index": chosen}))
        user.join(0.2)
        assert user.is_alive()
        assert changes.backend.value == ""
        changes.follow(planned)
    user.join(10)
    assert wizard.session.state.choices.request.backend is Backend.CPU
    wizard.close()


def test_cancel_waits_for_no_drawing(planned: State) -> None:
    """Whatever is drawn, and for how long."""
    wizard = SetupWizard(Session(NoHost(), InlineRunner(), state=planned))
    heard = threading.Event()
    wizard.session.cancel = heard.set
    with DRAWING:
        beside(lambda: wizard.foot._handle_custom_msg({"press": "stop"}, []))
        assert heard.wait(10)
    wizard.close()


def test_a_fold_opened_while_the_page_is_drawn_has_its_controls(
    planned: State, browser: dict[str, dict[str, Any]]
) -> None:
    """In the browser: each of them was sent there, and its place is in what was sent of the box."""
    for _round in range(ROUNDS):
        browser.clear()
        wizard = SetupWizard(Session(NoHost(), InlineRunner(), state=planned))
        changes, opened = wizard._pages[Page.SETUP].changes, threading.Event()

        def draw(wizard: SetupWizard = wizard, opened: threading.Event = opened) -> None:
            while not opened.is_set():
                wizard._draw(planned)

        drawing = beside(draw)
        changes.fold.set_state({"unfolded": True})
        opened.set()
        drawing.join()
        controls = browser[changes.box.model_id]["children"]
        assert controls == [f"IPY_MODEL_{one.model_id}" for one in changes.box.children]
        assert len(controls) == len(changes._controls)
        assert all(browser[name.removeprefix("IPY_MODEL_")] for name in controls)
        assert f"IPY_MODEL_{changes.box.model_id}" in browser[wizard.middle.model_id]["children"]
        wizard.close()
