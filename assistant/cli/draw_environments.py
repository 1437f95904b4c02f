"""How the terminal draws the environments on a machine, and a change of one of them."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from assistant.cli.console import console
from assistant.cli.draw import draw_findings
from assistant.i18n import as_typed, render, say
from assistant.model.shell import quoted
from assistant.session.survey import Known, Light, Repair, kept_for_undo, megabytes, move_words

SIGNS = {
    Light.GOOD: ("✓", "green"),
    Light.WARNING: ("!", "yellow"),
    Light.BAD: ("✗", "red"),
    Light.UNKNOWN: ("?", "dim"),
}


def draw_environments(found: Iterable[Known], *, cut_short: bool) -> None:
    """Print three lines for each environment: its name and what it holds, where it is, how it stands."""
    found = tuple(found)
    for one in found:
        _draw(one)
        console.print(Text(f"    {as_typed(one.state)}", style="" if one.light is Light.GOOD else SIGNS[one.light][1]))
    if not found:
        console.print(Text(as_typed(say("No environments were found; `assistant setup` makes one."))))
    if cut_short:
        console.print(
            Text(say("There are more folders than could be searched; use --check to name an environment."), style="dim")
        )


def draw_environment(one: Known) -> None:
    """Print all that is known of an environment, with what would fix it."""
    _draw(one)
    if one.size is not None:
        console.print(Text(say("    {size} MB on disk", size=one.size // 10**6), style="dim"))
    if one.findings:
        draw_findings(one.findings)
    else:
        console.print(Text(f"    {as_typed(one.state)}"))
    if one.undo:
        text = say("`assistant envs --undo {path}` undoes its last change.", path=quoted(one.path))
        console.print(Text(f"    {as_typed(text)} {render(kept_for_undo(one.undo))}", style="dim"))


def draw_repair(repair: Repair) -> None:
    """Print the difference that a change would make, what it mends and what it leaves."""
    difference = repair.difference
    console.print(Text(say("What would change in {path}:", path=repair.path), style="bold"))
    for move in difference.moves:
        console.print(Text(f"  {render(move_words(move))}"))
    console.print(Text(say("  {size:.1f} MB to download", size=megabytes(difference.download)), style="dim"))
    draw_findings(difference.findings)
    for finding in repair.mends:
        console.print(Text.assemble(("✓ ", "green"), say("would be mended: {problem}", problem=finding.text)))
    for finding in repair.remains:
        console.print(Text.assemble(("! ", "yellow"), say("would remain: {problem}", problem=finding.text)))


def _draw(one: Known) -> None:
    sign, style = SIGNS[one.light]
    known = [render(one.keeper)]
    known += [f"PyTorch {render(one.build)}"] if one.torch else []
    known += [f"Python {one.python}"] if one.python else []
    named = ((f"{sign} ", style), (one.name, "bold"), f"  {', '.join(known)}", (f"  ({render(one.light.word)})", style))
    console.print(Text.assemble(*named))
    console.print(Text(f"    {one.path}", style="dim"), soft_wrap=True)
