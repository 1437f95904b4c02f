"""`assistant recipes`: what people run on torch, each with what it needs, and its plan for a machine."""

from __future__ import annotations

from typing import Any

import click

from assistant.catalog.recipes import Recipe, recipe_of
from assistant.catalog.recipes import recipes as known
from assistant.cli.options import each
from assistant.cli.plan import plan as plan_command
from assistant.cli.terminal import echo, echo_json, json_option
from assistant.i18n import as_typed, render, say
from assistant.views import recipe_rows

recipe_argument = click.argument("name", callback=each(lambda name: recipe_of(name).key))


@click.group()
def recipes() -> None:
    """List, show and plan recipes: applications, libraries and courses that run on torch."""


@recipes.command("list")
@json_option
def list_recipes(*, as_json: bool) -> None:
    """List the recipes, what each runs on, and how much of the card's memory it needs at least."""
    if as_json:
        echo_json(known())
        return
    from assistant.cli.console import draw_rows  # noqa: PLC0415 - --json need not load the drawing library

    headings = (say("Name"), say("Recipe"), say("Works with"), "Python", say("Card memory"))
    draw_rows(headings, ((one.key, one.name, *_short(one)) for one in known()))
    echo(as_typed(say("`assistant recipes show NAME` shows more, and `assistant install --for NAME` installs one.")))


def _short(recipe: Recipe) -> tuple[str, str, str]:
    backends = ", ".join(backend.title for backend in recipe.backends)
    return backends, recipe.pythons, f"{recipe.least.gb:g} GB" if recipe.least else say("unknown")


@recipes.command()
@recipe_argument
@json_option
def show(name: str, *, as_json: bool) -> None:
    """Print everything that is known about a recipe, with the sources."""
    recipe = recipe_of(name)
    if as_json:
        echo_json(recipe)
        return
    from rich.text import Text  # noqa: PLC0415 - as above

    from assistant.cli.console import console, draw_rows  # noqa: PLC0415 - likewise

    console.print(Text(render(recipe.name), style="bold"))
    draw_rows((), ((Text(render(label), style="bold"), value) for label, value in recipe_rows(recipe)))


@recipes.command()
@recipe_argument
@click.pass_context
def plan(context: click.Context, /, name: str, **options: Any) -> None:  # noqa: ANN401 - those of `assistant plan`
    """Choose what to install for a recipe, and say why; the same as `assistant plan --for NAME`."""
    context.invoke(plan_command, **options, bundle=name, machines=None)


plan.params += [option for option in plan_command.params if option.name not in {"bundle", "machines"}]
