"""The offer to go on with the setup that was saved."""

from __future__ import annotations

import ipywidgets as widgets

from assistant.i18n import say, sentences
from assistant.model.event import Step
from assistant.model.finding import Severity
from assistant.model.plan import Request
from assistant.model.record import replace
from assistant.session.actions import Resume
from assistant.session.resume import furthest, obstacle, remarks, worth_telling
from assistant.session.session import Session
from assistant.session.state import Page, State
from assistant.session.store import Saved
from assistant.wizard import html
from assistant.wizard.footer import titles
from assistant.wizard.shared_widgets import Drawing, make, shared, show


class Offer(widgets.HBox):  # type: ignore[misc]  # the library has no types
    """Offers to go on with the setup that was saved, until the user has gone on by himself."""

    def __init__(self, session: Session) -> None:
        self.text, self.resume, self.drop = make(Drawing), make(widgets.Button), make(widgets.Button)
        super().__init__(children=(self.text, self.resume, self.drop), layout=shared(widgets.Layout))
        self.add_class("ptsa-offers")
        self._session, self.saved = session, session.saved()
        self.installed = False  # whether what is offered stands already, so that going on is what most will want
        self.resume.on_click(lambda _button: self._resume())
        self.drop.on_click(lambda _button: self._drop())

    def draw(self, state: State) -> None:
        """Say where the saved setup stood, or why it cannot be gone on with here."""
        if state.environment:
            self.saved = None
        saved, found = self.saved, state.detection
        worth = saved and (saved.state is None or worth_telling(saved.state))
        offered = bool(worth and found and not state.machine and state.environment is None)
        self.installed = False
        show(self, visible=offered)
        if not (offered and saved and found):
            return
        reason = obstacle(saved, found.machine)
        finished = saved.state is not None and furthest(saved.state) is Step.EXPORT
        untouched = not state.target and not state.overrides and state.request == Request()
        self.installed = bool(finished and untouched and not reason)
        lines = [_said(saved), *([reason] if reason else remarks(saved))]
        self.text.value = html.note(Severity.WARNING if reason else Severity.INFO, sentences(lines))
        self.resume.description = say("Use it") if finished else say("Continue from there")
        self.drop.description = say("Start over")
        show(self.resume, visible=not reason and not self.installed)
        show(self.drop, visible=not saved.in_use and not self.installed)

    def close(self) -> None:
        """Free every model."""
        for child in self.children:
            child.close()
        super().close()

    @property
    def actions(self) -> tuple[Resume, ...]:
        """What goes on with the saved setup."""
        if self.saved is None or self.saved.state is None:
            return ()
        state, found = self.saved.state, self._session.state
        known = {"pythons": found.pythons, "log_file": found.log_file, "page": Page.SETUP}
        return (Resume(state=replace(state, **known)),)

    def _resume(self) -> None:
        actions, self.saved = self.actions, None
        for action in actions:
            self._session.dispatch(action)

    def _drop(self) -> None:
        self._session.drop()
        self.saved = None
        self.draw(self._session.state)


def _said(saved: Saved) -> str:
    """Say how far a saved setup came."""
    if saved.state is None:
        return say("A setup was saved on {when}.", when=saved.at)
    step = furthest(saved.state)
    if step is Step.EXPORT:
        return say("The setup of {when} is finished.", when=saved.at)
    return say("A setup of {when} got as far as {step}.", when=saved.at, step=titles()[step])
