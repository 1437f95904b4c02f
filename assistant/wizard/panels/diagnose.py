"""Diagnose: the causes of what failed or of a pasted log, what else is wrong, and the fixes."""

from __future__ import annotations

import shlex

import ipywidgets as widgets

from assistant.i18n import render, say, sentences
from assistant.markup import Markup, joined
from assistant.model.event import Step
from assistant.model.finding import Diagnosis, Remedy, Severity
from assistant.model.record import replace
from assistant.model.visible import visible
from assistant.session.actions import Begin, Mend, Paste, Show, Wish
from assistant.session.reducer import blockers
from assistant.session.remediation import commands_for, named, ways
from assistant.session.session import Session
from assistant.session.state import Outcome, Page, Phase, State, Task
from assistant.wizard import html
from assistant.wizard.footer import Footer, Other
from assistant.wizard.panels.base import PageView, failure, log_view
from assistant.wizard.panels.onnx import OnnxPage
from assistant.wizard.shared_widgets import Drawing, make, show

LABEL = 100  # chosen: characters of a fix that a list shows


class WrongPage(PageView):
    """Causes with their fixes, findings, a place to paste a log from anywhere, and a button that applies a fix."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.body, self.lines = make(Drawing), make(Drawing)
        self.log = make(
            widgets.Textarea,
            description=say("A log"),
            placeholder=say("Paste an error message or a whole log."),
            continuous_update=False,
            rows=6,
        )
        self.on_value(self.log, lambda text: Paste(log=text))
        self.fix = make(widgets.Dropdown, description=say("Fix"))
        self.on_value(self.fix, lambda way: Mend(way=way or ""))
        self.preview, self.apply = make(Drawing), make(widgets.Button)
        self.apply.on_click(lambda _button: self._apply())
        self.open, self.page = make(widgets.Button, description=say("Examine an ONNX model")), make(widgets.VBox)
        self.open.on_click(lambda _button: self._onnx_page())
        self.parts = (self.log, self.body, self.fix, self.preview, self.apply, self.lines, self.open, self.page)

    def fields(self) -> tuple[widgets.Widget, ...]:
        """Return the box for a log."""
        return (self.log,)

    def footer(self, state: State) -> Footer:
        """Offer to look for causes."""
        reasons = blockers(state, Task.DIAGNOSE)
        back = Other(label=say("Back"), actions=(Show(page=Page.SETUP),))
        actions = () if reasons else (Begin(task=Task.DIAGNOSE),)
        return Footer(label=say("Find the cause"), actions=actions, able=not reasons, others=(back,))

    def _onnx_page(self) -> OnnxPage:
        """Return the page for an ONNX model, made when it is first asked for."""
        if not self.page.children:
            self.page.children = (OnnxPage(self.session.dispatch),)
        page: OnnxPage = self.page.children[0]
        return page

    def _apply(self) -> None:
        """Apply the chosen fix; one that is a plan becomes the request that the plan step works on."""
        fix = self.offered.get(self.fix.value)
        if fix and fix.plan:
            self.session.dispatch(Wish(request=replace(self.request, backend=fix.plan.backend, python=fix.plan.python)))
            self.session.dispatch(Begin(task=Task.PLAN))
        elif fix:
            self.session.dispatch(Mend(way=self.fix.value))
            self.session.dispatch(Begin(task=Task.MEND))

    def follow(self, state: State) -> None:
        """Offer the fixes that can be applied here, and show how far the examination of a model is."""
        self.body.value = draw_causes(state)
        self.log.value = state.pasted
        self.offered, self.request = _offered(state), state.request
        options = [(_label(fix), name) for name, fix in self.offered.items()]
        if list(self.fix.options) != options:
            self.fix.options = options
        if self.offered:
            self.fix.value = state.way if state.way in self.offered else self.fix.value or next(iter(self.offered))
        chosen = self.offered.get(self.fix.value)
        self.apply.description = say("Make this plan") if chosen and chosen.plan else say("Apply it, then check")
        self.preview.value = _preview(chosen, state) if chosen else html.NOTHING
        for widget in (self.fix, self.apply):
            show(widget, visible=bool(chosen))
        shown = state.running is Task.MEND or state.mended
        self.lines.value = log_view(state.log, state.log_file) if shown else html.NOTHING
        if state.onnx:
            self._onnx_page().update(state.onnx)


def draw_causes(state: State) -> Markup:
    """Show causes and findings, or that there is none, and how the fixes that were tried ended."""
    top = html.heading(say("Is anything wrong?"), say("What detection and verification noticed, and what failed."))
    worth = [finding for finding in state.findings if finding.severity in {Severity.WARNING, Severity.ERROR}]
    found = joined([*map(_cause, state.diagnoses), *map(html.finding, worth)])
    following = say("What you paste is read here, in this kernel, and sent nowhere.")
    if _offered(state):
        following += " " + say("A fix is applied only when you press its button.")
    return (
        top
        + failure(state, Step.DIAGNOSE)
        + html.section(say("What was tried"), _tried(state))
        + html.section(say("What was found"), found or _nothing(state))
        + html.section(say("What will happen"), html.paragraph(following))
    )


def _offered(state: State) -> dict[str, Remedy]:
    """Return the fixes that one press can apply: a plan to make, or commands that need no shell and no other rights."""
    able = ways(state)
    plans = {} if state.elsewhere else named(state)
    return {name: fix for name, fix in named(state).items() if name in able or (name in plans and fix.plan)}


def _label(fix: Remedy) -> str:
    text = visible(render(fix.text))
    return text if len(text) <= LABEL else f"{text[: LABEL - 1]}…"


def _preview(fix: Remedy, state: State) -> Markup:
    """Say what pressing the button will do."""
    if fix.plan:
        text = say("This makes a plan for {backend} with Python {python}; nothing is installed before you agree.")
        return html.paragraph(text.format(backend=fix.plan.backend.title, python=fix.plan.python))
    commands = commands_for(fix, state.environment) if state.environment else ()
    typed = [shlex.join(words) for words in commands or ()]
    settings = [f"{name}={value}" for name, value in fix.env.items()]
    parts = ((say("These commands will run:"), typed), (say("These variables will be set in the kernel:"), settings))
    return joined(html.paragraph(title) + html.code("\n".join(lines)) for title, lines in parts if lines)


def _tried(state: State) -> Markup:
    fixes = named(state)
    words = {
        Outcome.FIXED: (Severity.OK, say("Fixed: {way}")),
        Outcome.NOT_FIXED: (Severity.WARNING, say("Applied, but the problem remains: {way}")),
        Outcome.DONE: (Severity.INFO, say("Applied; whether it helped cannot be checked here: {way}")),
    }
    known = ((*words[outcome], fixes[name].text) for name, outcome in state.mended.items() if name in fixes)
    return joined(html.note(severity, text.format(way=way)) for severity, text, way in known)


def _nothing(state: State) -> Markup:
    """Say that nothing is wrong, or that nobody knows this log, with what comes nearest and a report to hand on."""
    if state.status(Step.DIAGNOSE).phase is not Phase.DONE:
        return html.NOTHING
    if not state.inquiry:
        return html.note(Severity.OK, say("No problems found."))
    nearest = html.paragraph(say("The nearest known problems:")) + html.bullets(state.near) if state.near else ""
    report = html.details(say("A report to paste into an issue, private things removed"), html.code(state.inquiry))
    return html.note(Severity.INFO, say("No known problem matches this log."), joined([nearest, report]))


def _cause(diagnosis: Diagnosis) -> Markup:
    evidence = html.code("\n".join(map(render, diagnosis.evidence))) if diagnosis.evidence else html.NOTHING
    severity = Severity.ERROR if diagnosis.sure else Severity.INFO
    text = sentences((diagnosis.title, diagnosis.cause))
    return html.note(severity, text, html.details(say("Evidence"), evidence) + html.remedies(diagnosis.remedies))
