"""The composition: stepper, one panel, one footer, all following one session."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import wraps
from typing import Any

import ipywidgets as widgets

from assistant.host.base import Host
from assistant.host.live import IN_BROWSER, LiveHost
from assistant.i18n import LANGUAGES, language, render, say, sentences, use_language
from assistant.machines import label, load
from assistant.model.event import Progress, Step
from assistant.model.finding import Severity
from assistant.model.record import replace
from assistant.model.visible import visible
from assistant.session.actions import Resume, Show, Simulate
from assistant.session.nouns import Phase, State, Task
from assistant.session.resume import furthest, obstacle, remarks, worth_telling
from assistant.session.runner import LoopRunner, ThreadRunner
from assistant.session.session import Session
from assistant.session.store import Store
from assistant.wizard import html
from assistant.wizard.fallback import instead_of_steps, instead_of_wizard
from assistant.wizard.flow import SIGNS, about, footer, press, titles, word
from assistant.wizard.panels import PANELS, Panel
from assistant.wizard.panels.base import changes
from assistant.wizard.panels.export import fetched
from assistant.wizard.parts import made, show
from assistant.wizard.stepper import Buttons, Stepper

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
        self._saved = session.saved()
        self._since, self._told_at = time.time(), 0.0
        self.stepper = Stepper()
        self.stepper.on_msg(self._on_stepper)
        self.language = made(
            widgets.Dropdown, options=[(name, code) for code, name in LANGUAGES.items()], value=language()
        )
        self.language.add_class("ptsa-language")
        self.language.observe(lambda change: session.aside(lambda: self.speak(change["new"])), "value")
        self.banner, self.offer = made(widgets.HTML), made(widgets.HTML)
        self.notice, self.heading = made(widgets.HTML), made(widgets.HTML)  # of whichever panel is shown
        self.panel = made(widgets.VBox)
        self.buttons = made(Buttons)
        self.buttons.on_msg(self._on_button)
        self.resume, self.drop = _button(self._on_resume), _button(self._on_drop)
        self.offers = made(widgets.HBox, children=[self.offer, self.resume, self.drop])
        self.offers.add_class("ptsa-offers")
        self.children = (self.stepper, self.language, self.banner, self.offers, self.panel, self.buttons)
        session.watch(self._follow)
        self._draw(session.state)

    def __repr__(self) -> str:
        """Stay the same in every run: notebooks are compared by what their cells print."""
        return "SetupWizard()"

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:  # noqa: ANN401 - the library's own signature
        return {**super()._repr_mimebundle_(**options), "text/plain": instead_of_wizard()}

    def close(self) -> None:
        """Free every model; closing the root alone would leave the others."""
        for panel in (*self._panels.values(), *self._replaced.values()):
            panel.close()
        for child in (*self.children, *self.offers.children, self.notice, self.heading):
            child.close()
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

    def _follow(self, old: State, new: State) -> None:
        if old.running is None and new.running:
            self._since = time.time()
        self._draw(new)
        looked_at = (new.machine, new.overrides)
        if (old.machine, old.overrides) != looked_at and new.status(Step.DETECT).phase is not Phase.DONE:
            self.session.begin(Task.DETECT)

    def _draw(self, state: State) -> None:
        with self._lock, self.hold_sync():
            with self.stepper.hold_sync():
                self._draw_stepper(state)
            self.banner.value = instead_of_steps() + (simulation(state.machine) if state.machine else "")
            self.language.description = say("Language")
            self._draw_offer(state)
            self._draw_panel(state)
            with self.buttons.hold_sync():
                self._draw_footer(state)

    def _draw_stepper(self, state: State) -> None:
        names, progress = titles(), state.status(state.current).progress
        text = visible(render(progress.text)) if progress else ""
        stands = {step: state.status(step) for step in Step}
        self.stepper.words = _words()
        self.stepper.language = language().replace("_", "-")
        self.stepper.steps = [(step.value, names[step]) for step in Step]
        self.stepper.phases = [(status.phase.value, word(status)) for status in stands.values()]
        self._draw_progress(progress, running=state.running is not None)
        stopping = say("Stopping; what has been begun is taken back.") if state.stopping else ""
        self.stepper.status = about(state.current, stopping or text or word(stands[state.current]))
        self.stepper.current = state.current.value

    def _draw_progress(self, progress: Progress | None, *, running: bool) -> None:
        """Tell whole percents and new texts at once, smaller steps once a second: every message has its price."""
        share = min(100, int(100 * progress.done / progress.total)) if progress and progress.total else 0
        told = {
            "running": running,
            "share": share,
            "text": visible(render(progress.text)) if progress else "",
            "since": self._since,
        }
        told["total"] = bool(progress and progress.total)
        same = {key: self.stepper.progress.get(key) for key in told} == told
        if same and time.monotonic() - self._told_at < 1:
            return
        self._told_at = time.monotonic()
        self.stepper.progress = {**told, "figures": render(progress.figures) if progress else ""}

    def _draw_offer(self, state: State) -> None:
        """Say where the saved setup stood, until the user has gone on by himself."""
        saved, found = self._saved, state.detection
        told = saved and (saved.state is None or worth_telling(saved.state))
        open_ = bool(told and found and not state.machine and state.planning is None and state.running is None)
        show(self.offers, visible=open_)
        if not (open_ and saved and found):
            return
        reason = obstacle(saved, found.machine)
        step = titles()[furthest(saved.state)] if saved.state else ""
        text = say("A setup of {when} got as far as {step}.") if saved.state else say("A setup was saved on {when}.")
        lines = [text.format(when=saved.at, step=step), *([reason] if reason else remarks(saved))]
        self.offer.value = html.note(Severity.WARNING if reason else Severity.INFO, sentences(lines))
        self.resume.description, self.drop.description = say("Go on from there"), say("Drop it")
        show(self.resume, visible=not reason)
        show(self.drop, visible=not saved.in_use)

    def _draw_panel(self, state: State) -> None:
        step = state.current
        old = self._replaced.pop(step, None)
        if step not in self._panels:
            self._panels[step] = PANELS[step](self.session.dispatch)
            if old:
                self._panels[step].adopt(old)
        panel = self._panels[step]
        panel.update(state)
        self.notice.value, self.heading.value = panel.failure(state), changes()
        parts = (panel.body, self.notice, *panel.pictures, self.heading, *panel.handles)
        if self.panel.children != parts:
            self.panel.children = parts
        if old:
            old.close()

    def _draw_footer(self, state: State) -> None:
        offered = footer(state)
        offer = (offered.label, offered.actions, state.running)
        if offer != getattr(self, "_offered", None):
            self._offered, self.buttons.offer = offer, self.buttons.offer + 1
        self.buttons.buttons = [
            ("back", say("Back"), offered.back is not None),
            ("main", offered.label, not offered.why),
            ("stop", say("Cancel"), offered.cancel),
        ]
        shown = offered.why if state.running is None else ()
        self.buttons.why = "".join(f'<p class="ptsa-why">{html.icon("info")}{html.esc(line)}</p>' for line in shown)

    def _on_stepper(self, _widget: object, content: object, _buffers: object) -> None:
        told = content if isinstance(content, dict) else {}
        if isinstance(told.get("file"), str):
            self.session.aside(lambda: self._hand_over(told["file"], told))
        for step in Step:
            if step.value == told.get("show"):
                self.session.dispatch(Show(step=step))

    def _hand_over(self, key: str, asked: dict[str, object]) -> None:
        """Send the file that a link or a fold stands for to the page in which it was pressed."""
        file = fetched(self.session.state, key)
        if file:
            self.stepper.send({**asked, "name": file[0]}, buffers=[file[1]])

    def _on_button(self, _widget: object, content: object, _buffers: object) -> None:
        told = content if isinstance(content, dict) else {}
        self.press(str(told.get("press")), told.get("offer"))

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

    def _on_resume(self) -> None:
        if self._saved and self._saved.state:
            state, found = self._saved.state, self.session.state
            known = {"pythons": found.pythons, "log_file": found.log_file}
            self.session.dispatch(Resume(state=replace(state, current=furthest(state), **known)))

    def _on_drop(self) -> None:
        self.session.drop()
        self._saved = None
        self._draw(self.session.state)


def _words() -> dict[str, str | dict[str, str]]:
    """Give the words, and the signs of phases, that the browser fills in by itself."""
    return {
        "signs": {phase.value: sign for phase, sign in SIGNS.items()},
        "title": say("Set up PyTorch"),
        "steps": say("Steps of the setup"),
        "progress": say("Progress"),
        "elapsed": say("{time} so far"),
        "gone": say("The kernel was restarted or has ended, so nothing here works any more. Run the cell above again."),
    }


def simulation(machine: str) -> str:
    """Say whose machine is looked at, and where it is known from."""
    recording = load(machine)
    text = say("Simulation of {machine}: nothing can be installed.", machine=label(machine))
    origin = (
        say("Recorded on such a machine on {date}.")
        if recording.origin == "recorded"
        else say("Composed from published output ({date}): {source}")
    )
    told = [origin.format(date=recording.date, source=recording.source)]
    if IN_BROWSER:
        told.append(
            say("This page runs in your browser. On your own machine, get the project and run: python3 start.py")
        )
    return html.note(Severity.WARNING, text, "".join(f'<p class="ptsa-lead">{html.esc(line)}</p>' for line in told))


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


def _button(pressed: Callable[[], None], **traits: Any) -> widgets.Button:  # noqa: ANN401
    button = made(widgets.Button, **traits)

    @wraps(pressed)
    def on_click(_button: widgets.Button) -> None:
        pressed()

    button.on_click(on_click)
    return button
