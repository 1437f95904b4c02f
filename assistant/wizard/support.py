"""The support matrix as pictures: what each family of GPUs gets on each system, and how workloads do."""

from __future__ import annotations

from functools import cache
from io import BytesIO
from itertools import groupby
from typing import Any

from matplotlib.figure import Figure
from matplotlib.font_manager import get_font_names
from matplotlib.patches import Rectangle

from assistant.i18n import render, say, use_language
from assistant.model.plan import Backend
from assistant.session.support import SYSTEMS, WORKLOADS, Cell, Known, matrix, state_word, workloads

__all__ = ["Picture", "draw_support", "draw_workloads"]

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
INK = "#787878"  # readable on JupyterLab's light and dark pages alike
TITLES = {"linux": "Linux", "wsl": "WSL", "windows": "Windows", "macos": "macOS"}
_CHINESE = ("Noto Sans CJK SC", "Microsoft YaHei", "PingFang SC", "WenQuanYi Micro Hei")


class Picture:
    """A figure that a notebook shows as PNG, with words for those who do not see it."""

    def __init__(self, figure: Figure, words: str) -> None:
        self.figure, self.words = figure, words

    def __repr__(self) -> str:
        return self.words

    def _repr_png_(self) -> tuple[bytes, dict[str, str]]:
        """Give the picture and its words, as notebooks ask for them."""
        drawn = BytesIO()
        self.figure.savefig(drawn, format="png", dpi=100, transparent=True)
        return drawn.getvalue(), {"alt": self.words}


def draw_support(language: str | None = None) -> Picture:
    """Draw the best plan of each family on each system; an empty place means that such a card is not found there."""
    use_language(language)
    rows = [(family, list(cells)) for family, cells in groupby(matrix(), key=lambda cell: cell.family.family)]
    figure, axes = _grid(len(rows), [TITLES[system] for system in SYSTEMS], [_named(cells[0]) for _key, cells in rows])
    for row, (_family, cells) in enumerate(rows):
        for column, cell in enumerate(cells):
            if cell.plan:
                words = f"{cell.plan.backend.value.upper()}  {cell.plan.torch}\n{cell.plan.variant}"
                _fill(axes, column, row, COLOURS[cell.plan.backend], words)
    return Picture(figure, say("The best plan for each family of GPUs on each system"))


def draw_workloads(language: str | None = None) -> Picture:
    """Draw what is known of each workload on each backend: verified by us, published by others, or with gaps."""
    use_language(language)
    known = workloads()
    titles = [say("Language model"), say("Speech (text to mel)"), say("Vocoder"), say("Fine-tuning")]
    figure, axes = _grid(len(Backend), titles, [backend.value.upper() for backend in Backend])
    for row, backend in enumerate(Backend):
        for column, workload in enumerate(WORKLOADS):
            found: Known | None = known.get((backend, workload))
            if found:
                _fill(axes, column, row, STATES[found.state], render(state_word(found.state)))
    return Picture(figure, say("What is known of each workload on each backend"))


@cache
def _fonts() -> list[str]:
    """Name the fonts here that have Chinese words, then matplotlib's own."""
    return [name for name in _CHINESE if name in get_font_names()] + ["DejaVu Sans"]


def _named(cell: Cell) -> str:
    return f"{cell.family.family}  ({cell.family.name})" if cell.family.name else say("no GPU")


def _grid(count: int, columns: list[str], rows: list[str]) -> tuple[Figure, Any]:
    figure = Figure(figsize=(9.5, 0.9 + 0.42 * count), layout="constrained")
    axes = figure.add_subplot()
    axes.set(xlim=(0, len(columns)), ylim=(count, 0))
    axes.set_xticks(
        [column + 0.5 for column in range(len(columns))], columns, color=INK, fontfamily=_fonts(), fontsize=9
    )
    axes.set_yticks([row + 0.5 for row in range(count)], rows, color=INK, fontfamily=_fonts(), fontsize=8)
    axes.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
    for side in axes.spines.values():
        side.set_visible(False)
    return figure, axes


def _fill(axes: Any, column: int, row: int, colour: str, words: str) -> None:  # noqa: ANN401 - matplotlib's own
    axes.add_patch(Rectangle((column + 0.02, row + 0.05), 0.96, 0.9, color=colour))
    middle = {"ha": "center", "va": "center", "color": "white", "fontsize": 7.5, "fontfamily": _fonts()}
    axes.text(column + 0.5, row + 0.5, words, linespacing=1.1, **middle)
