"""`assistant recipes`: what people run on torch, each with what it needs, and its plan for a machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import click
from packaging.requirements import Requirement

from assistant.api import Message, Text, _, render, say
from assistant.api.journey import check_each
from assistant.api.journey import plan as plan_command
from assistant.api.planning import describe_needs, launchers, system_needs
from assistant.api.records import Backend
from assistant.api.steps import system_name
from assistant.api.terminal import echo, echo_json, json_option
from assistant.api.texts import as_typed
from assistant_addons.projects.recipes import ANY, Recipe, recipe_of
from assistant_addons.projects.recipes import recipes as listed

recipe_argument = click.argument("name", callback=check_each(lambda name: recipe_of(name).key))


@click.group()
def recipes() -> None:
    """List, show and plan recipes: applications, libraries and courses that run on torch."""


@recipes.command("list")
@json_option
def list_recipes(*, as_json: bool) -> None:
    """List the recipes, what each runs on, and how much of the card's memory it needs at least."""
    if as_json:
        echo_json(listed())
        return
    from assistant.api.drawing import draw_rows  # noqa: PLC0415 - --json need not load the drawing library

    headings = (say("Name"), say("Recipe"), say("Works with"), "Python", say("Card memory"))
    draw_rows(headings, ((one.key, one.name, *_short(one)) for one in listed()))
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

    from assistant.api.drawing import console, draw_rows  # noqa: PLC0415 - likewise

    console.print(Text(render(recipe.name), style="bold"))
    draw_rows((), ((Text(render(label), style="bold"), value) for label, value in recipe_rows(recipe)))


@recipes.command()
@recipe_argument
@click.pass_context
def plan(context: click.Context, /, name: str, **options: Any) -> None:  # noqa: ANN401 - those of `assistant plan`
    """Choose what to install for a recipe, and say why; the same as `assistant plan --for NAME`."""
    context.invoke(plan_command, **options, bundle=name, machines=None)


plan.params += [option for option in plan_command.params if option.name not in {"bundle", "machines"}]


def recipe_rows(recipe: Recipe) -> list[tuple[Text, Text]]:
    """Return all that a recipe knows, its sources with their dates at the end."""
    app, systems = recipe.application, ", ".join(map(system_name, recipe.systems))
    rows: list[tuple[Text, Text | None]] = [
        (_("What for"), _(recipe.lead)),
        (_("System"), f"{systems} ({', '.join(recipe.archs)})" if recipe.archs else systems),
        (_("Works with"), ", ".join(_backend_on(*entry) for entry in recipe.backends.items())),
        (_("Support unknown"), ", ".join(backend.title for backend in recipe.untested)),
        *((_("On {backend}", backend=one.title), _(why)) for one, why in recipe.against.items()),
        (_("Compute capability"), recipe.capability and f">={recipe.capability}"),
        (_("Python"), recipe.pythons),
        (_("torch"), ", ".join(_keyed(bound, key) for key, bound in recipe.torch.items())),
        (_("Packages"), ", ".join(recipe.requirements)),
        *((_("For {backend}", backend=one.title), ", ".join(also)) for one, also in recipe.also.items()),
        *((_("Wheels for {build}", build=build), page) for build, page in recipe.links.items()),
        *(
            (_("Variable"), _keyed(f"{name}={value}", one.value))
            for one, variables in recipe.env.items()
            for name, value in variables.items()
        ),
        (_("Version limits"), ", ".join((*recipe.constraints, *recipe.overrides))),
        (_("Taken from"), f"{app.repository}/blob/{app.commit}/{app.file} ({app.date})" if app else ""),
        *((_("Also needs"), text) for text in _needs(recipe)),
        *((_("Card memory"), _("{gigabytes:g} GB: {use}", gigabytes=row.gb, use=_(row.use))) for row in recipe.memory),
        *((_("Start"), _keyed(line, key)) for key, line in recipe.start.items()),
        *((_("Arguments"), _keyed(" ".join(words), one.value)) for one, words in _arguments(recipe)),
        *((_("Note"), _(note)) for note in recipe.notes),
        (_("Check"), recipe.trial.call),
        *((_("Source"), f"{row.of}: {row.url} ({row.date})") for row in recipe.sources),
    ]
    return [(label, value) for label, value in rows if value]


def _needs(recipe: Recipe) -> Iterable[Message]:
    """Say what a recipe and its packages need on the system."""
    packages = (need for line in recipe.requirements for need in system_needs(Requirement(line).name))
    return dict.fromkeys(need.text for need in (*describe_needs(recipe.name, recipe.needs), *packages))


def _backend_on(backend: Backend, systems: tuple[str, ...]) -> str:
    return f"{backend.title} ({', '.join(map(system_name, systems))})" if systems else backend.title


def _arguments(recipe: Recipe) -> Iterator[tuple[Backend, tuple[str, ...]]]:
    """Yield what the application's launcher is told on each backend that the recipe works with."""
    for launcher in launchers():
        if launcher.key == recipe.launcher:
            yield from ((one, words) for one, words in launcher.backends.items() if words and one in recipe.backends)


def _keyed(text: str, key: str) -> str:
    """Write for which backend or system a text is, in brackets, unless it is for all."""
    titles = {backend.value: backend.title for backend in Backend}
    return text if key == ANY else f"{text} ({titles.get(key) or system_name(key)})"
