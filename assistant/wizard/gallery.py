"""The gallery: every recorded machine as a card to choose; one opens in the wizard."""

from __future__ import annotations

from collections.abc import Callable

import anywidget
import ipywidgets as widgets
import traitlets

from assistant.i18n import LANGUAGES, Text, language, render, say, use_language
from assistant.markup import Markup, joined
from assistant.model.errors import AssistantError
from assistant.model.finding import Severity
from assistant.model.plan import Plan, Planning
from assistant.session.gallery import Exhibit, changed, exhibits, fitting
from assistant.views import machine_rows, plan_title, rejection_reason
from assistant.wizard import html, open_wizard
from assistant.wizard.head import head_words
from assistant.wizard.shared_widgets import Drawing, Foot, Head, make, module, show

OSES = {"linux": "Linux", "windows": "Windows", "macos": "macOS", "wsl": "WSL"}
VENDORS = {"nvidia": "NVIDIA", "amd": "AMD", "intel": "Intel", "apple": "Apple"}
NAMED = 3  # chosen: machines that are named beside the buttons before "and 5 more"


def open_gallery(machine: str = "", *, language: str | None = None) -> Gallery:
    """Show every recorded machine; call it as the last line of a cell. `machine` is the one that is shown in full."""
    use_language(language)
    return Gallery(machine)


class MachineCards(anywidget.AnyWidget):
    """A card for each machine; a press chooses it, the next one drops it. `chosen` holds the keys in order.

    `cards` are {"key", "title", "chips", "text", "works"}; only those in `shown` are seen, `nothing` stands for none.
    """

    _esm = module("element.js", "machines.js")

    description = traitlets.Unicode().tag(sync=True)
    cards: traitlets.List[dict[str, object]] = traitlets.List().tag(sync=True)
    shown: traitlets.List[str] = traitlets.List(traitlets.Unicode()).tag(sync=True)
    chosen: traitlets.List[str] = traitlets.List(traitlets.Unicode()).tag(sync=True)
    nothing = traitlets.Unicode().tag(sync=True)


class Gallery(widgets.VBox):  # type: ignore[misc]  # the library has no types
    """Head and foot always in sight; between them one machine in full, filters, and the cards, or the wizard."""

    def __init__(self, machine: str = "") -> None:
        super().__init__()
        for name in ("ptsa-wizard", "ptsa-guide"):
            self.add_class(name)
        self._all = exhibits()
        self._looked_at = ""  # the machine that is shown in full
        self._offer: list[tuple[str, str, bool]] = []
        self.head, self.foot, self.cards = Head(languages=list(LANGUAGES.items())), Foot(), MachineCards()
        self.detail, self.what_if = make(Drawing), make(Drawing)
        self.fact = make(widgets.Text, placeholder="nvidia_driver=580.95.05", continuous_update=False)
        self.vendor, self.os = make(widgets.Dropdown), make(widgets.Dropdown)
        self.text = make(widgets.Text, placeholder="RX 6700", continuous_update=False)
        self.filters = make(widgets.HBox, children=(self.vendor, self.os, self.text))
        self.filters.add_class("ptsa-filters")
        self.middle = make(widgets.VBox, children=(self.detail, self.fact, self.what_if, self.filters, self.cards))
        for name in ("ptsa-middle", "ptsa-gallery-middle"):
            self.middle.add_class(name)
        self.wizard: widgets.Widget | None = None
        self.children: tuple[widgets.Widget, ...] = (self.head, self.middle, self.foot)
        self._draw()
        if machine:
            self.cards.chosen, self._looked_at = [machine], machine
            self._draw()
        for control in (self.vendor, self.os, self.text):
            control.observe(_ignoring_change(self._filter), "value")
        self.fact.observe(_ignoring_change(self._draw_detail), "value")
        self.cards.observe(_ignoring_change(self._choose), "chosen")
        self.head.on_msg(self._on_head)
        self.foot.on_msg(self._on_foot)

    def __repr__(self) -> str:
        """Stay the same in every run: notebooks are compared by what their cells print."""
        return "Gallery()"

    def speak(self, code: str) -> None:
        """Go on in another language; what was chosen and typed stays."""
        use_language(code)
        self._all = exhibits()
        self._draw()

    def press(self, name: str) -> None:
        """Do what a button of the foot says."""
        chosen = [exhibit for name in self.cards.chosen for exhibit in self._all if exhibit.name == name]
        if name == "none":
            self.cards.chosen, self._looked_at = [], ""
            self._draw()
        elif name == "look" and chosen:
            self.fact.value, self._looked_at = "", chosen[-1].name
            self._draw()
        elif name == "open" and chosen:
            self._open(chosen[-1].name)

    def _draw(self) -> None:
        """Write every word in the language in force."""
        self._draw_head()
        self.vendor.description, self.os.description = say("Maker"), say("OS")
        self.text.description, self.fact.description = say("Search"), say("Set a fact")
        anything, nothing = (say("Any"), ""), (say("No GPU"), "none")
        _offer(self.vendor, [anything, *((name, key) for key, name in VENDORS.items()), nothing])
        _offer(self.os, [anything, *((name, key) for key, name in OSES.items())])
        self.cards.description, self.cards.nothing = say("Machines"), say("No recorded machine matches.")
        self.cards.cards = [_card(exhibit) for exhibit in self._all]
        self._filter()
        self._draw_detail()
        self._draw_foot()

    def _draw_head(self) -> None:
        self.head.words = head_words(say("Recorded machines"))
        self.head.language = language()
        self.head.links = [("machines", say("Back to the machines"))] if self.wizard else []

    def _filter(self) -> None:
        shown = fitting(self._all, vendor=self.vendor.value, os=self.os.value, text=self.text.value)
        self.cards.shown = [exhibit.name for exhibit in shown]

    def _choose(self) -> None:
        if self._looked_at not in self.cards.chosen:
            self._looked_at = ""
            self._draw_detail()
        self._draw_foot()

    def _draw_detail(self) -> None:
        """Show the machine that is looked at, and what one changed fact does to its plan."""
        exhibit = next((item for item in self._all if item.name == self._looked_at), None)
        for part in (self.detail, self.fact, self.what_if):
            show(part, visible=exhibit is not None)
        self.detail.value = _in_full(exhibit) if exhibit else html.NOTHING
        self.what_if.value = _with_fact(exhibit, self.fact.value) if exhibit else html.NOTHING
        self.head.view = self._looked_at

    def _draw_foot(self) -> None:
        """Offer what can be done with the machines that are chosen."""
        names = [exhibit.label for key in self.cards.chosen for exhibit in self._all if exhibit.name == key]
        with self.foot.hold_sync():
            self.foot.buttons = _buttons(len(names))
            self.foot.note = html.inline(_note(names))
            if self._offer != self.foot.buttons:  # which machines are chosen arrives before a press on them
                self._offer, self.foot.offer = self.foot.buttons, self.foot.offer + 1

    def _open(self, name: str) -> None:
        """Put the wizard in the place of the cards; the head leads back."""
        self.wizard = open_wizard(name)
        self.wizard.head.observe(_ignoring_change(self._draw_head), "language")  # it speaks for both
        self.add_class("ptsa-gallery-opened")
        self._draw_head()
        self.children = (self.head, self.wizard)
        self.head.view = "wizard"

    def _back(self) -> None:
        self.remove_class("ptsa-gallery-opened")
        self.wizard = None
        self.children = (self.head, self.middle, self.foot)
        self.speak(language())

    def _on_head(self, _widget: object, content: object, _buffers: object) -> None:
        message = content if isinstance(content, dict) else {}
        if message.get("language") in LANGUAGES:
            self.speak(str(message["language"]))
        if message.get("page") == "machines":
            self._back()

    def _on_foot(self, _widget: object, content: object, _buffers: object) -> None:
        message = content if isinstance(content, dict) else {}
        if message.get("offer") in (None, self.foot.offer):
            self.press("open" if message.get("press") == "main" else str(message.get("press")))


def _buttons(chosen: int) -> list[tuple[str, str, bool]]:
    """Return the foot's buttons (name, words, whether it can be pressed) for a number of chosen machines."""
    main = ("main", say("Open in the wizard"), chosen == 1)
    more = [("look", say("Show details"), chosen == 1), ("none", say("Clear selection"), True)]
    return [main, *more] if chosen else [main]


def _note(names: list[str]) -> Text:
    """Say which machines are chosen, or how that is done."""
    if not names:
        return say("Press a card to choose a machine.")
    shown, rest = " · ".join(names[:NAMED]), len(names) - NAMED
    return say("{names} and {count} more", names=shown, count=rest) if rest > 0 else shown


def _offer(menu: widgets.Dropdown, options: list[tuple[str, str]]) -> None:
    """Give a menu its words, and keep what was chosen in it."""
    chosen = menu.value or ""
    menu.options, menu.value = options, chosen


def _ignoring_change(draw: Callable[[], None]) -> Callable[[object], None]:
    return lambda _change: draw()


def _card(exhibit: Exhibit) -> dict[str, object]:
    gpus = [gpu.label for gpu in exhibit.machine.gpus] or [say("no GPU")]
    origin = say("recorded") if exhibit.origin == "recorded" else say("composed")
    choice = exhibit.planning.choice
    return {
        "key": exhibit.name,
        "title": exhibit.label,
        "chips": [*dict.fromkeys(gpus), origin],
        "text": render(plan_title(choice)) if choice else say("No PyTorch wheel fits."),
        "works": choice is not None,
    }


def _in_full(exhibit: Exhibit) -> Markup:
    """Draw a machine with its facts and its plan."""
    lead = say("Change a fact to see what it does to the plan.")
    facts = html.section(say("Facts"), html.table(machine_rows(exhibit.machine)))
    plan = html.section(say("What it gets"), _planned(exhibit.planning))
    return html.heading(exhibit.label, lead) + html.cards([facts, plan])


def _with_fact(exhibit: Exhibit, typed: str) -> Markup:
    """Draw the same machine with one fact changed; nothing while none is named."""
    fact, _sign, value = typed.partition("=")
    if not fact.strip():
        return html.NOTHING
    try:
        machine, planning = changed(exhibit.name, fact.strip(), value.strip())
    except AssistantError as error:
        return html.failure(error.message, error.hint, Severity.WARNING)
    title = say("{fact} = {value}: set by you.", fact=fact.strip(), value=value.strip())
    facts = html.section(title, html.table(machine_rows(machine)))
    return html.cards([facts, html.section(say("What it would get"), _planned(planning))])


def _planned(planning: Planning) -> Markup:
    """Draw the best plan with its reasons, and the best that was rejected."""
    choice: Plan | None = planning.choice
    chosen = [html.paragraph(plan_title(choice), "ok"), html.bullets(choice.reasons)] if choice else []
    stopped = map(rejection_reason, planning.rejected[:3])
    warnings = html.bullets(choice.warnings if choice else (), "warning")
    return joined([*chosen, warnings, html.bullets(stopped, "no")])
