"""The support matrix as tables: what each family of GPUs gets on each system, and how workloads do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import groupby
from typing import NamedTuple

from assistant.i18n import LANGUAGES, Text, in_language, language, say, use_language
from assistant.markup import Markup, tag
from assistant.model.plan import Backend
from assistant.session.support import SYSTEMS, WORKLOADS, Cell, Known, Standing, matrix, standing, state_word, workloads
from assistant.wizard.html import NOTHING

TITLES = {"linux": "Linux", "wsl": "WSL", "windows": "Windows", "macos": "macOS"}


class Badge(NamedTuple):
    """A state as a sign and a colour, beside its word; white on it has a contrast of 4.5 or more in any theme."""

    sign: str
    colour: str


# A colour says how well it works and never which backend it is: nobody's backend looks like an alarm.
GOOD, PARTLY, NOT = Badge("✓", "#1a6b35"), Badge("△", "#8a5300"), Badge("–", "#5c5c5c")
BADGES: Mapping[Standing, Badge] = {"works": GOOD, "gaps": PARTLY, "none": NOT}
STATES = {"verified": GOOD, "published": Badge("○", "#0b5cad"), "gaps": PARTLY, "experimental": Badge("?", "#6b3fa0")}


class Matrix:
    """A table that a notebook shows, in the language in force, and folded away in the others.

    Its caption is all that is printed where there is no page.
    """

    def __init__(self, caption: Callable[[], str], table: Callable[[], Markup], legend: Callable[[], Markup]) -> None:
        self._caption, self._table, self._legend = caption, table, legend

    def __repr__(self) -> str:
        return self._caption()

    def _repr_html_(self) -> str:
        """Write the table as notebooks ask for it: its own style, as no stylesheet of ours is there, and no script."""
        parts = [self._whole()]
        for code, name in LANGUAGES.items():
            if code != language():
                with in_language(code):
                    parts.append(tag("details", tag("summary", name), self._whole(), lang=code.replace("_", "-")))
        return str(tag("div", *parts))

    def _whole(self) -> Markup:
        return tag("table", tag("caption", self._caption()), self._table()) + self._legend()


_STYLE = "text-align: left; padding: 4px 8px"
_BADGE = "display: inline-block; padding: 0 6px; border-radius: 4px; white-space: nowrap; color: #ffffff"


def draw_support(language: str | None = None) -> Matrix:
    """Draw the best plan of each family on each system; an empty place means that such a card is not found there."""
    use_language(language)
    return Matrix(lambda: say("The best plan for each family of GPUs on each system"), _support, _support_legend)


def draw_workloads(language: str | None = None) -> Matrix:
    """Draw what is known of each workload on each backend: verified by us, published by others, or with gaps."""
    use_language(language)
    return Matrix(lambda: say("What is known of each workload on each backend"), _workloads, _workload_legend)


def _support() -> Markup:
    families = [list(cells) for _family, cells in groupby(matrix(), key=lambda cell: cell.family.family)]
    rows = []
    for cells in families:
        family = cells[0].family
        name = f"{family.family}  ({family.name})" if family.name else say("no GPU")
        rows.append((name, [_best(cell) for cell in cells]))
    return _table([TITLES[system] for system in SYSTEMS], rows)


def _workloads() -> Markup:
    known = workloads()
    titles = [say("Language model"), say("Speech (text to mel)"), say("Vocoder"), say("Fine-tuning")]
    rows = [(backend.title, [_state(known.get((backend, workload))) for workload in WORKLOADS]) for backend in Backend]
    return _table(titles, rows)


def _table(columns: list[str], rows: list[tuple[str, list[Markup]]]) -> Markup:
    head = [tag("th", title, scope="col", style=_STYLE) for title in ("", *columns)]
    body = (
        tag("tr", tag("th", name, scope="row", style=_STYLE), *(tag("td", cell, style=_STYLE) for cell in cells))
        for name, cells in rows
    )
    return tag("thead", tag("tr", *head)) + tag("tbody", *body)


def _best(cell: Cell) -> Markup:
    """Write how well the best plan does, and which it is: the backend is text, like torch's version."""
    if cell.plan is None:
        return NOTHING
    key, plan = standing(cell), cell.plan
    text = f" {plan.backend.title}, torch {plan.torch} ({plan.variant})"
    return _badge(BADGES[key], _words()[key]) + text


def _words() -> dict[Standing, str]:
    return {"works": say("works"), "gaps": say("works, with gaps"), "none": say("CPU only")}


def _badge(badge: Badge, word: Text) -> Markup:
    return tag(
        "span",
        tag("span", badge.sign, aria_hidden="true"),
        " ",
        word,
        style=f"{_BADGE}; background-color: {badge.colour}",
    )


def _state(known: Known | None) -> Markup:
    return _badge(STATES[known.state], state_word(known.state)) if known else NOTHING


def _support_legend() -> Markup:
    meaning: dict[Standing, str] = {
        "works": say("the GPU computes, and no gaps are known"),
        "gaps": say("the GPU computes, but some workloads lack something: the table of workloads says what"),
        "none": say("no build of PyTorch uses this GPU; everything runs on the CPU"),
    }
    items = [(_badge(BADGES[key], word), meaning[key]) for key, word in _words().items()]
    return _legend(items, [say("An empty cell means that this system has no such card.")])


def _workload_legend() -> Markup:
    meaning = {
        "verified": say("we ran it"),
        "published": say("others say so; we have not run it"),
        "gaps": say("it runs, but something is missing"),
        "experimental": say("it may fail"),
    }
    return _legend([(_badge(STATES[key], state_word(key)), text) for key, text in meaning.items()], [])


def _legend(items: list[tuple[Markup, str]], last: list[str]) -> Markup:
    lines = [tag("li", badge, ": ", text) for badge, text in items]
    return tag("ul", *lines, *(tag("li", line) for line in last), style="list-style: none; padding: 0")
