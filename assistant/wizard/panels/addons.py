"""What add-ons show on the wizard's pages, or the sentence that says what one of them needs."""

from __future__ import annotations

import ipywidgets as widgets

from assistant import addons
from assistant.i18n import say
from assistant.model.errors import WorkFailed
from assistant.model.visible import joined
from assistant.session.actions import Action
from assistant.session.session import Session
from assistant.session.state import Page, State, Task
from assistant.wizard import html
from assistant.wizard.panels.base import Part, close_all
from assistant.wizard.shared_widgets import Drawing, Fold, make

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
            self.folds[name].children = part.parts
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

    def pressed(self, key: str, state: State) -> tuple[Action, ...]:
        """Return what a press on a card of any add-on does, which then shows it."""
        actions = tuple(action for part in self.shown.values() for action in part.pressed(key))
        self.update(state)
        return actions

    def close(self) -> None:
        """Free every model."""
        for widget in (*self.parts, self.note):
            close_all(widget)
