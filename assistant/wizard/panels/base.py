"""What every page shares: widgets that follow the state, those of add-ons too, the footer, failures and logs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import ipywidgets as widgets

from assistant import addons
from assistant.i18n import Text, render, say
from assistant.model.errors import Cancelled, WorkFailed
from assistant.model.finding import Severity
from assistant.model.report import Step
from assistant.model.visible import Markup, joined, tag
from assistant.session.actions import Action, Answer
from assistant.session.session import Session
from assistant.session.state import Page, Phase, State, StepStatus, Task
from assistant.wizard import html
from assistant.wizard.head import ButtonAction, Footer
from assistant.wizard.shared_widgets import Drawing, Fold, make


class Part:
    """Widgets that follow the state, and post what the user does to the session."""

    rewording: ClassVar[bool] = False  # whether the words of all widgets are being written anew

    def __init__(self, session: Session) -> None:
        self.session = session
        self._quiet = False

    def follow(self, state: State) -> None:
        """Bring the widgets up to date with the state."""
        raise NotImplementedError

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Within this block, dispatch no action for values that change: they come from a state, not from the user."""
        self._quiet = True
        try:
            yield
        finally:
            self._quiet = False

    def on_value(self, widget: widgets.Widget, action: Callable[[Any], Action]) -> None:
        """Dispatch the `action` that a control's new value makes, whenever the user changes it."""

        def changed(change: dict[str, Any]) -> None:
            if not (self._quiet or Part.rewording):
                self.session.dispatch(action(change["new"]))

        widget.observe(changed, "value")


class PageView(Part):
    """One page below the head: made once, then brought up to date by `follow`.

    `parts` are in the middle from top to bottom, and stay there as long as the heading: of a part that comes or goes
    the browser makes all below anew, and a press meanwhile is lost. Those that are not to be seen are `hidden`.
    """

    parts: tuple[widgets.Widget, ...] = ()
    hidden: Collection[widgets.Widget] = ()

    def footer(self, state: State) -> Footer:
        """Return what the footer offers on this page while nothing is changed."""
        raise NotImplementedError

    def pressed(self, key: str, state: State) -> tuple[ButtonAction, ...]:  # noqa: ARG002 - a page may have none
        """Return what the card or button `key` of a drawing does, or a choice among cards; () for one of no page."""
        return ()

    def note(self, action: ButtonAction) -> None:
        """Note what was done for a press, if the page shows that."""

    def close(self) -> None:
        """Free every model of this page."""
        for widget in self.parts:
            close_all(widget)


def close_all(widget: widgets.Widget) -> None:
    """Free a widget's model and those of all that it holds."""
    for child in (widget.box,) if isinstance(widget, Fold) else getattr(widget, "children", ()):
        close_all(child)
    widget.close()


def busy_footer(state: State) -> Footer:
    """Return the footer while a task runs: Yes and Cancel if it asks a question, else Cancel, until it stops."""
    if state.question and not state.stopping:
        note = say("Press Yes to go on, or Cancel to roll everything back.")
        return Footer(label=say("Yes"), actions=(Answer(yes=True),), note=note, cancel=True)
    return Footer(label="", able=False, note=say("Stopping …") if state.stopping else "", cancel=not state.stopping)


def failure(state: State, of: Step | StepStatus) -> Markup:
    """Return the message and hint of a failed step or status, or the question of a running one; else nothing."""
    status = state.status(of) if isinstance(of, Step) else of
    if state.question and status.phase is Phase.RUNNING:
        return html.note(Severity.WARNING, state.question)
    if status.phase is Phase.FAILED:
        severity = Severity.INFO if status.exit_code == Cancelled.exit_code else Severity.ERROR
        return html.failure(status.message, status.hint, severity)
    return html.NOTHING


def log_view(lines: Iterable[Text], file: str = "") -> Markup:
    """Return these lines of a log, and that `file` holds all of them; nothing without lines."""
    text = "\n".join(map(render, lines))
    if not text:
        return html.NOTHING
    log = tag("pre", text, class_="ptsa-log")
    where = say("The last lines; all of them are in {path}.", path=file) if file else ""
    return tag("div", log, class_="ptsa-logbox", tabindex=0, role="log", aria_label=say("Log")) + html.lead_line(where)


PLACES = (Page.SETUP, Page.WRONG)  # the pages that have room for add-ons


class AddonPart(Part):
    """What one add-on shows on a page; an entry point of `assistant.pages` names a class derived from this one.

    `page` is where it is shown, one of `PLACES`. `parts` are its widgets, from top to bottom. They are below a fold
    if `title` gives one its words, and what costs time is then made by `fill`, when the fold is opened for the first
    time.
    """

    page: Page
    parts: tuple[widgets.Widget, ...] = ()

    def __init_subclass__(cls) -> None:
        """Refuse a page on which nothing of an add-on would ever be shown."""
        if cls.page not in PLACES:
            raise TypeError(f"{cls.__name__}.page must be one of {', '.join(map(str, PLACES))}")

    def title(self) -> str:
        """Return the words of the fold, in the language in force; "" for none."""
        return ""

    def fill(self) -> None:
        """Make what the fold shows, if that is still to be made: it is called whenever the fold is opened or closed."""

    def pressed(self, key: str) -> tuple[Action, ...]:  # noqa: ARG002 - a part may have no cards
        """Return what a choice among the part's cards, or a press on one, does; () for a key that is not of them."""
        return ()


class AddonParts:
    """What all add-ons show on a page: each of `shown` by its name, below its fold in `folds` if it has one."""

    def __init__(self, session: Session, page: Page) -> None:
        self.note = make(Drawing)
        self.folds: dict[str, Fold] = {}
        self.shown: dict[str, AddonPart] = {}
        lacking = []
        for name in addons.names(addons.PAGES):
            try:
                kind = addons.load(addons.PAGES, name)
            except WorkFailed as error:
                lacking.append(html.lead_line(say("{name}: {state}", name=name, state=error.message)))
                continue
            if kind.page is page:
                self._add(name, kind(session))
        self.note.value = joined(lacking) if page is Page.WRONG else html.NOTHING

    def _add(self, name: str, part: AddonPart) -> None:
        self.shown[name] = part
        if part.title():
            self.folds[name] = make(Fold, title=part.title)
            self.folds[name].holds = part.parts
            self.folds[name].observe(lambda _change: part.fill(), "unfolded")

    @property
    def parts(self) -> tuple[widgets.Widget, ...]:
        """The folds of add-ons, or the widgets of those that have none; last, a note on those that lack something."""
        rows = [(self.folds[name],) if name in self.folds else part.parts for name, part in self.shown.items()]
        return (*(widget for row in rows for widget in row), *((self.note,) if self.note.value else ()))

    def update(self, state: State) -> None:
        """Show a state in the parts of all add-ons, and open the fold of an add-on whose task is running."""
        for name, part in self.shown.items():
            with part.quiet():
                part.follow(state)
            if state.running is Task.ADDON and state.addon == name and name in self.folds:
                self.folds[name].unfolded = True

    def pressed(self, key: str) -> tuple[Action, ...]:
        """Return what a press on a card of any add-on does."""
        return tuple(action for part in self.shown.values() for action in part.pressed(key))
