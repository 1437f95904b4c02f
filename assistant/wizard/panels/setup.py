"""The setup on one page: the choice and one button, then the work, then what can be done with it."""

from __future__ import annotations

from typing import Any

import ipywidgets as widgets

from assistant.catalog.bundles import Bundle, bundle_of, bundles
from assistant.detect import Fact, check_fact, facts_to_set
from assistant.export import uses
from assistant.host.live import IN_BROWSER
from assistant.i18n import render, say
from assistant.install import KERNEL, check_folder
from assistant.machines import label, shipped
from assistant.markup import Markup, joined, tag
from assistant.model.errors import AssistantError
from assistant.model.event import Step
from assistant.model.finding import Severity
from assistant.model.machine import Machine
from assistant.model.plan import Backend
from assistant.model.record import replace
from assistant.model.report import verdict
from assistant.plan import card_name
from assistant.session.actions import Action, Add, Aim, Begin, Choose, Fill, SetFact, Show, Simulate, Wish
from assistant.session.adding import requirements_of
from assistant.session.interpreters import kernel_is_ours
from assistant.session.progress import Overall
from assistant.session.reducer import blockers
from assistant.session.session import Session
from assistant.session.state import Page, State, Task
from assistant.views import plan_title
from assistant.wizard import html
from assistant.wizard.footer import Footer, OpenNotebook, Other
from assistant.wizard.head import Offer
from assistant.wizard.panels.base import PageView, close_all, failure, log_view
from assistant.wizard.panels.choice import draw_choice, draw_why
from assistant.wizard.panels.install import PACKAGE, draw_adding, draw_commands, draw_ready, draw_work
from assistant.wizard.panels.machine import draw_machine, draw_machine_line
from assistant.wizard.panels.verify import draw_checks, plots
from assistant.wizard.shared_widgets import Chips, Drawing, Fold, make
from assistant.wizard.stage import Stage, failed_step, repeated, stage

SAVE = "save"


class SetupPage(PageView):
    """What the machine gets, one button, and all else folded away."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._known_facts: tuple[Fact, ...] = ()
        self.lead, self.offer = make(Drawing), Offer(session)
        self.why, self.commands, self.log, self.checks, self.adding = (make(Drawing) for _number in range(5))
        self.bundle = make(Chips, description=say("What for?"))
        self.on_value(self.bundle, lambda key: self._wish(bundle=key))
        self.packages = make(
            widgets.Text, description=say("Packages"), placeholder="seaborn, pandas>=2", continuous_update=False
        )
        self.packages.observe(lambda change: self._add(change["new"]), "value")
        self.change = make(widgets.VBox, children=self._controls())
        self.add = make(widgets.VBox, children=(self.packages, self.adding))
        self.next = make(Chips, pressed=True, description=say("What next?"))
        self.next.on_msg(self._on_next)
        self.measure = make(widgets.Button, description=say("Check everything, and measure its speed (a minute)"))
        self.measure.on_click(lambda _button: self._measure())
        self.folds = {
            "why": make(Fold, title=say("Why this one, and what else would work")),
            "commands": make(Fold, title=say("The exact commands and the folder")),
            "change": make(Fold, title=say("Change something: machine, version, Python, folder, nightly builds")),
            "add": make(Fold, title=say("Add packages")),
            "log": make(Fold, title=say("What is being done (log)")),
            "checks": make(Fold, title=say("The checks, one by one, with times")),
        }
        self._views = {
            Stage.LOOKING: (self.lead, self.folds["change"], self.change),
            Stage.READY: (
                self.lead,
                self.bundle,
                self.offer,
                self.folds["why"],
                self.why,
                self.folds["commands"],
                self.commands,
                self.folds["change"],
                self.change,
            ),
            Stage.WORKING: (self.lead, self.folds["log"], self.log),
            Stage.FAILED: (self.lead, self.folds["log"], self.log, self.folds["change"], self.change),
            Stage.DONE: (
                self.lead,
                self.next,
                self.folds["add"],
                self.add,
                self.folds["checks"],
                self.checks,
                self.measure,
                self.folds["log"],
                self.log,
            ),
        }
        self.parts = self._views[Stage.LOOKING]

    def _controls(self) -> list[widgets.Widget]:
        """Make the controls of what can be changed."""
        recorded = sorted((render(label(name)), name) for name in shipped())
        here = [] if IN_BROWSER else [(say("This machine"), "")]
        self.machine = make(widgets.Dropdown, options=[*here, *recorded], description=say("Machine"))
        self.on_value(self.machine, lambda name: Simulate(machine=name))
        self.fact = make(widgets.Dropdown, description=say("A fact of the machine"))
        self.fact.observe(lambda _change: self._show_example(), "value")
        self.fact_value = make(widgets.Text, description=say("Its value"), continuous_update=False)
        self.fact_value.observe(lambda change: self._set_fact(change["new"].strip()), "value")
        self.fault = make(Drawing)
        self.facts = make(Chips, pressed=True)
        self.facts.on_msg(self._on_fact)
        self.choice = make(widgets.Dropdown, description=say("Build"))
        self.on_value(self.choice, lambda index: Choose(index=index or 0))
        backends = [(say("Choose for me"), ""), *((backend.title, backend.value) for backend in Backend)]
        self.backend = make(widgets.Dropdown, options=backends, description=say("Backend"))
        self.on_value(self.backend, lambda name: self._wish(backend=Backend(name) if name else None))
        builds = [(say("Releases"), False), (say("Nightly, little tested"), True)]
        self.builds = make(widgets.Dropdown, options=builds, description=say("Builds"))
        self.on_value(self.builds, lambda nightly: self._wish(nightly=nightly))
        self.python = make(
            widgets.Text, description=say("Python"), placeholder=say("chosen for you"), continuous_update=False
        )
        self.on_value(self.python, lambda version: self._wish(python=version.strip() or None))
        places = [(say("A new environment"), ""), (say("The environment of this kernel"), KERNEL)]
        self.where = make(widgets.Dropdown, options=places, description=say("Where"))
        self.on_value(self.where, lambda where: Aim(target=where))
        self.target = make(
            widgets.Text,
            description=say("Folder"),
            placeholder=say("a folder of its own, chosen for you"),
            continuous_update=False,
        )
        self.target.observe(lambda change: self._aim(change["new"].strip()), "value")
        self.again = make(widgets.Button, description=say("Look at the machine again"))
        self.again.on_click(lambda _button: self.session.begin(Task.DETECT))
        return [
            self.choice,
            self.backend,
            self.builds,
            self.python,
            self.where,
            self.target,
            self.machine,
            self.fact,
            self.fact_value,
            self.fault,
            self.facts,
            self.again,
        ]

    def _wish(self, **changed: Any) -> Wish:  # noqa: ANN401 - fields of the request
        return Wish(request=replace(self.session.state.request, **changed))

    def _add(self, text: str) -> None:
        """Work out what adding packages would change."""
        if not self._quiet and text.strip():
            self.session.dispatch(Add(requirements=requirements_of(text)))
            self.session.begin(Task.ADD)

    def _aim(self, target: str) -> None:
        """Have the environment in a folder; a path that starts nowhere is refused."""
        if self._quiet:
            return
        try:
            self.session.dispatch(Aim(target=check_folder(target)))
        except AssistantError as error:
            self.fault.value = html.failure(error.message, error.hint)

    def _set_fact(self, value: str) -> None:
        """Set the chosen fact of the machine; a value that does not fit it is refused."""
        if self._quiet or not (self.fact.value and value):
            return
        try:
            check_fact(self.fact.value, value)
        except AssistantError as error:
            self.fault.value = html.failure(error.message, error.hint)
            return
        self.session.dispatch(SetFact(fact=self.fact.value, value=value))

    def _on_fact(self, _widget: object, content: object, _buffers: object) -> None:
        """Take back a fact that was set by hand."""
        if isinstance(content, dict) and content.get("press") in self.session.state.overrides:
            self.session.dispatch(SetFact(fact=str(content["press"]), value=""))

    def _show_example(self) -> None:
        known = {fact.name: fact for fact in self._known_facts}
        fact = known.get(self.fact.value or "")
        self.fact_value.placeholder = ", ".join(fact.values) or fact.example if fact else ""

    def _measure(self) -> None:
        self.session.dispatch(Fill(level="full"))
        self.session.begin(Task.VERIFY)

    def _on_next(self, _widget: object, content: object, _buffers: object) -> None:
        if isinstance(content, dict) and content.get("press") == SAVE:
            self.session.dispatch(Show(page=Page.EXPORT))

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
        if now is Stage.DONE and state.report:
            self.checks.value = draw_checks(state.report) + plots(state)
            self.next.options = _next(state)
            self.adding.value = draw_adding(state.adding) if state.adding else html.NOTHING
        options = [{"key": one.key, "title": render(one.name), "lead": _packages(one)} for one in bundles()]
        if list(self.bundle.options) != options:
            self.bundle.options = options
        self.bundle.value = bundle_of(state.request.bundle).key
        self._follow_controls(state)

    def _follow_controls(self, state: State) -> None:
        plans = state.planning.plans if state.planning else ()
        options = [(render(plan_title(plan)), index) for index, plan in enumerate(plans)]
        if list(self.choice.options) != options:
            self.choice.options = options
        if options:
            self.choice.value = state.chosen
        request = state.request
        self.backend.value = request.backend.value if request.backend else ""
        self.builds.value, self.python.value = request.nightly, request.python or ""
        self.machine.value = state.machine
        kernel = state.target == KERNEL
        self.where.value, self.target.value = (KERNEL, "") if kernel else ("", state.target)
        self.target.disabled = kernel
        if kernel_is_ours(state):
            self.where.options = self.where.options[:1]
        self._follow_facts(state)

    def _follow_facts(self, state: State) -> None:
        """Offer the facts that can be set, and show those that are; what was refused before is over."""
        machine = state.detection.machine if state.detection else Machine()
        self._known_facts = tuple(facts_to_set(machine))
        options = [(render(fact.label), fact.name) for fact in self._known_facts]
        if list(self.fact.options) != options:
            chosen = self.fact.value
            self.fact.options = options
            if chosen in {name for _label, name in options}:
                self.fact.value = chosen
        self._show_example()
        self.fault.value, self.fact_value.value = html.NOTHING, ""
        labels = {fact.name: render(fact.label) for fact in self._known_facts}
        self.facts.options = [
            {"key": name, "title": f"{labels.get(name, name)}: {value}", "lead": say("take back")}
            for name, value in state.overrides.items()
        ]

    def footer(self, state: State) -> Footer:
        """Offer to install, to try again, or to open a notebook."""
        now = stage(state)
        adding = state.adding
        if now is Stage.DONE and adding and adding.prepared and not adding.environment:
            rest = Other(label=say("Not now"), actions=(Add(requirements=()),))
            return Footer(label=say("Add these packages"), actions=(Begin(task=Task.ADD),), others=(rest,))
        if now is Stage.DONE:
            other = Other(label=say("Set up another"), actions=(Begin(task=Task.DETECT),))
            return Footer(
                label=say("Open a notebook with it"), actions=(OpenNotebook(),), note=_opens(state), others=(other,)
            )
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


def _draw_done(state: State) -> Markup:
    report, plan, found = state.report, state.plan, state.detection
    if report is None or plan is None or found is None:
        return html.NOTHING
    card = card_name(found.machine, plan.backend)
    works = say("PyTorch works on your {card}", card=card) if card else say("PyTorch works on your processor")
    title = works if report.usable else say("PyTorch is installed, but some checks failed")
    line = tag("p", plan_title(plan), class_="ptsa-machine")
    return (
        line
        + html.heading(title)
        + html.paragraph(verdict(report), "ok" if report.passed else "warning")
        + draw_ready(state)
    )


DRAWN = {
    Stage.LOOKING: _draw_looking,
    Stage.READY: _draw_choice,
    Stage.FAILED: _draw_failed,
    Stage.DONE: _draw_done,
}


def _packages(bundle: Bundle) -> str:
    """Name what a bundle brings, in short."""
    return " + ".join(bundle.requirements[:3]) + (" …" if bundle.requirements[3:] else "") or "torch, numpy, pip"


def _next(state: State) -> list[dict[str, str]]:
    """List what can be done with the environment that stands."""
    if state.environment is None or state.plan is None or state.detection is None:
        return []
    use = uses(state.environment, state.plan, windows=state.detection.machine.os == "windows")
    return [
        {
            "key": "terminal",
            "title": say("Use it in a terminal"),
            "lead": say("copies the line to type"),
            "copy": use.terminal,
        },
        {
            "key": "vscode",
            "title": say("Use it in VS Code"),
            "lead": say("copies the interpreter's path"),
            "copy": use.interpreter,
        },
        {"key": SAVE, "title": say("Save the configuration"), "lead": say("colleague, project, container, bug report")},
    ]


def _opens(state: State) -> str:
    made = state.environment
    name = made.launcher_name or made.kernel if made else ""
    return say("A first notebook on the kernel “{name}”.", name=name) if name else ""
