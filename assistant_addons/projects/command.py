"""`assistant recipes`: what people run on torch, each with what it needs."""

from __future__ import annotations

import click

from assistant.api import Text, _, render, say
from assistant.api.journey import check_each
from assistant.api.records import Backend
from assistant.api.steps import system_name
from assistant.api.terminal import echo, echo_json, json_option
from assistant.api.texts import as_typed
from assistant_addons.projects.recipes import ANY, Recipe, recipe_of
from assistant_addons.projects.recipes import recipes as listed


@click.group()
def recipes() -> None:
    """List and show recipes: applications, libraries and courses that run on torch."""


@recipes.command("list")
@json_option
def list_recipes(*, as_json: bool) -> None:
    """List the recipes, what each runs on, and how much of the card's memory it needs at least."""
    if as_json:
        echo_json(listed())
        return
    from assistant.api.journey import draw_rows  # noqa: PLC0415 - --json need not load the drawing library

    headings = (say("Name"), say("Recipe"), say("Works with"), "Python", say("Card memory"))
    draw_rows(headings, ((one.key, one.name, *_short(one)) for one in listed()))
    echo(as_typed(say("`assistant recipes show NAME` shows more, and `assistant install --for NAME` installs one.")))


def _short(recipe: Recipe) -> tuple[str, str, str]:
    backends = ", ".join(backend.title for backend in recipe.backends)
    return backends, recipe.pythons, f"{recipe.least.gb:g} GB" if recipe.least else say("unknown")


@recipes.command()
@click.argument("name", callback=check_each(lambda name: recipe_of(name).key))
@json_option
def show(name: str, *, as_json: bool) -> None:
    """Print what a recipe is, runs on and needs, with the sources; with --json everything that is known."""
    recipe = recipe_of(name)
    if as_json:
        echo_json(recipe)
        return
    from rich.text import Text  # noqa: PLC0415 - as above

    from assistant.api.journey import console, draw_rows  # noqa: PLC0415 - likewise

    console.print(Text(render(recipe.name), style="bold"))
    draw_rows((), ((Text(render(label), style="bold"), value) for label, value in recipe_rows(recipe)))


def recipe_rows(recipe: Recipe) -> list[tuple[Text, Text]]:
    """Return what a person asks of a recipe before it is planned; `--json` has all that is known."""
    app = recipe.application
    rows: list[tuple[Text, Text | None]] = [
        (_("What for"), _(recipe.lead)),
        (_("Works with"), ", ".join(_backend_on(*entry) for entry in recipe.backends.items())),
        (_("Packages"), ", ".join(recipe.requirements)),
        (_("Taken from"), f"{app.repository}/blob/{app.commit}/{app.file} ({app.date})" if app else ""),
        *((_("Card memory"), _("{gigabytes:g} GB: {use}", gigabytes=row.gb, use=_(row.use))) for row in recipe.memory),
        *((_("Start"), _keyed(line, key)) for key, line in recipe.start.items()),
        *((_("Note"), _(note)) for note in recipe.notes),
        *((_("Source"), f"{row.of}: {row.url} ({row.date})") for row in recipe.sources),
    ]
    return [(label, value) for label, value in rows if value]


def _backend_on(backend: Backend, systems: tuple[str, ...]) -> str:
    return f"{backend.title} ({', '.join(map(system_name, systems))})" if systems else backend.title


def _keyed(text: str, key: str) -> str:
    """Write for which backend or system a text is, in brackets, unless it is for all."""
    titles = {backend.value: backend.title for backend in Backend}
    return text if key == ANY else f"{text} ({titles.get(key) or system_name(key)})"
