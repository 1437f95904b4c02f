"""What for: cards of bundles and, folded away in groups, of recipes, as this machine is; or a project of the user's."""

from __future__ import annotations

import ipywidgets as widgets

from assistant.api import render, replace, say, sentences
from assistant.api.notebook import AddonPart, Chips, Choose, Page, Session, State, make
from assistant.api.planning import Bundle, bundles, find_bundle, load_catalog, make_plans, rejection_reason
from assistant.api.records import Machine, Request
from assistant.api.texts import language
from assistant_addons.projects.recipe_plans import memory_warning
from assistant_addons.projects.recipes import Recipe, groups


class PurposePart(AddonPart):
    """The cards, which are written anew only for another machine or language, and the place of a project."""

    page = Page.SETUP

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.chips = make(Chips, description=say("What for?"))
        self.on_value(self.chips, lambda key: self._wish(bundle=key))
        self.project = make(
            widgets.Text,
            description=say("Your project"),
            placeholder=say("requirements.txt, pyproject.toml, a notebook, or a folder of code"),
            continuous_update=False,
        )
        self.on_value(self.project, lambda path: self._wish(project=path.strip()))
        self.parts = (self.chips, self.project)
        self._written: tuple[Machine | None, str] = (None, "")

    def _wish(self, **changed: str) -> Choose:
        return Choose(request=replace(self.session.state.choices.request, **changed))

    def follow(self, state: State) -> None:
        """Show what there is on this machine, and what is chosen."""
        written = (state.detection.machine if state.detection else None, language())
        if self._written != written:
            self._written = written
            self.chips.options = bundle_options(written[0])
        self.chips.value = find_bundle(state.choices.request.bundle).key
        self.project.value = state.choices.request.project


def bundle_options(machine: Machine | None) -> list[dict[str, str]]:
    """List what an environment can be for, each with what it brings in short; recipes in groups, as this machine is."""
    plain = [{"key": one.key, "title": render(one.name), "lead": _packages(one)} for one in bundles()]
    return [*plain, *(_card(one, render(title), machine) for title, few in groups() for one in few)]


def _card(recipe: Recipe, group: str, machine: Machine | None) -> dict[str, str]:
    """Write a recipe's card: what it is for; where it cannot run, why not; and memory that is too small."""
    card = {"key": recipe.key, "title": render(recipe.name), "group": group, "lead": say(recipe.lead)}
    if machine is None:
        return card
    planning = make_plans(machine, load_catalog(), Request(bundle=recipe.key))
    if planning.choice is None:
        return {**card, "lead": render(rejection_reason(planning.rejected[0])), "off": "yes"}
    short = memory_warning(recipe, planning.choice, machine)
    return {**card, "lead": render(sentences((say(recipe.lead), short)))} if short else card


def _packages(bundle: Bundle) -> str:
    """Name what a bundle brings, in short."""
    return (
        " + ".join(bundle.requirements[:3]) + (" …" if bundle.requirements[3:] else "")
        or "torch, numpy, onnxruntime, pip"
    )
