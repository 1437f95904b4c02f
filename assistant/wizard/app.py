"""The composition: head, one page, one footer, all following one session."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Iterable, Sequence
from contextvars import copy_context
from typing import Any

import ipywidgets as widgets

from assistant.host.base import Host
from assistant.host.live import LiveHost
from assistant.i18n import LANGUAGES, language, render, say, sentences, use_language
from assistant.model.errors import AssistantError
from assistant.session.actions import Show, Simulate
from assistant.session.session import Session, ThreadRunner
from assistant.session.state import Page, State, Task
from assistant.session.store import Store, state_for_cell
from assistant.wizard import html
from assistant.wizard.head import (
    OPEN_NOTEBOOK,
    AskBrowser,
    ButtonAction,
    Footer,
    OpenNotebook,
    draw_banner,
    draw_head,
    draw_progress,
    no_widgets_text,
    send_notebook,
    status_line,
    write_notebook,
)
from assistant.wizard.panels import LATER, PAGES, PageView, Part, busy_footer, find_file
from assistant.wizard.shared_widgets import DRAWING, Drawing, Fold, Foldable, Foot, Head, make, reword, shared

PAUSE_SECONDS = 0.1  # between drawings; chosen: smooth to the eye, and few messages for a remote browser
LOOK_SECONDS = 1.0  # chosen: after which the thread that draws sees that its wizard was closed


class SetupWizard(widgets.VBox):  # type: ignore[misc]  # the library has no types
    """The guided setup as a widget; `session` holds everything that it knows."""

    def __init__(self, session: Session) -> None:
        super().__init__(layout=shared(widgets.Layout), _dom_classes=("ptsa-wizard", "ptsa-guide"))
        self.session = session
        self._pages: dict[Page, PageView] = {}
        self._drawn = session.state
        self._since = time.time()  # when the running task began
        self._offered: tuple[object, ...] = ()
        self._opened: OpenNotebook | None = None  # the notebook that the browser was asked for last
        self._asked: AskBrowser | None = None  # what else it was asked for last
        self.head = make(Head, languages=list(LANGUAGES.items()))
        self.head.on_msg(self._handle_head_message)
        self.banner, self.middle = make(Drawing), make(widgets.VBox)
        self.middle.add_class("ptsa-middle")
        self.foot = make(Foot)
        self.foot.on_msg(self._handle_foot_message)
        self.children = (self.head, self.middle, self.foot)
        self._draw(session.state)

    def __repr__(self) -> str:
        """Stay the same in every run: notebooks are compared by what their cells print."""
        return "SetupWizard()"

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:  # noqa: ANN401 - the library's own signature
        return {**super()._repr_mimebundle_(**options), "text/plain": no_widgets_text()}

    def close(self) -> None:
        """Free every model; closing the root alone would leave the others."""
        with DRAWING:
            for part in (*self._pages.values(), *self.children, self.banner):
                part.close()
            super().close()

    def speak(self, code: str) -> None:
        """Set the process's language to `code` and draw every word anew, doing nothing again; ignore an unknown one."""
        if code == language() or code not in LANGUAGES:
            return
        with DRAWING:
            use_language(code)
            Part.rewording = True  # a list whose words change is chosen from by nobody
            try:
                reword()
            finally:
                Part.rewording = False
            self._draw(self.session.state)

    def press(self, name: str, offer: object = None, view: object = None) -> None:
        """Do what the button `name` of the foot is for, such as "stop", "main" or "other0".

        A press on a foot that was drawn before the present one (`offer` is its number) does nothing, but for "stop": of
        many quick presses the first counts. `view` is the page of the browser that the press came from.
        """
        if name == "stop":
            self.session.cancel()
            return
        with DRAWING:
            self.catch_up()
            footer = self._footer(self._drawn)
            if offer not in (None, self.foot.offer):
                return
        actions = {"main": footer.actions if footer.able else ()}
        actions |= {f"other{number}": other.actions for number, other in enumerate(footer.others)}
        self._do(actions.get(name, ()), view)

    def _do(self, actions: Iterable[ButtonAction], view: object) -> None:
        """Do what a button is for; what only the browser can do is sent to its page `view`."""
        for action in actions:
            if isinstance(action, OpenNotebook):
                self._opened = action
                send_notebook(self.foot, action, view)
            elif isinstance(action, AskBrowser):
                self._asked = action
                if action.done:
                    with DRAWING:
                        self.foot.note = html.inline(action.done)
                self.foot.send({"event": action.event, "detail": action.detail, "view": view})
            else:
                self.session.dispatch(action)
            with DRAWING:
                self._pages[self._drawn.page].note(action)

    def follow(self) -> None:
        """Show each state that the session comes to, until the wizard is closed.

        What comes in quick succession is drawn once, so that no output can flood the front end.
        """
        while self.comm is not None:
            self.session.wait(self._drawn, LOOK_SECONDS)
            try:
                self.catch_up()
            except Exception:  # noqa: BLE001 - if one state cannot be drawn, the next one may
                traceback.print_exc()
            time.sleep(PAUSE_SECONDS)

    def catch_up(self) -> None:
        """Show the session's present state, if it is not shown yet."""
        with DRAWING:
            if self.session.state is not self._drawn:
                self._draw(self.session.state)

    def _draw(self, state: State) -> None:
        """Draw head, banner, page and foot of a state, and remember when its task began."""
        with DRAWING, self.hold_sync():
            if self._drawn.running is not state.running:
                self._since = time.time()
            self._drawn = state
            self.banner.value = draw_banner(state)
            with self.head.hold_sync():
                draw_head(self.head, state)
                self._draw_page(state)
            with self.foot.hold_sync():
                self._draw_foot(state)

    def _draw_page(self, state: State) -> None:
        """Show the page of a state between head and foot, below the banner; make it if it has not been shown yet."""
        page = state.page
        if page not in self._pages:
            self._pages[page] = PAGES[page](self.session)
        view = self._pages[page]
        with view.quiet():
            view.follow(state)
        parts = (self.banner, *self._in_place(view.parts))
        if self.middle.children != parts:
            self.middle.children = parts
        self.head.hidden = [place for place, part in enumerate(parts) if part in view.hidden]

    def _in_place(self, parts: Sequence[widgets.Widget]) -> Iterable[widgets.Widget]:
        """Yield the parts of a page, and each fold's box after it; the page is drawn anew when one of them is opened.

        The last box has its place once it holds something: nothing stands below it.
        """
        for part in parts:
            yield part
            if isinstance(part, Foldable):
                part.observe(self._refold, "unfolded")
            if isinstance(part, Fold) and (part is not parts[-1] or part.box.children):
                yield part.box

    def _refold(self, _change: object) -> None:
        with DRAWING:
            self._draw_page(self._drawn)

    def _footer(self, state: State) -> Footer:
        return (
            busy_footer(state) if state.running and not _reads_aside(state) else self._pages[state.page].footer(state)
        )

    def _draw_foot(self, state: State) -> None:
        """Show the foot's buttons, note and progress; if a press on it now means something else, raise its number."""
        shown = self._footer(state)
        # What is read of environments beside a page ends without changing what its buttons mean.
        beside = _reads_aside(state) and state.running is not None and state.running.is_about_environments
        offer = (*shown.offer, None if beside else state.running)
        if offer != self._offered:
            self._offered, self.foot.offer = offer, self.foot.offer + 1
        others = [(f"other{number}", other.label, True) for number, other in enumerate(shown.others)]
        stop = [("stop", say("Cancel"), shown.cancel)] if state.running else []
        main = [("main", shown.label, shown.able)] if shown.label else []
        self.foot.buttons = [*main, *others, *stop]
        self.foot.note, self.foot.status = html.inline(shown.note), status_line(state)
        draw_progress(self.foot, state, self._since)

    def _handle_head_message(self, _widget: object, content: object, _buffers: object) -> None:
        """Send a file, change the language, show a page or do what was pressed, as a message of the head asks.

        Any other message is ignored, and so is a press on what the page does not show any more.
        """
        message = content if isinstance(content, dict) else {}
        key, code, press = message.get("file"), message.get("language"), message.get("press")
        if isinstance(press, str):
            with DRAWING:
                self.catch_up()
                actions = self._pages[self._drawn.page].pressed(press, self._drawn)
                self._draw(self._drawn)  # what was pressed may show more
            self._do(actions, message.get("view"))
        if isinstance(key, str):
            self.session.run_aside(lambda: self._send_file(key, message))
        if isinstance(code, str):
            self.session.run_aside(lambda: self.speak(code))
        for page in PAGES:
            if page.value == message.get("page"):
                self.session.dispatch(Show(page=page))

    def _send_file(self, key: str, message: dict[str, object]) -> None:
        """Send the file `key`, with the fields of `message`, to the browser; do nothing if there is none.

        What a fold shows when it is opened is drawn now, and sent as a file is.
        """
        state = self.session.state
        file = (key, LATER[key](state).encode()) if key in LATER else find_file(state, key)
        if file:
            self.head.send({**message, "name": file[0]}, buffers=[file[1]])

    def _handle_foot_message(self, _widget: object, content: object, _buffers: object) -> None:
        """Do what was pressed in the foot; if the browser refused a notebook, write it; if anything else, say so."""
        message = content if isinstance(content, dict) else {}
        if message.get("refused") == OPEN_NOTEBOOK:
            self.session.run_aside(self._write_notebook)
        elif self._asked and message.get("refused") == self._asked.event:
            with DRAWING:
                self.foot.note = html.inline(self._asked.refused)
        else:
            self.press(str(message.get("press")), message.get("offer"), message.get("view"))

    def _write_notebook(self) -> None:
        """Write the starter notebook that the browser refused into this folder; show in the foot where, or why not.

        Nothing happens if none was to be opened.
        """
        if self._opened:
            try:
                note = write_notebook(self._opened)
            except AssistantError as error:
                note = render(sentences((error.message, error.hint)))
            with DRAWING:
                self.foot.note = html.inline(note)


def _reads_aside(state: State) -> bool:
    """Return whether what runs only reads, beside a page that goes on offering what it does."""
    return state.page in {Page.SETUP, Page.WRONG} and state.running is not None and state.running.only_reads


def find_wizard(machine: str | None = "") -> SetupWizard | None:
    """Return this kernel's wizard if it is changing something, or if it was opened for this machine; else None.

    For None as the machine, only one that is changing something is returned; one that was closed never is.
    """
    for asked, wizard in _current:
        if wizard.comm is not None and (wizard.session.state.held or asked == machine):
            return wizard
    return None


def show_wizard(machine: str = "", host: Host | None = None) -> SetupWizard:
    """Return this kernel's wizard, or replace it by a new one for another machine, or if a `host` is given.

    `machine` names a recorded machine, "" the one that the kernel runs on.

    One that is changing something is always returned as it is.
    """
    wizard = find_wizard(machine)
    if wizard and (wizard.session.state.held or host is None):
        return wizard
    return replace_wizard(machine, State(), host, machine)


def replace_wizard(asked: str, begins: State, host: Host | None = None, simulated: str = "") -> SetupWizard:
    """Cancel and close this kernel's wizard, and return a new one, which detects the machine in a thread.

    It is found again by `asked`, and its state is `begins`; `simulated` names a recorded machine to look at.
    """
    if _current:
        _asked, old = _current.pop()
        old.session.cancel()
        old.close()
    session = Session(host or LiveHost(), ThreadRunner(), Store(), begins, asks=True, guided=True)
    if simulated:
        session.dispatch(Simulate(machine=simulated))
    wizard = SetupWizard(session)
    # A copy of this context: there ipykernel keeps which message it answers (see `ThreadRunner`).
    threading.Thread(target=copy_context().run, args=(wizard.follow,), daemon=True, name="assistant-drawing").start()
    _current.append((asked, wizard))
    session.begin(Task.DETECT)
    return wizard


_current: list[tuple[str, SetupWizard]] = []  # one wizard per kernel, and what was asked for


_CELL = "a cell"  # in place of the name of a machine


def open_at_cell(printed: str, python: str) -> SetupWizard:
    """Return a wizard that shows what is wrong with a cell, by what it printed and the Python of its kernel.

    A wizard of this kernel that is changing something is returned instead, as it is; any other is replaced, also one
    that looks for the cause of another cell.
    """
    wizard = find_wizard(None)
    if wizard and wizard.session.state.running is not Task.DIAGNOSE:
        return wizard
    return replace_wizard(_CELL, state_for_cell(printed, python))
