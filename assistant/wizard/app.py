"""The composition: stepper, one panel, one footer, all following one session."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any

import ipywidgets as widgets

from assistant.host.live import LiveHost
from assistant.i18n import _
from assistant.machines import label
from assistant.model.event import Step
from assistant.model.finding import Severity
from assistant.model.record import replace
from assistant.session.resume import furthest, resumable
from assistant.session.runner import Runner, ThreadRunner
from assistant.session.session import Session
from assistant.session.state import Resume, Show, State, Task
from assistant.session.store import Store
from assistant.wizard import html
from assistant.wizard.flow import footer, press, titles, word
from assistant.wizard.panels import PANELS, Panel
from assistant.wizard.stepper import Stepper

__all__ = ["SetupWizard", "show"]


class SetupWizard(widgets.VBox):  # type: ignore[misc]  # the library has no types
    """The guided setup as a widget; `session` holds everything that it knows."""

    def __init__(self, session: Session, saved: State | None = None, saved_at: str = "") -> None:
        super().__init__()
        self.add_class("ptsa-wizard")
        self.session = session
        self._lock = threading.RLock()
        self._panels: dict[Step, Panel] = {}
        self.stepper = Stepper(label=_("Steps of the setup"), progress_label=_("Progress"))
        self.stepper.on_msg(self._on_stepper)
        self.banner = widgets.HTML()
        self.panel = widgets.VBox()
        self.why = widgets.HTML()
        self.back = _button(_("Back"), self._on_back)
        self.main = _button("", self._on_main, button_style="primary")
        self.stop = _button(_("Cancel"), self._on_cancel)
        buttons = widgets.HBox([self.back, self.main, self.stop])
        buttons.add_class("ptsa-footer")
        self._saved, self._saved_at = saved, saved_at
        self.offer = widgets.HTML()
        self.resume = _button(_("Go on from there"), self._on_resume)
        self.offers = widgets.VBox([self.offer, self.resume])
        self.offers.layout.display = "none"
        self.children = (self.stepper, self.banner, self.offers, self.panel, self.why, buttons)
        session.watch(self._follow)
        self._draw(session.state)

    def __repr__(self) -> str:
        """Stay the same in every run: notebooks are compared by what their cells print."""
        return "SetupWizard()"

    def _follow(self, old: State, new: State) -> None:
        self._draw(new)
        if (old.machine, old.overrides) != (new.machine, new.overrides):
            threading.Thread(target=self.session.begin, args=(Task.DETECT,), daemon=True).start()

    def _draw(self, state: State) -> None:
        with self._lock, self.hold_sync():
            self._draw_stepper(state)
            self._draw_offer(state)
            self._draw_panel(state)
            self._draw_footer(state)

    def _draw_stepper(self, state: State) -> None:
        names = titles()
        self.stepper.steps = [
            {"key": step.value, "title": names[step], "phase": phase.value, "word": word(phase)}
            for step in Step
            for phase in [state.status(step).phase]
        ]
        progress = state.status(state.current).progress
        text = progress.text if progress else ""
        self.stepper.progress = {
            "running": state.running is not None,
            "done": progress.done if progress else 0,
            "total": progress.total if progress else None,
            "text": text,
        }
        phase = state.status(state.current).phase
        self.stepper.status = f"{names[state.current]}: {text or word(phase)}"
        self.stepper.current = state.current.value
        self.banner.value = _simulation(state.machine) if state.machine else ""

    def _draw_offer(self, state: State) -> None:
        """Offer to go on with the setup that was saved, until the user has gone on by himself."""
        saved, found = self._saved, state.detection
        open_ = saved and found and state.plan is None and not state.machine and resumable(saved, found.machine)
        self.offers.layout.display = None if open_ else "none"
        if open_ and saved:
            text = _("A setup of {when} got as far as {step}.")
            text = text.format(when=self._saved_at, step=titles()[furthest(saved)])
            self.offer.value = html.note(Severity.INFO, text)

    def _draw_panel(self, state: State) -> None:
        step = state.current
        if step not in self._panels:
            self._panels[step] = PANELS[step](self.session.dispatch)
            self._panels[step].step = step
        panel = self._panels[step]
        panel.update(state)
        if self.panel.children != (panel.box,):
            self.panel.children = (panel.box,)

    def _draw_footer(self, state: State) -> None:
        offered = footer(state)
        self.main.description = offered.label
        self.main.disabled = bool(offered.why)
        self.back.disabled = offered.back is None
        self.stop.disabled = not offered.cancel
        shown = offered.why if state.running is None else ()
        self.why.value = "".join(f'<p class="ptsa-why">{html.esc(line)}</p>' for line in shown)

    def _on_stepper(self, _widget: object, content: object, _buffers: object) -> None:
        wanted = content.get("show") if isinstance(content, dict) else None
        for step in Step:
            if step.value == wanted:
                self.session.dispatch(Show(step=step))

    def _on_back(self) -> None:
        step = footer(self.session.state).back
        if step:
            self.session.dispatch(Show(step=step))

    def _on_main(self) -> None:
        for action in press(self.session.state):
            self.session.dispatch(action)

    def _on_resume(self) -> None:
        if self._saved:
            self.session.dispatch(Resume(state=replace(self._saved, current=furthest(self._saved))))

    def _on_cancel(self) -> None:
        self.session.cancel()


def _simulation(machine: str) -> str:
    text = _("Simulation of {machine}: nothing can be installed.").format(machine=label(machine))
    return html.note(Severity.WARNING, text)


def show(machine: str = "", runner: Runner | None = None) -> SetupWizard:
    """Make the wizard of this kernel and let it detect; an older one is closed."""
    if _current:
        _current.pop().close()
    store = Store()
    session = Session(LiveHost(), runner or ThreadRunner(), store, State(machine=machine))
    wizard = SetupWizard(session, store.load(), store.saved_at())
    _current.append(wizard)
    session.begin(Task.DETECT)
    return wizard


_current: list[SetupWizard] = []  # one wizard per kernel: closing a widget frees only its root


def _button(description: str, pressed: Callable[[], None], **traits: Any) -> widgets.Button:  # noqa: ANN401
    button = widgets.Button(description=description, **traits)

    @wraps(pressed)
    def on_click(_button: widgets.Button) -> None:
        pressed()

    button.on_click(on_click)
    return button
