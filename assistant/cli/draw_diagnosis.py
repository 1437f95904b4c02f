"""How the terminal draws causes: the failing line in its context, why, the ways out, how to tell that it worked."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from assistant.cli.console import console
from assistant.diagnose import Log, Rule
from assistant.i18n import as_typed, render, say
from assistant.model.finding import Diagnosis, Launch, Remedy
from assistant.model.visible import visible

__all__ = ["draw_diagnoses", "draw_unknown"]

SURE = 0.8  # confidence from which a cause is told without "perhaps"
WIDTH = 160


def draw_diagnoses(log: Log, found: Iterable[tuple[Diagnosis, int | None]]) -> None:
    """Print causes, best first."""
    for diagnosis, line in found:
        sign = ("✗ ", "red") if diagnosis.confidence >= SURE else ("? ", "yellow")
        console.print(Text.assemble(sign, (render(diagnosis.title), "bold"), (f"  {diagnosis.confidence:.0%}", "dim")))
        if line is not None:
            _context(log, line)
        console.print(Text(f"  {render(diagnosis.cause)}"))
        for number, remedy in enumerate(diagnosis.remedies, 1):
            _remedy(number, remedy)
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


def _remedy(number: int, remedy: Remedy) -> None:
    console.print(Text(f"  {number}. {as_typed(remedy.text)}"))
    for name, value in remedy.env.items():
        console.print(Text(f"       {name}={value}", style="cyan"))
    plan = remedy.plan
    planned = [f"assistant setup --backend {plan.backend.value} --python {plan.python}"] if plan else []
    for command in (*remedy.commands, *planned):
        console.print(Text(f"       {as_typed(command)}", style="cyan"))
    for launch in remedy.launch:
        _launch(launch)
    for command in remedy.check:
        console.print(Text(say("       check: {command}", command=as_typed(command)), style="green"))


def _launch(launch: Launch) -> None:
    place = ", ".join(filter(None, (launch.app, launch.file)))
    console.print(Text(f"       {place}:"))
    for sign, words in (("-", launch.drop), ("+", launch.add), ("=", (launch.line,) if launch.line else ())):
        if words:
            console.print(Text(f"         {sign} {' '.join(words)}", style="cyan"))
