"""What for: a card for each area and, of the area that is open, a card for each recipe; or a project of the user's."""

from __future__ import annotations

from typing import NamedTuple

import ipywidgets as widgets

from assistant.api import BadInput, Text, _, render, replace, say
from assistant.api.notebook import Action, AddonPart, Choose, Drawing, Page, Session, State, html, make
from assistant.api.planning import bundles, find_bundle, load_catalog, make_plans, rejection_reason
from assistant.api.records import Backend, Machine, Request
from assistant.api.texts import Markup
from assistant_addons.projects.memory import largest_card
from assistant_addons.projects.read import read_project
from assistant_addons.projects.recipe_plans import memory_warning
from assistant_addons.projects.recipes import Group, Recipe, groups, recipes

AREA, FOR = "area", "for"  # begin the keys of an area and of what is made for it
PLAIN = "minimal"  # the area, and the bundle, of those who want nothing beside PyTorch


class Fit(NamedTuple):
    """How well a recipe fits a machine: "good", "warning" or "bad", why it is not good, and what that rests on.

    `figures` are the GB that its smallest use takes and that the card has; None where one is not known.
    """

    light: str
    why: Text = ""
    figures: tuple[float, float] | None = None


class PurposePart(AddonPart):
    """The cards, and the place of a project; how each recipe fits is worked out once for a machine."""

    page = Page.SETUP

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.cards = make(Drawing)
        self.project = make(
            widgets.Text,
            description=_("Your project"),
            placeholder=_("requirements.txt, pyproject.toml, a notebook, or a folder of code"),
            continuous_update=False,
        )
        self.project.observe(lambda change: self._take(change["new"].strip()), "value")
        self.fault = make(Drawing)
        self.parts = (self.cards, self.project, self.fault)
        self._machine: Machine | None = None
        self._fits: dict[str, Fit] = {}
        self._open = ""  # the area that was pressed last, "" for that of what is chosen

    def _wish(self, **changed: str) -> Choose:
        return Choose(request=replace(self.session.state.choices.request, **changed))

    def _take(self, path: str) -> None:
        """Plan for a project, "" for none; if it cannot be read, say so below the field, and leave the plan."""
        if self._quiet or AddonPart.rewording:
            return
        self.fault.value = html.NOTHING
        try:
            if path:
                read_project(path)
        except BadInput as error:
            self.fault.value = html.failure(error.message, error.hint)
        else:
            self.session.dispatch(self._wish(project=path))

    def pressed(self, key: str) -> tuple[Action, ...]:
        """Open an area, and choose its libraries if there are any; or choose what was pressed."""
        part, _colon, name = key.partition(":")
        if part == AREA:
            self._open = name
            name = next((group.bundle for group in groups() if group.key == name), PLAIN)
        return (self._wish(bundle=name),) if part in {AREA, FOR} and name else ()

    def follow(self, state: State) -> None:
        """Show what there is on this machine, and what is chosen."""
        machine = state.detection.machine if state.detection else None
        self.project.value = state.choices.request.project
        if machine is None:
            self.cards.value = html.NOTHING
            return
        if self._machine != machine:
            self._machine, self._fits = machine, {recipe.key: judge_fit(recipe, machine) for recipe in recipes()}
        chosen = find_bundle(state.choices.request.bundle).key
        area = self._open or area_of(chosen)
        self.cards.value = draw_areas(area, self._fits) + draw_area(area, chosen, self._fits)


def area_of(chosen: str) -> str:
    """Return the area of a bundle or a recipe."""
    homes = {recipe.key: recipe.group for recipe in recipes()} | {group.bundle: group.key for group in groups()}
    return homes.get(chosen, PLAIN)


def judge_fit(recipe: Recipe, machine: Machine) -> Fit:
    """Return whether a recipe runs on a machine, and whether its card has the memory."""
    planning = make_plans(machine, load_catalog(), Request(bundle=recipe.key))
    if planning.choice is None:
        return Fit("bad", rejection_reason(planning.rejected[0]))
    plan = planning.choice
    short, (_card, has) = memory_warning(recipe, plan, machine), largest_card(machine, plan.backend)
    figures = (recipe.least.gb, round(has, 1)) if recipe.least and has and plan.backend is not Backend.CPU else None
    return Fit("warning", short, figures) if short else Fit("good", figures=figures)


def draw_areas(area: str, fits: dict[str, Fit]) -> Markup:
    """Return a card for each area, with how many of its recipes fit the machine."""
    plain = next(bundle for bundle in bundles() if bundle.key == PLAIN)
    tiles = [html.Tile(f"{AREA}:{PLAIN}", render(plain.name), say("nothing beside it"), "box", "good", say("fits"))]
    tiles += [_area_tile(group, fits) for group in groups()]
    return html.tiles(say("What for?"), tiles, f"{AREA}:{area}", class_="ptsa-small-tiles")


def _area_tile(group: Group, fits: dict[str, Fit]) -> html.Tile:
    lights = [fits[one.key].light for one in recipes() if one.group == group.key and one.key in fits]
    good = lights.count("good")
    light = "good" if good == len(lights) else "warning" if good or group.bundle or "warning" in lights else "bad"
    first, *more = [render(one.name) for one in recipes() if one.group == group.key]
    names = say("{name} and {count} more", name=first, count=len(more)) if more else first
    fit = say("{good} of {all} fit", good=good, all=len(lights)) if lights else ""
    return html.Tile(f"{AREA}:{group.key}", say(group.title), names, group.sign, light if lights else "", fit)


def draw_area(area: str, chosen: str, fits: dict[str, Fit]) -> Markup:
    """Return a card for the libraries and each recipe of an area; nothing for the area that is PyTorch alone."""
    group = next((group for group in groups() if group.key == area), None)
    if group is None:
        return html.NOTHING
    own = next((bundle for bundle in bundles() if bundle.key == group.bundle), None)
    packages = " + ".join(own.requirements) if own else ""
    libraries = [html.Tile(f"{FOR}:{own.key}", say("The libraries"), packages, "box")] if own else []
    ready = [_recipe_tile(one, fits.get(one.key, Fit(""))) for one in recipes() if one.group == area]
    return html.tiles(say("{area}: what exactly?", area=say(group.title)), [*libraries, *ready], f"{FOR}:{chosen}")


def _recipe_tile(recipe: Recipe, fit: Fit) -> html.Tile:
    """Return a recipe's card: what it is for, or what stands against it."""
    fits = say("fits")
    if fit.figures:
        fits = say("fits: {need:g} of {has:g} GB", need=fit.figures[0], has=fit.figures[1])
    words = {"good": fits, "warning": say("may not fit"), "bad": say("does not run here")}.get(fit.light, "")
    return html.Tile(
        f"{FOR}:{recipe.key}",
        render(recipe.name),
        fit.why or say(recipe.lead),
        light=fit.light,
        fits=words,
        off=fit.light == "bad",
    )
