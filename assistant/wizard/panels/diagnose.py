"""Diagnose: the causes of what failed or of a pasted log, what else is worth mending, and the mending itself."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

import ipywidgets as widgets

from assistant.i18n import render, say, sentences
from assistant.model.event import Step
from assistant.model.finding import Diagnosis, Remedy, Severity
from assistant.model.record import replace
from assistant.model.visible import visible
from assistant.session.actions import Begin, Mend, Paste, Wish
from assistant.session.mend import commands_for, named, ways
from assistant.session.nouns import Outcome, Phase, State, Task
from assistant.wizard import html
from assistant.wizard.panels.base import Panel, log_view
from assistant.wizard.panels.onnx import OnnxPage
from assistant.wizard.parts import made, show

LABEL = 100  # characters of a way out that a list shows


class DiagnosePanel(Panel):
    """Causes with their ways out, findings, a place to paste a log from anywhere, and a press that mends."""

    def controls(self) -> Iterable[widgets.Widget]:
        """Let the user paste a log and choose a way out; show what the press will do, and the press itself."""
        self.log = made(
            widgets.Textarea,
            description=say("A log"),
            placeholder=say("Paste an error message or a whole log."),
            rows=6,
        )
        self.find = made(widgets.Button, description=say("Find the cause"))
        self.find.on_click(lambda _button: self._find())
        self.way = made(widgets.Dropdown, description=say("A way out"))
        self.on_value(self.way, lambda way: Mend(way=way or ""))
        self.preview, self.mend = made(widgets.HTML), made(widgets.Button)
        self.mend.on_click(lambda _button: self._mend())
        self.model, self.page = made(widgets.Button, description=say("Examine an ONNX model")), made(widgets.VBox)
        self.model.on_click(lambda _button: self._open_page())
        return [self.log, self.find, self.way, self.preview, self.mend, self.model, self.page]

    def views(self) -> Iterable[widgets.Widget]:
        """Show the log of what a press does."""
        self.lines = made(widgets.HTML)
        return [self.lines]

    def _find(self) -> None:
        self.dispatch(Paste(log=self.log.value))
        self.dispatch(Begin(task=Task.DIAGNOSE))

    def _open_page(self) -> None:
        """Show the page for a model, once; a second press leaves it as it is."""
        if not self.page.children:
            self.page.children = (OnnxPage(),)

    def _mend(self) -> None:
        """Carry out the chosen way; one that is a plan becomes the wish that the plan step works on."""
        way = self.offered.get(self.way.value)
        if way and way.plan:
            self.dispatch(Wish(request=replace(self.request, backend=way.plan.backend, python=way.plan.python)))
            self.dispatch(Begin(task=Task.PLAN))
        elif way:
            self.dispatch(Mend(way=self.way.value))
            self.dispatch(Begin(task=Task.MEND))

    def draw(self, state: State) -> str:
        """Show causes and findings, or that there is none, and how what was tried ended."""
        top = html.heading(
            say("Is anything to mend?"), say("What detection and verification noticed, and what failed.")
        )
        worth = [finding for finding in state.findings if finding.severity in {Severity.WARNING, Severity.ERROR}]
        told = "".join(map(_cause, state.diagnoses)) + "".join(map(html.finding, worth))
        following = say("What is pasted is read here, in this kernel, and sent nowhere.")
        if _offered(state):
            following += " " + say("A way out is carried out only when you press its button.")
        return (
            top
            + html.section(say("What was tried"), _tried(state))
            + html.section(say("What was found"), told or _nothing(state))
            + html.section(say("What will happen"), html.paragraph(following))
        )

    def follow(self, state: State) -> None:
        """Offer the ways that can be gone here."""
        self.offered, self.request = _offered(state), state.request
        options = [(_label(way), name) for name, way in self.offered.items()]
        if list(self.way.options) != options:
            self.way.options = options
        if self.offered:
            self.way.value = state.way if state.way in self.offered else self.way.value or next(iter(self.offered))
        chosen = self.offered.get(self.way.value)
        self.mend.description = say("Make this plan") if chosen and chosen.plan else say("Do it, then check")
        self.preview.value = _preview(chosen, state) if chosen else ""
        for widget in (self.way, self.mend):
            show(widget, visible=bool(chosen))
        self.lines.value = log_view(state.log, state.log_file) if state.running is Task.MEND or state.mended else ""


def _offered(state: State) -> dict[str, Remedy]:
    """Give the ways that one press can go: a plan to make, or commands that need no shell and no other rights."""
    able = ways(state)
    plans = {} if state.elsewhere else named(state)
    return {name: way for name, way in named(state).items() if name in able or (name in plans and way.plan)}


def _label(way: Remedy) -> str:
    text = visible(render(way.text))
    return text if len(text) <= LABEL else f"{text[: LABEL - 1]}…"


def _preview(way: Remedy, state: State) -> str:
    if way.plan:
        text = say("The plan step takes up {backend} with Python {python}; nothing is installed before you agree.")
        return f"<p>{html.esc(text.format(backend=way.plan.backend.value, python=way.plan.python))}</p>"
    commands = commands_for(way, state.environment) if state.environment else ()
    typed = [shlex.join(words) for words in commands or ()]
    settings = [f"{name}={value}" for name, value in way.env.items()]
    parts = ((say("These commands will run:"), typed), (say("These variables will be set in the kernel:"), settings))
    return "".join(f"<p>{html.esc(told)}</p>" + html.code("\n".join(lines)) for told, lines in parts if lines)


def _tried(state: State) -> str:
    known = named(state)
    words = {
        Outcome.FIXED: (Severity.OK, say("Fixed: {way}")),
        Outcome.NOT_FIXED: (Severity.WARNING, say("Done, but not fixed: {way}")),
        Outcome.DONE: (Severity.INFO, say("Done; nothing here can tell whether it helped: {way}")),
    }
    told = ((*words[outcome], known[name].text) for name, outcome in state.mended.items() if name in known)
    return "".join(html.note(severity, text.format(way=way)) for severity, text, way in told)


def _nothing(state: State) -> str:
    if state.status(Step.DIAGNOSE).phase is not Phase.DONE:
        return ""
    if not state.inquiry:
        return html.note(Severity.OK, say("Nothing needs mending."))
    nearest = html.paragraph(say("What comes nearest:")) + html.bullets(state.near) if state.near else ""
    report = html.details(say("A report to paste into an issue, private things removed"), html.code(state.inquiry))
    told = say("Nothing in this log points to a cause that is known here.")
    return html.note(Severity.INFO, told, nearest + report)


def _cause(diagnosis: Diagnosis) -> str:
    evidence = html.code("\n".join(map(render, diagnosis.evidence))) if diagnosis.evidence else ""
    severity = Severity.ERROR if diagnosis.sure else Severity.INFO
    text = sentences((diagnosis.title, diagnosis.cause))
    return html.note(severity, text, html.details(say("What shows it"), evidence) + html.remedies(diagnosis.remedies))
