"""How the terminal draws causes: the failing line in its context, why, the ways out, how to tell that it worked."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from assistant.cli.console import console
from assistant.cli.draw import draw_remedy
from assistant.diagnose import Log, Rule
from assistant.i18n import as_typed, render, say
from assistant.model.finding import Diagnosis
from assistant.model.visible import visible

WIDTH = 160


def draw_diagnoses(log: Log, found: Iterable[tuple[Diagnosis, int | None]]) -> None:
    """Print causes, best first."""
    for diagnosis, line in found:
        sign = ("✗ ", "red") if diagnosis.sure else ("? ", "yellow")
        console.print(Text.assemble(sign, (render(diagnosis.title), "bold"), (f"  {diagnosis.confidence:.0%}", "dim")))
        if line is not None:
            _context(log, line)
        console.print(Text(f"  {render(diagnosis.cause)}"))
        for number, remedy in enumerate(diagnosis.remedies, 1):
            draw_remedy(remedy, f"  {number}.", style="cyan")
        for source in diagnosis.sources:
            console.print(Text(f"  {source}", style="dim"))
        console.print()


def draw_unknown(rules: Iterable[Rule]) -> None:
    """Say that no rule knows this log, what comes nearest, and how to ask others."""
    console.print(Text(say("Nothing in this log points to a cause that is known here.")))
    for rule in rules:
        console.print(Text(say("  nearest: {title} ({key})", title=say(rule.title), key=rule.key), style="dim"))
    text = say("If something did fail, `assistant diagnose LOG --report FILE.md` writes a report to paste.")
    console.print(Text(as_typed(text)))


def _context(log: Log, index: int) -> None:
    marked = log.lines[index][0]
    for number, line in log.around(index, 2):
        text = visible(line)[:WIDTH]
        style = "bold red" if number == marked else "dim"
        console.print(Text(f"  {'→' if number == marked else ' '} {number:>6} │ {text}", style=style))
