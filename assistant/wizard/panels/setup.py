"""The setup on one page: the choice and one button, then the work, then what can be done with it."""

from __future__ import annotations

from assistant.catalog.bundles import Bundle, bundle_of, bundles
from assistant.i18n import render, say
from assistant.markup import Markup, joined, tag
from assistant.model.event import Step
from assistant.model.finding import Severity
from assistant.model.record import replace
from assistant.session.actions import Action, Begin, Show, Wish
from assistant.session.progress import Overall
from assistant.session.reducer import blockers
from assistant.session.session import Session
from assistant.session.state import Page, State, Task
from assistant.wizard import html
from assistant.wizard.footer import Footer, Other
from assistant.wizard.head import Offer
from assistant.wizard.panels.base import PageView, close_all, failure, log_view
from assistant.wizard.panels.change import Changes
from assistant.wizard.panels.choice import draw_choice, draw_why
from assistant.wizard.panels.done import Done, draw_done
from assistant.wizard.panels.install import PACKAGE, draw_commands, draw_work
from assistant.wizard.panels.machine import draw_machine, draw_machine_line
from assistant.wizard.shared_widgets import Chips, Drawing, Fold, make
from assistant.wizard.stage import Stage, failed_step, repeated, stage


def _packages(bundle: Bundle) -> str:
    """Name what a bundle brings, in short."""
    return " + ".join(bundle.requirements[:3]) + (" …" if bundle.requirements[3:] else "") or "torch, numpy, pip"


class SetupPage(PageView):
    """What the machine gets, one button, and all else folded away."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.lead, self.offer = make(Drawing), Offer(session)
        self.why, self.commands, self.log = (make(Drawing) for _number in range(3))
        self.changes, self.done = Changes(session), Done(session)
        self.bundle = make(Chips, description=say("What for?"))
        self.on_value(self.bundle, lambda key: Wish(request=replace(session.state.request, bundle=key)))
        self.folds = {
            "why": make(Fold, title=say("Why this one, and what else would work")),
            "commands": make(Fold, title=say("The exact commands and the folder")),
            "change": make(Fold, title=say("Change something: machine, version, Python, folder, nightly builds")),
            "log": make(Fold, title=say("What is being done (log)")),
        }
        self._views = {
            Stage.LOOKING: (self.lead, self.folds["change"], self.changes.box),
            Stage.READY: (
                self.lead,
                self.bundle,
                self.offer,
                self.folds["why"],
                self.why,
                self.folds["commands"],
                self.commands,
                self.folds["change"],
                self.changes.box,
            ),
            Stage.WORKING: (self.lead, self.folds["log"], self.log),
            Stage.FAILED: (self.lead, self.folds["log"], self.log, self.folds["change"], self.changes.box),
            Stage.DONE: (self.lead, *self.done.parts, self.folds["log"], self.log),
        }
        self.parts = self._views[Stage.LOOKING]

    def follow(self, state: State) -> None:
        """Show the view of this state, and the controls' values."""
        now = stage(state)
        self.parts = self._views[now]
        overall = self.session.meter.overall() if now is Stage.WORKING else None
        self.lead.value = _draw_working(state, overall) if now is Stage.WORKING else DRAWN[now](state)
        self.offer.draw(state)
        if state.planning and state.plan:
            self.why.value = draw_why(state.planning, state.plan) + html.section(
                say("The machine"), draw_machine(state)
            )
            self.commands.value = draw_commands(state)
        self.log.value = log_view(state.log, state.log_file)
        if now is Stage.DONE:
            self.done.update(state)
        options = [{"key": one.key, "title": render(one.name), "lead": _packages(one)} for one in bundles()]
        if list(self.bundle.options) != options:
            self.bundle.options = options
        self.bundle.value = bundle_of(state.request.bundle).key
        self.changes.update(state)

    def footer(self, state: State) -> Footer:
        """Offer to install, to try again, or to open a notebook."""
        now = stage(state)
        if now is Stage.DONE:
            return self.done.footer(state)
        if now is Stage.FAILED:
            wrong = Other(label=say("Find the cause"), actions=(Show(page=Page.WRONG), Begin(task=Task.DIAGNOSE)))
            return Footer(label=say("Try again"), actions=(Begin(task=repeated(state)),), others=(wrong,))
        if state.machine and state.plan:
            note = say("This is a simulation of another machine, so nothing can be installed.")
            return Footer(label=say("Install"), able=False, note=note, cancel=state.running is not None)
        reasons = blockers(state, Task.INSTALL)
        actions: tuple[Action, ...] = () if reasons else (Begin(task=Task.INSTALL),)
        busy = state.running is not None
        return Footer(label=say("Install"), actions=actions, able=not reasons, note=_promise(state), cancel=busy)

    def close(self) -> None:
        """Free every model, those that are not shown now among them."""
        for widget in dict.fromkeys(part for parts in self._views.values() for part in parts):
            close_all(widget)


def _promise(state: State) -> str:
    """Say what pressing the button does to what stands here, or what it still waits for."""
    preview = state.preview
    if state.running is Task.PREPARE:
        return say("Working out every package …")
    if preview is None:
        return say("Looking at this machine …")
    if preview.ready:
        return say("Nothing has to be installed: it is checked and can be used at once.")
    if preview.site:
        return say("The environment in this folder is changed; if anything fails, it is restored.")
    return say("Nothing is changed before you press. It goes into an environment of its own, which can be removed.")


def _draw_looking(_state: State) -> Markup:
    return html.heading(say("Looking at this machine …"), say("This takes a few seconds and changes nothing."))


def _draw_choice(state: State) -> Markup:
    plan, found = state.plan, state.detection
    if plan is None or found is None:
        return _draw_looking(state)
    wrong = [finding for finding in state.findings if finding.severity in {Severity.WARNING, Severity.ERROR}]
    package = html.fetch(say("a setup package for such PCs"), PACKAGE)
    return joined(
        [
            draw_machine_line(found.machine),
            draw_choice(state, plan, found.machine),
            tag("p", package) if state.machine else "",
            failure(state, Step.INSTALL),
            *(html.note(Severity.WARNING, line) for line in plan.warnings),
            *map(html.finding, wrong),
        ]
    )


def _draw_working(state: State, overall: Overall | None) -> Markup:
    title = say("Installing") if state.running is Task.INSTALL else say("Checking that it computes correctly")
    step = state.running.step if state.running else Step.INSTALL
    return html.heading(title) + failure(state, step) + (draw_work(overall) if overall else html.NOTHING)


def _draw_failed(state: State) -> Markup:
    step = failed_step(state) or Step.DETECT
    titles = {
        Step.DETECT: say("The machine could not be looked at"),
        Step.PLAN: say("No PyTorch was found for this machine"),
        Step.INSTALL: say("Nothing was installed"),
        Step.VERIFY: say("The verification did not finish"),
    }
    return html.heading(titles[step]) + failure(state, step)


DRAWN = {
    Stage.LOOKING: _draw_looking,
    Stage.READY: _draw_choice,
    Stage.FAILED: _draw_failed,
    Stage.DONE: draw_done,
}
