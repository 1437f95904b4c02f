"""The end of a setup: what can be done with the finished environment."""

from __future__ import annotations

import ipywidgets as widgets

from assistant.export import terminal_line
from assistant.i18n import say
from assistant.markup import Markup, tag
from assistant.model.report import verdict
from assistant.plan import card_name
from assistant.session.actions import Add, Begin, Choose, Show
from assistant.session.session import Session
from assistant.session.state import Page, State, Task
from assistant.session.steps import requirements_of
from assistant.views import plan_title
from assistant.wizard import html
from assistant.wizard.head import Footer, OpenNotebook, Other
from assistant.wizard.panels.base import Part
from assistant.wizard.panels.install import draw_adding, draw_checks, draw_ready, draw_restart
from assistant.wizard.shared_widgets import Chips, Details, Drawing, Fold, make

SAVE = "save"


class Done(Part):
    """Cards to go on with, packages to add, and the checks."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.adding = make(Drawing)
        self.checks = make(Details, title=say("The checks, one by one, with times"))
        self.where = make(Details, title=say("Where it is"))
        self.next = make(Chips, pressed=True, description=say("What next?"))
        self.next.on_msg(self._on_next)
        self.packages = make(
            widgets.Text, description=say("Packages"), placeholder="seaborn, pandas>=2", continuous_update=False
        )
        self.packages.observe(lambda change: self._add(change["new"]), "value")
        self.measure = make(widgets.Button, description=say("Check everything and measure the speed (about a minute)"))
        self.measure.add_class("ptsa-measure")
        self.measure.on_click(lambda _button: self._measure())
        self.parts = (
            self.next,
            make(Fold, title=say("Add packages")),
            make(widgets.VBox, children=(self.packages, self.adding)),
            self.checks,
            self.where,
            self.measure,
        )

    def _add(self, text: str) -> None:
        """Work out what adding packages would change."""
        if not self._quiet and text.strip():
            self.session.dispatch(Add(requirements=requirements_of(text)))
            self.session.begin(Task.ADD)

    def _measure(self) -> None:
        self.session.dispatch(Choose(level="full"))
        self.session.begin(Task.VERIFY)

    def _on_next(self, _widget: object, content: object, _buffers: object) -> None:
        if isinstance(content, dict) and content.get("press") == SAVE:
            self.session.dispatch(Show(page=Page.EXPORT))

    def follow(self, state: State) -> None:
        """Show what was verified, and what is being added."""
        if state.report:
            report = state.report
            self.checks.draw(lambda: draw_checks(report))
        self.where.draw(lambda: draw_ready(state))
        self.next.options = _next(state)
        self.adding.value = draw_adding(state.adding) if state.adding else html.NOTHING

    def footer(self, state: State) -> Footer:
        """Offer to open a notebook, or to add the packages whose changes are shown."""
        adding = state.adding
        if adding and adding.prepared and not adding.installed:
            rest = Other(label=say("Not now"), actions=(Add(requirements=()),))
            return Footer(label=say("Add these packages"), actions=(Begin(task=Task.ADD),), others=(rest,))
        another = Other(label=say("Set up another"), actions=(Begin(task=Task.DETECT),))
        label = say("Open a notebook with it")
        name = state.environment.launcher_name if state.environment else ""
        note = say("Opens a first notebook on the kernel “{name}”.", name=name) if name else ""
        return Footer(label=label, actions=(OpenNotebook(),), note=note, others=(another,))


def draw_done(state: State) -> Markup:
    """Say what works now, and whether the kernel must be restarted for it."""
    report, plan, found = state.report, state.plan, state.detection
    if report is None or plan is None or found is None:
        return html.NOTHING
    card = card_name(found.machine, plan.backend)
    works = say("PyTorch works on your {card}", card=card) if card else say("PyTorch works on your processor")
    title = works if report.usable else say("PyTorch is installed, but some checks failed")
    line = tag("p", plan_title(plan), class_="ptsa-machine")
    judged = html.paragraph(verdict(report), "ok" if report.passed else "warning")
    return line + html.heading(title) + judged + draw_restart(state)


def _next(state: State) -> list[dict[str, str]]:
    """List what can be done with the finished environment."""
    if state.environment is None or state.plan is None or state.detection is None:
        return []
    return [
        {
            "key": "terminal",
            "title": say("Use it in a terminal"),
            "lead": say("copies the line to type"),
            "copy": terminal_line(state.environment, state.plan),
        },
        {
            "key": "vscode",
            "title": say("Use it in VS Code"),
            "lead": say("copies the interpreter's path"),
            "copy": state.environment.python,
        },
        {"key": SAVE, "title": say("Save the configuration"), "lead": say("colleague, project, container, bug report")},
    ]
