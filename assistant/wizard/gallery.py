"""The gallery: every recorded machine as a card to choose; one opens in the wizard, several make a setup package."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextvars import copy_context

import anywidget
import ipywidgets as widgets
import traitlets

from assistant.host.live import IN_BROWSER
from assistant.host.process import CancelToken
from assistant.i18n import LANGUAGES, Message, Text, language, render, say, use_language
from assistant.machines import label
from assistant.markup import Markup, joined
from assistant.model.errors import AssistantError, Cancelled
from assistant.model.finding import Severity
from assistant.model.plan import Plan, Planning
from assistant.session.gallery import Exhibit, changed, exhibits, fitting
from assistant.session.kits import here, in_one_zip, packages_for, pc
from assistant.views import machine_rows, plan_title, rejection_reason
from assistant.wizard import html, open_wizard
from assistant.wizard.head import head_words
from assistant.wizard.shared_widgets import Drawing, Foot, Head, make, module, show

OSES = {"linux": "Linux", "windows": "Windows", "macos": "macOS", "wsl": "WSL"}
VENDORS = {"nvidia": "NVIDIA", "amd": "AMD", "intel": "Intel", "apple": "Apple"}
PACKAGES = "pytorch-packages.zip"
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
        self._packed = b""
        self._packing: CancelToken | None = None  # of the package that is being made
        self._working, self._since = "", 0.0
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
        if name == "stop":
            self._stop()
        elif name == "none":
            self.cards.chosen, self._looked_at = [], ""
            self._draw()
        elif name == "look" and chosen:
            self.fact.value, self._looked_at = "", chosen[-1].name
            self._draw()
        elif name == "open" and chosen:
            self._open(chosen[-1].name)
        elif name == "package" and chosen:
            self._packed = b""
            if IN_BROWSER:
                self.pack(chosen)
            else:
                # With the caller's context, as `session.runner.ThreadRunner` has it, or ipykernel 7.0 sends nothing.
                threading.Thread(target=copy_context().run, args=(self.pack, chosen), daemon=True).start()

    def pack(self, chosen: list[Exhibit]) -> None:
        """Write the packages of machines, and offer them to be downloaded."""
        if self._packing is not None:
            self._packing.set()
        cancel = self._packing = CancelToken()
        self._since = time.time()

        def tell(text: Message) -> None:
            if cancel is self._packing:
                self._working = render(text)
                self._draw_foot()

        failed, packed = html.NOTHING, b""
        try:
            kinds = [pc(label(one.name), one.machine, one.planning) for one in chosen]
            packed = in_one_zip(packages_for(kinds, here(cancel), tell))
        except AssistantError as error:
            failed = html.failure(error.message, error.hint)
        if cancel is self._packing:  # else nobody waits for it any more
            self._packing, self._working, self._packed = None, "", packed
            if packed:
                self.head.status = say("The download is ready.")
            self._draw_foot(failed)

    def _stop(self) -> None:
        """Give up the package that is being made, at once; what still resolves for it is ended."""
        if self._packing is None:
            return
        cancel, self._packing, self._working = self._packing, None, ""
        cancel.set()
        try:
            cancel.check()
        except Cancelled as error:
            self.head.status = render(error.message)
            self._draw_foot(html.failure(error.message, error.hint, Severity.INFO))

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
        self._packed = b""
        self._stop()
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

    def _draw_foot(self, failed: Markup = html.NOTHING) -> None:
        """Offer what can be done with the machines that are chosen."""
        working = self._working
        names = [exhibit.label for key in self.cards.chosen for exhibit in self._all if exhibit.name == key]
        with self.foot.hold_sync():
            self.foot.words = {"progress": say("Progress"), "elapsed": say("{time} so far")}
            buttons = [(name, words, able and not working) for name, words, able in _buttons(len(names))]
            self.foot.buttons = [*buttons, *([("stop", say("Cancel"), True)] if working else [])]
            self.foot.note = failed or html.inline(_note(names))
            if self._packed:
                self.foot.note = html.fetch(PACKAGES, "package")
            self.foot.send_progress(
                {"running": bool(working), "share": None, "text": working, "since": self._since},
                {"figures": "", "left": None},
            )
            if self._offer != self.foot.buttons:  # which machines are chosen arrives before a press on them
                self._offer, self.foot.offer = self.foot.buttons, self.foot.offer + 1
        if working:
            self.head.status = working

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
        if message.get("file") == "package" and self._packed:
            self.head.send({**message, "name": PACKAGES}, buffers=[self._packed])

    def _on_foot(self, _widget: object, content: object, _buffers: object) -> None:
        message = content if isinstance(content, dict) else {}
        if message.get("offer") in (None, self.foot.offer):
            self.press(_main(len(self.cards.chosen)) if message.get("press") == "main" else str(message.get("press")))


def _main(chosen: int) -> str:
    """Name what the main button does: one machine is opened, several make a package."""
    return "open" if chosen <= 1 else "package"


def _buttons(chosen: int) -> list[tuple[str, str, bool]]:
    """Return the foot's buttons (name, words, whether it can be pressed) for a number of chosen machines."""
    if chosen <= 1:
        words = [("main", say("Open in the wizard"), bool(chosen))]
        more = [("look", say("Show details"), True), ("package", say("Setup package for such PCs"), True)]
    else:
        words, more = [("main", say("Setup packages for these PCs"), True)], []
    return [*words, *more, ("none", say("Clear selection"), True)] if chosen else words


def _note(names: list[str]) -> Text:
    """Say which machines are chosen, or how that is done."""
    if not names:
        return say(
            "Press a card to choose a machine. Choose several to get setup packages for all of them, as for a class."
        )
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
