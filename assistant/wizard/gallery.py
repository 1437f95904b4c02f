"""The gallery: every recorded machine as a card, one of them in full, and what one changed fact does to its plan."""

from __future__ import annotations

from collections.abc import Callable

import ipywidgets as widgets

from assistant.i18n import Text, say, use_language
from assistant.markup import Markup, joined
from assistant.model.errors import AssistantError
from assistant.model.finding import Severity
from assistant.model.plan import Plan, Planning
from assistant.session.gallery import Exhibit, changed, exhibits, fitting
from assistant.views import machine_rows, plan_title, rejection_reason
from assistant.wizard import html, open_wizard
from assistant.wizard.shared_widgets import STATIC, Drawing

OSES = {"linux": "Linux", "windows": "Windows", "macos": "macOS", "wsl": "WSL"}
VENDORS = {"nvidia": "NVIDIA", "amd": "AMD", "intel": "Intel", "apple": "Apple"}


def open_gallery(machine: str = "", *, language: str | None = None) -> Gallery:
    """Show every recorded machine; call it as the last line of a cell. `machine` is the one that is shown in full."""
    use_language(language)
    return Gallery(machine)


class Gallery(widgets.VBox):  # type: ignore[misc]  # the library has no types
    """Filters above, cards below, and one machine in full beside a fact to change."""

    def __init__(self, machine: str = "") -> None:
        super().__init__()
        self.add_class("ptsa-wizard")
        self._all = exhibits()
        anything = (say("Any"), "")
        nothing = (say("No GPU"), "none")
        vendors = [anything, *((name, key) for key, name in VENDORS.items()), nothing]
        self.vendor = widgets.Dropdown(options=vendors, description=say("Maker"))
        self.os = widgets.Dropdown(
            options=[anything, *((name, key) for key, name in OSES.items())], description=say("OS")
        )
        self.text = widgets.Text(description=say("Search"), placeholder="RX 6700", continuous_update=False)
        self.machine = widgets.Dropdown(description=say("Machine"))
        self.fact = widgets.Text(
            description=say("Set a fact"), placeholder="nvidia_driver=580.95.05", continuous_update=False
        )
        self.open = widgets.Button(description=say("Open in the wizard"), button_style="primary")
        self.look, self.head, self.detail, self.cards = (Drawing() for _number in range(4))
        self.wizard = widgets.VBox()
        self.look.value = html.style((STATIC / "wizard.css").read_text(encoding="utf-8"))
        self.head.value = html.heading(
            say("Recorded machines"), say("Choose one, change a fact, and see which PyTorch it gets.")
        )
        filters, choice = _row(self.vendor, self.os, self.text), _row(self.machine, self.fact, self.open)
        self.children = (self.look, self.head, filters, choice, self.detail, self.cards, self.wizard)
        for control in (self.vendor, self.os, self.text):
            control.observe(_ignoring_change(self._filter), "value")
        self.machine.observe(_ignoring_change(self._choose), "value")
        self.fact.observe(_ignoring_change(self._draw), "value")
        self.open.on_click(lambda _button: self._open())
        self._filter()
        if machine:
            self.machine.value = machine

    def __repr__(self) -> str:
        """Stay the same in every run: notebooks are compared by what their cells print."""
        return "Gallery()"

    def _filter(self) -> None:
        shown = fitting(self._all, vendor=self.vendor.value, os=self.os.value, text=self.text.value)
        self.machine.options = [(exhibit.label, exhibit.name) for exhibit in shown]
        self.cards.value = (
            html.cards(map(_card, shown)) if shown else html.note(Severity.INFO, say("No recorded machine matches."))
        )
        self._draw()

    def _choose(self) -> None:
        self.fact.value = ""
        self._draw()

    def _draw(self) -> None:
        exhibit = next((item for item in self._all if item.name == self.machine.value), None)
        self.open.disabled = exhibit is None
        if exhibit is None:
            self.detail.value = html.NOTHING
            return
        own = html.card(exhibit.label, html.table(machine_rows(exhibit.machine)) + _planned(exhibit.planning), "gpu")
        self.detail.value = html.cards([own, self._with_fact(exhibit)])

    def _with_fact(self, exhibit: Exhibit) -> Markup:
        """Draw the same machine with one fact changed; nothing while none is named."""
        fact, _sign, value = self.fact.value.partition("=")
        if not fact.strip():
            return html.NOTHING
        try:
            machine, planning = changed(exhibit.name, fact.strip(), value.strip())
        except AssistantError as error:
            return html.note(Severity.WARNING, f"{error.message} {error.hint}")
        title = say("{fact} = {value}: set by you.", fact=fact.strip(), value=value.strip())
        return html.card(title, html.table(machine_rows(machine)) + _planned(planning), "next")

    def _open(self) -> None:
        self.wizard.children = (open_wizard(self.machine.value),)


def _row(*controls: widgets.Widget) -> widgets.HBox:
    """Put controls side by side as far as there is room, the rest below."""
    for control in controls:
        control.layout.width, control.layout.flex = "auto", "none" if control.has_trait("button_style") else "1 1 18rem"
    return widgets.HBox(controls, layout=widgets.Layout(flex_flow="row wrap", grid_gap="0 1.5rem"))


def _ignoring_change(draw: Callable[[], None]) -> Callable[[object], None]:
    return lambda _change: draw()


def _card(exhibit: Exhibit) -> Markup:
    gpus = [gpu.label for gpu in exhibit.machine.gpus] or [say("no GPU")]
    origin = say("recorded") if exhibit.origin == "recorded" else say("composed")
    choice = exhibit.planning.choice
    gets: Text = plan_title(choice) if choice else say("No PyTorch wheel fits.")
    return html.card(
        exhibit.label, html.chips([*dict.fromkeys(gpus), origin]) + html.paragraph(gets, "ok" if choice else "no")
    )


def _planned(planning: Planning) -> Markup:
    """Draw the best plan with its reasons, and the best that was rejected."""
    choice: Plan | None = planning.choice
    chosen = [html.paragraph(plan_title(choice), "ok"), html.bullets(choice.reasons)] if choice else []
    stopped = map(rejection_reason, planning.rejected[:3])
    warnings = html.bullets(choice.warnings if choice else (), "warning")
    return joined([*chosen, warnings, html.bullets(stopped, "no")])
