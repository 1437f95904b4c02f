"""Plan: the choice, its reasons, what it brings, the alternatives, and what the user may change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import ipywidgets as widgets

from assistant.i18n import _
from assistant.install.target import DISK_FACTOR
from assistant.model.finding import Severity
from assistant.model.plan import Backend, Plan, Planning
from assistant.model.record import replace
from assistant.session.actions import Choose, Wish
from assistant.session.interpreters import target_python
from assistant.session.nouns import State
from assistant.wizard import html
from assistant.wizard.panels.base import Panel
from assistant.wizard.parts import made

__all__ = ["PlanPanel", "plan_title"]


class PlanPanel(Panel):
    """The plan in plain words."""

    def controls(self) -> Iterable[widgets.Widget]:
        """Let the user take another plan, or ask for a backend or for nightly builds."""
        self.choice = made(widgets.Dropdown, description=_("Plan"))
        self.on_value(self.choice, lambda index: Choose(index=index or 0))
        backends = [(_("Choose for me"), ""), *((backend.value.upper(), backend.value) for backend in Backend)]
        self.backend = made(widgets.Dropdown, options=backends, description=_("Backend"))
        self._request = State().request
        self.on_value(self.backend, lambda name: self._wish(backend=Backend(name) if name else None))
        builds = [(_("Releases"), False), (_("Nightly, little tested"), True)]
        self.builds = made(widgets.Dropdown, options=builds, description=_("Builds"))
        self.on_value(self.builds, lambda nightly: self._wish(nightly=nightly))
        return [self.choice, self.backend, self.builds]

    def _wish(self, **changed: Any) -> Wish:  # noqa: ANN401 - fields of the request
        return Wish(request=replace(self._request, **changed))

    def draw(self, state: State) -> str:
        """Show the chosen plan."""
        top = html.heading(_("What will be installed?"), _("Nothing is changed yet."))
        plan = state.plan
        if plan is None or state.planning is None:
            return top
        chosen = html.card(
            _("PyTorch {torch} for {backend}").format(torch=plan.torch, backend=plan.backend.value.upper()),
            html.chips([plan.variant, _("Python {version}").format(version=plan.python), _size(plan)])
            + html.bullets(plan.reasons, "next"),
            mark="ptsa-card-chosen",
        )
        return (
            top
            + html.section(_("What fits this machine"), chosen)
            + "".join(html.note(Severity.WARNING, line) for line in plan.warnings)
            + html.section(_("What will happen"), html.table(_facts(plan, state)))
            + html.section(_("Which Python, which target"), _pythons(state))
            + html.section(_("The alternatives"), _alternatives(state.planning, plan))
        )

    def follow(self, state: State) -> None:
        """Offer the plans of this state."""
        plans = state.planning.plans if state.planning else ()
        options = [(plan_title(plan), index) for index, plan in enumerate(plans)]
        if list(self.choice.options) != options:
            self.choice.options = options
        if options:
            self.choice.value = state.chosen
        self._request = state.request
        self.backend.value = state.request.backend.value if state.request.backend else ""
        self.builds.value = state.request.nightly


def plan_title(plan: Plan) -> str:
    """Name a plan in a few words."""
    return _("PyTorch {torch} for {backend} ({variant}), Python {python}").format(
        torch=plan.torch, backend=plan.backend.value.upper(), variant=plan.variant, python=plan.python
    )


def _size(plan: Plan) -> str:
    return _("about {size} MB to download").format(size=plan.download_mb) if plan.download_mb else ""


def _facts(plan: Plan, state: State) -> list[tuple[str, str]]:
    source = plan.wheel.url if plan.wheel else plan.index_url or _("PyPI")
    free = state.detection.machine.disk_free_gb if state.detection else None
    need = (plan.download_mb or 0) * DISK_FACTOR / 1000
    disk = _("about {need:.1f} GB needed, {free:.0f} GB free") if free else _("about {need:.1f} GB needed")
    rows = [
        (_("Packages"), ", ".join(plan.requirements)),
        (_("Source of torch"), source),
        (_("Download"), _("about {size} MB").format(size=plan.download_mb) if plan.download_mb else ""),
        (_("Disk"), disk.format(need=need, free=free) if need else ""),
        (_("Settings"), ", ".join(f"{name}={value}" for name, value in plan.env.items())),
    ]
    return [(label, value) for label, value in rows if value]


def _pythons(state: State) -> str:
    """Tell the three interpreters apart; a notebook uses the new environment only through its kernel."""
    kernel, server = state.pythons.get("kernel", ""), state.pythons.get("server", "")
    target = "" if state.machine else target_python(state)
    rows = [
        (_("This notebook's kernel"), kernel),
        (_("The Jupyter server"), server or (_("not found; it may run elsewhere") if kernel else "")),
        (_("The target"), target),
    ]
    told = html.table((name, path) for name, path in rows if path)
    if not target:
        text = _("On that machine a new environment with the plan's Python would be made.")
    elif target == kernel:
        text = _("The target is this kernel's own environment; after the installation the kernel must restart.")
    else:
        text = _("The target is an environment of its own; notebooks use it through a kernel that is added for it.")
    return (told if target else "") + html.paragraph(text, "info")


def _alternatives(planning: Planning, chosen: Plan) -> str:
    """List what could be had instead, then what cannot, each with its reason and what would help."""
    others = [
        (plan_title(plan), next(iter(plan.reasons), ""), _("Choose it below."))
        for plan in planning.plans
        if plan != chosen
    ]
    against = [
        (f"{row.backend.value.upper()} {row.variant}".strip(), row.why, row.would_help) for row in planning.rejected
    ]
    possible = html.table(others, (_("Also possible"), _("Why"), _("How")))
    rejected = html.table(against, (_("Not chosen"), _("Why not"), _("What would help")))
    return possible * bool(others) + rejected * bool(against)
