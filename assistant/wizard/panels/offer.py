"""The offer to go on with the setup that was saved."""

from __future__ import annotations

import ipywidgets as widgets

from assistant.i18n import say, sentences
from assistant.model.event import Step
from assistant.model.finding import Severity
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
        self._session, self._saved = session, session.saved()
        self.resume.on_click(lambda _button: self._resume())
        self.drop.on_click(lambda _button: self._drop())

    def draw(self, state: State) -> None:
        """Say where the saved setup stood, or why it cannot be gone on with here."""
        saved, found = self._saved, state.detection
        worth = saved and (saved.state is None or worth_telling(saved.state))
        offered = bool(worth and found and not state.machine and state.environment is None)
        show(self, visible=offered)
        if not (offered and saved and found):
            return
        reason = obstacle(saved, found.machine)
        lines = [_said(saved), *([reason] if reason else remarks(saved))]
        self.text.value = html.note(Severity.WARNING if reason else Severity.INFO, sentences(lines))
        finished = saved.state is not None and furthest(saved.state) is Step.EXPORT
        self.resume.description = say("Show it") if finished else say("Continue from there")
        self.drop.description = say("Start over")
        show(self.resume, visible=not reason)
        show(self.drop, visible=not saved.in_use)

    def close(self) -> None:
        """Free every model."""
        for child in self.children:
            child.close()
        super().close()

    def _resume(self) -> None:
        if self._saved and self._saved.state:
            state, found = self._saved.state, self._session.state
            known = {"pythons": found.pythons, "log_file": found.log_file, "page": Page.SETUP}
            self._saved = None
            self._session.dispatch(Resume(state=replace(state, **known)))

    def _drop(self) -> None:
        self._session.drop()
        self._saved = None
        self.draw(self._session.state)


def _said(saved: Saved) -> str:
    """Say how far a saved setup came."""
    if saved.state is None:
        return say("A setup was saved on {when}.", when=saved.at)
    step = furthest(saved.state)
    if step is Step.EXPORT:
        return say("The setup of {when} is finished.", when=saved.at)
    return say("A setup of {when} got as far as {step}.", when=saved.at, step=titles()[step])
