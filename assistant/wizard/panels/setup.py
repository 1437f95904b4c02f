"""The setup on one page: the choice and one button, then the work, then what can be done with it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import ipywidgets as widgets

from assistant.i18n import say
from assistant.session.actions import Action, Begin, Simulate
from assistant.session.reducer import blockers
from assistant.session.session import Session
from assistant.session.state import State, Task
from assistant.wizard.footer import Footer, Other
from assistant.wizard.panels.base import PageView, close_all, log_view
from assistant.wizard.panels.change import Changes
from assistant.wizard.panels.choice import draw_ready_to_install, draw_why
from assistant.wizard.panels.done import Done, draw_done
from assistant.wizard.panels.install import before, draw_commands, draw_failed, draw_working, offer_again
from assistant.wizard.panels.offer import Offer
from assistant.wizard.panels.purposes import Purposes
from assistant.wizard.shared_widgets import Details, Drawing, Fold, make
from assistant.wizard.stage import Stage, stage, unplanned, unresolved


class SetupPage(PageView):
    """What the machine gets, one button, and all else folded away."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.lead, self.offer = make(Drawing), Offer(session)
        self.changes = Changes(session)
        self.purposes = Purposes(session)
        self.why = make(Details, title=say("Why this one, and what else would work"))
        self.commands = make(Details, title=say("The exact commands and the folder"))
        self.log = make(Details, title=say("The log"))
        changes = (self.changes.fold, self.changes.box)
        self._views = {
            Stage.LOOKING: (self.lead, *changes),
            Stage.READY: (self.lead, self.offer, *self.purposes.parts, self.why, self.commands, *changes),
            Stage.WORKING: (self.lead, self.log),
            Stage.FAILED: (self.lead, self.log, *changes),
        }
        self._unplanned = (self.lead, *self.purposes.parts, self.log, *changes)
        self._unresolved = (self.lead, self.offer, *self.purposes.parts, self.why, self.log, *changes)
        self.parts = self._views[Stage.LOOKING]

    @cached_property
    def done(self) -> Done:
        """What comes after a setup; made when the first one is finished."""
        done = Done(self.session)
        self._views[Stage.DONE] = (self.lead, *done.parts, self.log)
        return done

    def follow(self, state: State) -> None:
        """Show the view of this state, and the controls' values."""
        now = stage(state)
        if now is Stage.DONE:
            self.done.update(state)
        self.parts = self._view(state)
        self.lead.value = draw_working(state) if now is Stage.WORKING else DRAWN[now](state)
        self.offer.draw(state)
        if state.planning and state.plan:
            planning, plan = state.planning, state.plan
            self.why.draw(lambda: draw_why(state, planning, plan))
            self.commands.draw(lambda: draw_commands(state))
        self.log.draw(lambda: log_view(state.log, state.log_file))
        self.purposes.update(state)
        self.changes.update(state)

    def _view(self, state: State) -> tuple[widgets.Widget, ...]:
        if unresolved(state):
            return self._unresolved
        return self._unplanned if unplanned(state) else self._views[stage(state)]

    def footer(self, state: State) -> Footer:
        """Offer to install, to try again, or to open a notebook."""
        now = stage(state)
        if now is Stage.DONE:
            return self.done.footer(state)
        if now is Stage.FAILED or (unresolved(state) and not self.offer.installed):
            return offer_again(state)
        if state.machine and state.plan:
            note = say("This is a simulation of another machine, so nothing can be installed.")
            back = Other(label=say("Back to this machine"), actions=(Simulate(machine=""),))
            return Footer(label=say("Install"), able=False, note=note, others=(back,), cancel=state.running is not None)
        reasons = blockers(state, Task.INSTALL)
        actions: tuple[Action, ...] = () if reasons else (Begin(task=Task.INSTALL),)
        busy = state.running is not None
        if self.offer.installed and not busy:
            install = (Other(label=say("Install"), actions=actions),) if actions else ()
            return Footer(label=say("Use it"), actions=self.offer.actions, others=install)
        return Footer(label=say("Install"), actions=actions, able=not reasons, note=before(state), cancel=busy)

    def foldable(self) -> tuple[Fold, ...]:
        """Return every fold, those that are not shown now among them."""
        return tuple(part for part in self._every_part() if isinstance(part, Fold))

    def adopt(self, other: PageView) -> None:
        """Take over the offer, too: what was saved since then is this very setup."""
        if isinstance(other, SetupPage):
            if stage(self.session.state) is Stage.DONE:
                self.done.update(self.session.state)
            self.offer.saved = other.offer.saved
        super().adopt(other)

    def close(self) -> None:
        """Free every model, those that are not shown now among them."""
        for widget in self._every_part():
            close_all(widget)

    def _every_part(self) -> Iterable[widgets.Widget]:
        return dict.fromkeys(part for parts in self._views.values() for part in parts)


DRAWN = {
    Stage.LOOKING: draw_ready_to_install,
    Stage.READY: draw_ready_to_install,
    Stage.FAILED: draw_failed,
    Stage.DONE: draw_done,
}
