"""Plan: the choice, its reasons, the alternatives, and what the user may change."""

from __future__ import annotations

from collections.abc import Iterable

import ipywidgets as widgets

from assistant.i18n import _
from assistant.model.finding import Severity
from assistant.model.plan import Backend, Plan
from assistant.model.record import replace
from assistant.session.state import Choose, State, Wish
from assistant.wizard import html
from assistant.wizard.panels.base import Panel

__all__ = ["PlanPanel", "plan_title"]


class PlanPanel(Panel):
    """The plan in plain words."""

    def controls(self) -> Iterable[widgets.Widget]:
        """Let the user take another plan, or ask for a backend."""
        self.choice = widgets.Dropdown(description=_("Plan"))
        self.on_value(self.choice, lambda index: Choose(index=index or 0))
        backends = [(_("Choose for me"), ""), *((backend.value.upper(), backend.value) for backend in Backend)]
        self.backend = widgets.Dropdown(options=backends, description=_("Backend"))
        self._request = State().request
        self.on_value(self.backend, self._wish)
        return [self.choice, self.backend]

    def _wish(self, backend: str) -> Wish:
        return Wish(request=replace(self._request, backend=Backend(backend) if backend else None))

    def draw(self, state: State) -> str:
        """Show the chosen plan."""
        top = html.heading(_("What will be installed?"), _("Nothing is changed yet."))
        plan = state.plan
        if plan is None or state.planning is None:
            return top
        rejected = html.table(
            (
                (f"{row.backend.value.upper()} {row.variant}".strip(), row.why, row.would_help)
                for row in state.planning.rejected
            ),
            (_("Not chosen"), _("Why not"), _("What would help")),
        )
        return (
            top
            + f"<h3>{html.esc(plan_title(plan))}</h3>"
            + html.bullets(plan.reasons)
            + "".join(html.note(Severity.WARNING, line) for line in plan.warnings)
            + html.table(_facts(plan))
            + html.details(_("Why nothing else?"), rejected if state.planning.rejected else "")
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
        self.choice.disabled = self.backend.disabled = state.running is not None


def plan_title(plan: Plan) -> str:
    """Name a plan in a few words."""
    return _("PyTorch {torch} for {backend} ({variant}), Python {python}").format(
        torch=plan.torch, backend=plan.backend.value.upper(), variant=plan.variant, python=plan.python
    )


def _facts(plan: Plan) -> list[tuple[str, str]]:
    source = plan.wheel.url if plan.wheel else plan.index_url or _("PyPI")
    rows = [
        (_("Packages"), ", ".join(plan.requirements)),
        (_("Source of torch"), source),
        (_("Download"), _("about {size} MB").format(size=plan.download_mb) if plan.download_mb else ""),
        (_("Settings"), ", ".join(f"{name}={value}" for name, value in plan.env.items())),
    ]
    return [(label, value) for label, value in rows if value]
