"""The support matrix as tables: what each family of GPUs gets on each system, and how workloads do."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from assistant.i18n import Text, say, use_language
from assistant.markup import Markup, tag
from assistant.model.plan import Backend, Plan
from assistant.session.support import SYSTEMS, WORKLOADS, Known, matrix, state_word, workloads

# Dark enough for white words; the words tell the backend, the colour only repeats it.
COLOURS = {
    Backend.CUDA: "#3d6b1f",
    Backend.ROCM: "#a3282b",
    Backend.XPU: "#0b5cad",
    Backend.MPS: "#5b4a9e",
    Backend.DIRECTML: "#8a5300",
    Backend.CPU: "#5c5c5c",
}
STATES = {"verified": "#1f6b46", "published": "#0b5cad", "gaps": "#8a5300", "experimental": "#a3282b"}
TITLES = {"linux": "Linux", "wsl": "WSL", "windows": "Windows", "macos": "macOS"}
Field = tuple[Text, str] | None  # its words and colour; None where there is nothing


class Matrix:
    """A coloured table that a notebook shows; its caption is all that is printed where there is no page."""

    def __init__(self, caption: str, columns: Iterable[str], rows: Iterable[tuple[str, Iterable[Field]]]) -> None:
        self.caption, self.columns = caption, tuple(columns)
        self.rows = [(name, tuple(fields)) for name, fields in rows]

    def __repr__(self) -> str:
        return self.caption

    def _repr_html_(self) -> str:
        """Write the table as notebooks ask for it; its own style, as no stylesheet of ours is there."""
        head = [tag("th", title, scope="col", style=_STYLE) for title in ("", *self.columns)]
        rows = [
            tag("tr", tag("th", name, scope="row", style=_STYLE), *map(_cell, fields)) for name, fields in self.rows
        ]
        table = tag("table", tag("caption", self.caption), tag("thead", tag("tr", *head)), tag("tbody", *rows))
        return str(table)


_STYLE = "text-align: left; padding: 4px 8px"


def _cell(field: Field) -> Markup:
    if field is None:
        return tag("td", "")
    words, colour = field
    return tag("td", words, style=f"{_STYLE}; color: white; background-color: {colour}")


def draw_support(language: str | None = None) -> Matrix:
    """Draw the best plan of each family on each system; an empty place means that such a card is not found there."""
    use_language(language)
    families = [list(cells) for _family, cells in groupby(matrix(), key=lambda cell: cell.family.family)]
    columns = [TITLES[system] for system in SYSTEMS]
    rows = []
    for cells in families:
        family = cells[0].family
        name = f"{family.family}  ({family.name})" if family.name else say("no GPU")
        rows.append((name, [_best(cell.plan) for cell in cells]))
    return Matrix(say("The best plan for each family of GPUs on each system"), columns, rows)


def draw_workloads(language: str | None = None) -> Matrix:
    """Draw what is known of each workload on each backend: verified by us, published by others, or with gaps."""
    use_language(language)
    known = workloads()
    titles = [say("Language model"), say("Speech (text to mel)"), say("Vocoder"), say("Fine-tuning")]
    rows = [(backend.title, [_state(known.get((backend, workload))) for workload in WORKLOADS]) for backend in Backend]
    return Matrix(say("What is known of each workload on each backend"), titles, rows)


def _best(plan: Plan | None) -> Field:
    return (f"{plan.backend.title} {plan.torch} {plan.variant}", COLOURS[plan.backend]) if plan else None


def _state(known: Known | None) -> Field:
    return (state_word(known.state), STATES[known.state]) if known else None
