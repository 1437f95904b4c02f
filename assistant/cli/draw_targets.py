"""How the terminal draws what targets take of an ONNX model."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from assistant.cli.console import console
from assistant.cli.draw import draw_check, draw_remedy
from assistant.cli.table import draw_rows
from assistant.i18n import as_typed, ngettext, render
from assistant.onnx.answers import (
    HEADINGS_OF_BLOCKS,
    HEADINGS_OF_TARGETS,
    MOST_BLOCKS,
    Checked,
    Summary,
    Survey,
    notes_on_targets,
    rows_of_blocks,
    rows_of_targets,
)

__all__ = ["draw_check", "draw_several", "draw_survey"]


def draw_survey(answer: Survey) -> None:
    """Print a row for each target, what is not taken and why, and what mends that."""
    rows = zip(answer.targets, rows_of_targets(answer), strict=True)
    draw_rows(HEADINGS_OF_TARGETS, ((Text(render(first), style=_style(one)), *rest) for one, (first, *rest) in rows))
    for note in notes_on_targets(answer):
        console.print(Text(as_typed(render(note)), style="dim"))
    blocks = rows_of_blocks(answer)
    if blocks:
        console.print()
    draw_rows(HEADINGS_OF_BLOCKS, blocks[:MOST_BLOCKS])
    more = len(blocks) - MOST_BLOCKS
    if more > 0:
        rest = ngettext("… and {count} more operator", "… and {count} more operators", more)
        console.print(Text(as_typed(rest), style="dim"))
    for remedy in answer.remedies:
        draw_remedy(remedy, "→", style="dim")


def _style(one: Summary) -> str:
    """Return the colour of a row: red where nodes run nowhere, green where the target takes all."""
    return "red" if one.nowhere else "green" if one.takes == one.of else ""


def draw_several(answers: Iterable[Checked]) -> None:
    """Print the answers for several targets, one below the other."""
    for number, answer in enumerate(answers):
        if number:
            console.print()
        draw_check(answer)
