"""Plan: the choice, its reasons, what it brings, the alternatives, and what the user may change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import ipywidgets as widgets

from assistant.i18n import render, say
from assistant.markup import Markup, joined
from assistant.model.finding import Severity
from assistant.model.plan import Backend, Plan, Planning
from assistant.model.record import replace
from assistant.session.actions import Choose, Wish
from assistant.session.interpreters import target_python
from assistant.session.state import State
from assistant.views import plan_rows, plan_title, rejected_name
from assistant.wizard import html
from assistant.wizard.panels.base import Panel
from assistant.wizard.shared_widgets import make

TITLED = {"backend", "variant", "torch", "python"}  # what the card says of a plan already


class PlanPanel(Panel):
    """The plan in plain words."""

    def controls(self) -> Iterable[widgets.Widget]:
        """Let the user take another plan, or ask for a backend or for nightly builds."""
        self.choice = make(widgets.Dropdown, description=say("Plan"))
        self.on_value(self.choice, lambda index: Choose(index=index or 0))
        backends = [(say("Choose for me"), ""), *((backend.value.upper(), backend.value) for backend in Backend)]
        self.backend = make(widgets.Dropdown, options=backends, description=say("Backend"))
        self._request = State().request
        self.on_value(self.backend, lambda name: self._wish(backend=Backend(name) if name else None))
        builds = [(say("Releases"), False), (say("Nightly, little tested"), True)]
        self.builds = make(widgets.Dropdown, options=builds, description=say("Builds"))
        self.on_value(self.builds, lambda nightly: self._wish(nightly=nightly))
        return [self.choice, self.backend, self.builds]

    def _wish(self, **changed: Any) -> Wish:  # noqa: ANN401 - fields of the request
        return Wish(request=replace(self._request, **changed))

    def draw(self, state: State) -> Markup:
        """Show the chosen plan."""
        top = html.heading(say("What will be installed?"), say("Nothing is changed yet."))
        plan = state.plan
        if plan is None or state.planning is None:
            return top
        free = state.detection.machine.disk_free_gb if state.detection else None
        size = say("about {size} MB to download", size=plan.download_mb) if plan.download_mb else ""
        chosen = html.card(
            say("PyTorch {torch} for {backend}", torch=plan.torch, backend=plan.backend.value.upper()),
            html.chips([plan.variant, say("Python {version}", version=plan.python), size])
            + html.bullets(plan.reasons, "next"),
            mark="ptsa-card-chosen",
        )
        return (
            top
            + html.section(say("What fits this machine"), chosen)
            + joined(html.note(Severity.WARNING, line) for line in plan.warnings)
            + html.section(say("What will happen"), html.table(plan_rows(plan, free, hide=TITLED)))
            + html.section(say("Which Python, which target"), _pythons(state))
            + html.section(say("The alternatives"), _alternatives(state.planning, plan))
        )

    def follow(self, state: State) -> None:
        """Offer the plans of this state."""
        plans = state.planning.plans if state.planning else ()
        options = [(render(plan_title(plan)), index) for index, plan in enumerate(plans)]
        if list(self.choice.options) != options:
            self.choice.options = options
        if options:
            self.choice.value = state.chosen
        self._request = state.request
        self.backend.value = state.request.backend.value if state.request.backend else ""
        self.builds.value = state.request.nightly


def _pythons(state: State) -> Markup:
    """Show the three interpreters side by side; a notebook uses the new environment only through its kernel."""
    kernel, server = state.pythons.get("kernel", ""), state.pythons.get("server", "")
    target = "" if state.machine else target_python(state)
    rows = [
        (say("This notebook's kernel"), kernel),
        (say("The Jupyter server"), server or (say("not found; it may run elsewhere") if kernel else "")),
        (say("The target"), target),
    ]
    paths = html.table((name, path) for name, path in rows if path)
    if not target:
        text = say("On that machine a new environment with the plan's Python would be made.")
    elif target == kernel:
        text = say("The target is this kernel's own environment; after the installation the kernel must restart.")
    else:
        text = say("The target is a separate environment; notebooks use it through a kernel that is added for it.")
    return joined([paths if target else "", html.paragraph(text, "info")])


def _alternatives(planning: Planning, chosen: Plan) -> Markup:
    """List what could be had instead, then what cannot, each with its reason and what would help."""
    others = [
        (plan_title(plan), next(iter(plan.reasons), ""), say("Choose it below."))
        for plan in planning.plans
        if plan != chosen
    ]
    against = [(rejected_name(row), row.why, row.would_help) for row in planning.rejected]
    possible = html.table(others, (say("Also possible"), say("Why"), say("How")))
    rejected = html.table(against, (say("Not chosen"), say("Why not"), say("What would help")))
    return joined([possible if others else "", rejected if against else ""])
