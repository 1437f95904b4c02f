"""The composition: head, one panel, one footer, all following one session."""

from __future__ import annotations

import threading
import time
from typing import Any

import ipywidgets as widgets

from assistant.host.base import Host
from assistant.host.live import IN_BROWSER, LiveHost
from assistant.i18n import LANGUAGES, language, say, use_language
from assistant.model.event import Step
from assistant.session.actions import Show, Simulate
from assistant.session.runner import LoopRunner, ThreadRunner
from assistant.session.session import Session
from assistant.session.state import Phase, State, Task
from assistant.session.store import Store
from assistant.wizard import head, html
from assistant.wizard.footer import footer, press
from assistant.wizard.page import file_of
from assistant.wizard.panels import PANELS, Panel
from assistant.wizard.shared_widgets import Buttons, Drawing, Stepper, make

DEMO = "linux-arch-rx6700xt-directml"  # what is looked at where there is no machine at hand


class SetupWizard(widgets.VBox):  # type: ignore[misc]  # the library has no types
    """The guided setup as a widget; `session` holds everything that it knows."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.add_class("ptsa-wizard")
        self.session = session
        self._lock = threading.RLock()
        self._panels: dict[Step, Panel] = {}
        self._replaced: dict[Step, Panel] = {}  # those of another language, until their step is shown again
        self._since = time.time()  # when the running task began
        self._offered: tuple[object, ...] = ()
        self.stepper = Stepper()
        self.stepper.on_msg(self._on_stepper)
        languages = [(name, code) for code, name in LANGUAGES.items()]
        self.language = make(widgets.Dropdown, options=languages, value=language())
        self.language.add_class("ptsa-language")
        self.language.observe(lambda change: session.aside(lambda: self.speak(change["new"])), "value")
        self.banner, self.offers = make(Drawing), head.Offer(session)
        self.notice, self.heading = make(Drawing), make(Drawing)  # of whichever panel is shown
        self.panel = make(widgets.VBox)
        self.buttons = make(Buttons)
        self.buttons.on_msg(self._on_button)
        self.children = (self.stepper, self.language, self.banner, self.offers, self.panel, self.buttons)
        session.watch(self._follow)
        self._draw(session.state)

    def __repr__(self) -> str:
        """Stay the same in every run: notebooks are compared by what their cells print."""
        return "SetupWizard()"

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:  # noqa: ANN401 - the library's own signature
        return {**super()._repr_mimebundle_(**options), "text/plain": head.instead_of_wizard()}

    def close(self) -> None:
        """Free every model; closing the root alone would leave the others."""
        for part in (*self._panels.values(), *self._replaced.values(), *self.children, self.notice, self.heading):
            part.close()
        super().close()

    def speak(self, code: str) -> None:
        """Go on in another language: every word is drawn anew; nothing is done again."""
        if code == language() and self.language.value == code:
            return
        with self._lock:
            use_language(code)
            self.language.value = code
            self._replaced, self._panels = {**self._replaced, **self._panels}, {}
            self._draw(self.session.state)

    def press(self, name: str, offer: object = None) -> None:
        """Do what a button says (back, main or stop); of many quick presses those that saw older words do nothing."""
        with self._lock:
            state, stale = self.session.state, offer not in (None, self.buttons.offer)
            back = footer(state).back
        actions = {"back": (Show(step=back),) if back else (), "main": () if stale else press(state)}
        for action in actions.get(name, ()):
            self.session.dispatch(action)
        if name == "stop":
            self.session.cancel()

    def _follow(self, old: State, new: State) -> None:
        if old.running is None and new.running:
            self._since = time.time()
        self._draw(new)
        looked_at = (new.machine, new.overrides)
        if (old.machine, old.overrides) != looked_at and new.status(Step.DETECT).phase is not Phase.DONE:
            self.session.begin(Task.DETECT)
        if old.running is Task.ONNX and new.running is None and new.onnx and new.onnx.unfinished:
            self.session.begin(Task.ONNX)

    def _draw(self, state: State) -> None:
        with self._lock, self.hold_sync():
            with self.stepper.hold_sync():
                head.draw_steps(self.stepper, state, self._since)
            self.banner.value = head.banner(state)
            self.language.description = say("Language")
            self.offers.draw(state)
            self._draw_panel(state)
            with self.buttons.hold_sync():
                self._draw_footer(state)

    def _draw_panel(self, state: State) -> None:
        step = state.current
        old = self._replaced.pop(step, None)
        if step not in self._panels:
            self._panels[step] = PANELS[step](self.session.dispatch)
            if old:
                self._panels[step].adopt(old)
        panel = self._panels[step]
        panel.update(state)
        self.notice.value = panel.failure(state)
        self.heading.value = html.controls_heading()
        parts = (panel.body, self.notice, *panel.pictures, self.heading, *panel.handles)
        if self.panel.children != parts:
            self.panel.children = parts
        if old:
            old.close()

    def _draw_footer(self, state: State) -> None:
        offered = footer(state)
        offer = (offered.label, offered.actions, state.running)
        if offer != self._offered:
            self._offered, self.buttons.offer = offer, self.buttons.offer + 1
        self.buttons.buttons = [
            ("back", say("Back"), offered.back is not None),
            ("main", offered.label, not offered.why),
            ("stop", say("Cancel"), offered.cancel),
        ]
        self.buttons.why = html.reasons(offered.why if state.running is None else ())

    def _on_stepper(self, _widget: object, content: object, _buffers: object) -> None:
        message = content if isinstance(content, dict) else {}
        key = message.get("file")
        if isinstance(key, str):
            self.session.aside(lambda: self._send_file(key, message))
        for step in Step:
            if step.value == message.get("show"):
                self.session.dispatch(Show(step=step))

    def _send_file(self, key: str, message: dict[str, object]) -> None:
        """Send the file that a link or a fold stands for to the page in which it was pressed."""
        if file := file_of(self.session.state, key):
            self.stepper.send({**message, "name": file[0]}, buffers=[file[1]])

    def _on_button(self, _widget: object, content: object, _buffers: object) -> None:
        message = content if isinstance(content, dict) else {}
        self.press(str(message.get("press")), message.get("offer"))


def open_here(machine: str = "", host: Host | None = None) -> SetupWizard:
    """Show this kernel's wizard: one that is at work as it stands, else a new one, which begins by looking."""
    if _current and _current[-1].session.state.running and _current[-1].comm is not None:
        return _current[-1]
    if _current:
        _current.pop().close()
    session = Session(host or LiveHost(), LoopRunner() if IN_BROWSER else ThreadRunner(), Store(), asks=True)
    if machine or IN_BROWSER:
        session.dispatch(Simulate(machine=machine or DEMO))
    wizard = SetupWizard(session)
    _current.append(wizard)
    session.begin(Task.DETECT)
    return wizard


_current: list[SetupWizard] = []  # one wizard per kernel
