"""What can be changed: the build, the place, the machine that is looked at, and single facts of it."""

from __future__ import annotations

from typing import Any

import ipywidgets as widgets

from assistant.detect import Fact, check_fact, facts_to_set
from assistant.i18n import render, say
from assistant.install import KERNEL, check_folder
from assistant.model.errors import AssistantError
from assistant.model.machine import Machine
from assistant.model.plan import Backend
from assistant.model.record import replace
from assistant.session.actions import Aim, Choose, SetFact, Simulate, Wish
from assistant.session.interpreters import kernel_is_ours
from assistant.session.session import Session
from assistant.session.state import State, Task
from assistant.views import plan_title
from assistant.wizard import html
from assistant.wizard.panels.base import Part
from assistant.wizard.panels.machine import machine_options
from assistant.wizard.shared_widgets import Chips, Drawing, Fold, make


class Changes(Part):
    """The controls in a box, which are made when its fold is opened; each change makes the plan anew."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._known_facts: tuple[Fact, ...] = ()
        self.fold = make(Fold, title=say("Change something: machine, version, Python, folder, nightly builds"))
        self.box = make(widgets.VBox)
        self.fold.observe(lambda _change: self._open(), "unfolded")

    def _open(self) -> None:
        """Make the controls, the first time."""
        if self.box.children:
            return
        self.machine = make(widgets.Dropdown, options=machine_options(), description=say("Machine"))
        self.on_value(self.machine, lambda name: Simulate(machine=name))
        self.fact = make(widgets.Dropdown, description=say("Fact to change"))
        self.fact.observe(lambda _change: self._show_example(), "value")
        self.fact_value = make(widgets.Text, description=say("New value"), continuous_update=False)
        self.fact_value.observe(lambda change: self._set_fact(change["new"].strip()), "value")
        self.fault = make(Drawing)
        self.facts = make(Chips, pressed=True)
        self.facts.on_msg(self._on_fact)
        self.choice = make(widgets.Dropdown, description=say("PyTorch build"))
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
        self.box.children = (
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
        )
        self.update(self.session.state)

    def _wish(self, **changed: Any) -> Wish:  # noqa: ANN401 - fields of the request
        return Wish(request=replace(self.session.state.request, **changed))

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

    def follow(self, state: State) -> None:
        """Show the values of this state."""
        if not self.box.children:
            return
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
            {"key": name, "title": f"{labels.get(name, name)}: {value}", "lead": say("press to undo")}
            for name, value in state.overrides.items()
        ]
