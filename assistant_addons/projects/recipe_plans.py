"""A recipe planned: what it asks for becomes the request's, and what it cannot use is rejected with a reason."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from assistant.api import BadInput, Message, _, replace, sentences
from assistant.api.planning import (
    USUAL_PYTHON,
    Catalog,
    PlanInputs,
    Refusal,
    Target,
    carried_by_torch_index,
    describe_needs,
    find_bundle,
    find_cards,
    find_target,
    launch_line,
    launchers,
    name_of,
    number,
    plans_for,
    reject,
    system_name,
)
from assistant.api.records import Backend, Machine, Plan, Planning, Rejection, Request, Vendor
from assistant_addons.projects.companions import with_needs
from assistant_addons.projects.memory import holds, largest_card
from assistant_addons.projects.recipes import ANY, Recipe, recipes

__all__ = ["make_plans", "memory_warning", "recipes", "with_recipe"]  # the reader `recipes` of the core, and one more

_MARKERS = {"linux": "linux", "windows": "win32", "macos": "darwin"}  # as sys.platform names them


class Case(NamedTuple):
    """A recipe for a machine, as it was asked for: `target` is where its wheels would go."""

    recipe: Recipe
    machine: Machine
    catalog: Catalog
    target: Target
    request: Request


def make_plans(machine: Machine, catalog: Catalog, request: Request) -> Planning:
    """Return what to install on a machine for a request that names a recipe: what the recipe can use.

    Raises `BadInput` as `plans_for` does, and for nightly builds of a recipe that needs releases.
    """
    recipe = find_bundle(request.bundle)
    if not isinstance(recipe, Recipe):
        return plans_for(machine, catalog, request)
    target = find_target(machine, replace(request, python=request.python or USUAL_PYTHON), catalog)
    if isinstance(target, Refusal):  # of the system: no Python would help
        return plans_for(machine, catalog, request)
    if request.nightly and (recipe.torch or any(map(_is_of_torch, recipe.requirements))):
        text = _("{recipe} is planned with releases of torch, not with nightly builds.")
        raise BadInput(text.format(recipe=recipe.name), hint=_("Leave nightly builds out, or plan without the recipe."))
    case = Case(recipe, machine, catalog, target, request)
    if refusal := _refuse_system(case):
        return Planning(rejected=(refusal,))
    wish = with_recipe(request)
    ordinary = (machine.python or "").removesuffix("t")
    if request.python or ordinary == (machine.python or ""):
        return _planned(case, wish)
    found = _planned(case._replace(machine=replace(machine, python=ordinary)), wish)
    text = _("A recipe is planned for the ordinary Python {python}, not for the free-threaded one.")
    plans = tuple(replace(one, reasons=(*one.reasons, text.format(python=one.python))) for one in found.plans)
    return replace(found, plans=plans, choice=plans[0] if plans else None)


def with_recipe(request: Request) -> Request:
    """Write what a recipe asks for into the request that names it; a request without one stays as it is.

    Doing so twice changes nothing more.
    """
    recipe = find_bundle(request.bundle)
    if not isinstance(recipe, Recipe):
        return request
    bounds = [f"torch{recipe.torch[ANY]}"] if ANY in recipe.torch else []
    bounds += [
        f'torch{recipe.torch[key]}; sys_platform == "{name}"' for key, name in _MARKERS.items() if key in recipe.torch
    ]
    return replace(
        request,
        pins=_joined(recipe.requirements, bounds, request.pins),
        constraints=_joined(recipe.constraints, request.constraints),
        overrides=_joined(recipe.overrides, request.overrides),
        pythons=",".join(_joined(recipe.pythons.split(","), filter(None, request.pythons.split(",")))),
    )


def _joined(*parts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(itertools.chain.from_iterable(parts)))


def _is_of_torch(line: str) -> bool:
    return carried_by_torch_index(name_of(line))


def _refuse_system(case: Case) -> Rejection | None:
    """Reject a system or a processor that the recipe is not for."""
    recipe, target = case.recipe, case.target
    arch = "x86_64" if target.platform.endswith(("x86_64", "amd64")) else "aarch64"
    if target.os in recipe.systems and (not recipe.archs or arch in recipe.archs):
        return None
    archs = f" ({', '.join(recipe.archs)})" if recipe.archs else ""
    systems = ", ".join(map(system_name, recipe.systems)) + archs
    why = _("{recipe} runs only on {systems}.", recipe=recipe.name, systems=systems)
    return reject(case.request.backend or next(iter(recipe.backends)), "recipe-not-for-system", why)


def _planned(case: Case, wish: Request) -> Planning:
    """Plan what a recipe asks for, and keep what it can use."""
    planning = _plans_for(case, wish)
    offered = [*planning.plans]
    if _lacks_directml(planning, case.recipe, wish):
        asked = _plans_for(case, replace(wish, backend=Backend.DIRECTML)).plans
        offered = [*(plan for plan in asked if plan.backend is Backend.DIRECTML), *offered]
    plans, rejected = [], []
    for plan in offered:
        answer = _suited(plan, case, wish)
        if isinstance(answer, Rejection):
            rejected.append(answer)
        else:
            plans.append(answer)
    if plans and plans[0].backend is Backend.CPU:
        why = dict.fromkeys(sentences((one.why, one.would_help)) for one in rejected)
        plans[0] = replace(plans[0], warnings=(*plans[0].warnings, *why))
    rejected += [_with_recipe_bounds(one, case) for one in planning.rejected]
    rejected.sort(key=lambda one: one.backend is Backend.CPU)  # why the GPU is not used says more
    return Planning(choice=plans[0] if plans else None, plans=tuple(plans), rejected=tuple(rejected))


def _plans_for(case: Case, wish: Request) -> Planning:
    inputs = PlanInputs(case.machine, case.catalog, wish)
    return with_needs(plans_for(*inputs), inputs)


def _lacks_directml(planning: Planning, recipe: Recipe, request: Request) -> bool:
    """Return whether DirectML should be asked for by name: the planner offers it only where nothing better is."""
    usable = any(plan.backend in recipe.backends and plan.backend is not Backend.CPU for plan in planning.plans)
    return Backend.DIRECTML in recipe.backends and not usable and request.backend is None


def _with_recipe_bounds(rejection: Rejection, case: Case) -> Rejection:
    """Say what the recipe needs of torch where bounds excluded a build; the user can only loosen those of their own."""
    recipe = case.recipe
    bounds = [recipe.torch[key] for key in (ANY, case.target.os, rejection.backend.value) if key in recipe.torch]
    if not bounds or not rejection.key.startswith("pins"):
        return rejection
    need = _("{recipe} needs torch {bounds}.", recipe=recipe.name, bounds=",".join(bounds))
    theirs = {*case.request.pins}.difference(with_recipe(Request(bundle=recipe.key)).pins)
    help_ = rejection.would_help if any(map(_is_of_torch, theirs)) else ""
    return replace(rejection, why=sentences((rejection.why, need)), would_help=help_)


def _suited(plan: Plan, case: Case, wish: Request) -> Plan | Rejection:
    """Return a plan as the recipe has it, or why the recipe cannot use it."""
    refusal = _refuse_backend(plan, case)
    bound = case.recipe.torch.get(plan.backend.value)
    if not refusal and bound and not SpecifierSet(bound).contains(plan.torch):
        narrower = replace(wish, backend=plan.backend, python=plan.python, pins=(f"torch{bound}", *wish.pins))
        anew = _plans_for(case, narrower)
        again = next((one for one in anew.plans if one.backend is plan.backend), None)
        if again is None:
            return _with_recipe_bounds(anew.rejected[0], case)
        plan = again
    return refusal or _refuse_build(plan, case) or _refuse_card(plan, case) or _finished(plan, case)


def _refuse_backend(plan: Plan, case: Case) -> Rejection | None:
    recipe, backend = case.recipe, plan.backend
    systems = recipe.backends.get(backend)
    if backend in recipe.untested or (systems is not None and (not systems or case.target.os in systems)):
        return None
    text = _("{recipe} needs a GPU.") if backend is Backend.CPU else _("{recipe} does not work with {backend}.")
    help_ = _(recipe.against[backend]) if backend in recipe.against else ""
    return reject(backend, "recipe-without-backend", text.format(recipe=recipe.name, backend=backend.title), help_)


def _refuse_build(plan: Plan, case: Case) -> Rejection | None:
    """Reject a build of torch for which the recipe's pages have no wheels."""
    build, links = _build(plan, case), case.recipe.links
    if not links or build in links:
        return None
    text = _("{recipe} has wheels only for the torch builds {builds}, and this machine uses {build}.")
    why = text.format(recipe=case.recipe.name, builds=", ".join(links), build=build)
    return reject(plan.backend, "recipe-other-build", why, variant=build)


def _build(plan: Plan, case: Case) -> str:
    return case.catalog.build_of(plan.torch, plan.variant, case.target.platform)


def _refuse_card(plan: Plan, case: Case) -> Rejection | None:
    """Reject a CUDA plan where every card is known to be older than the recipe's least; unknown ones pass."""
    least = number(case.recipe.capability)
    cards = [card for card in find_cards(case.machine) if card.vendor is Vendor.NVIDIA]
    if (
        not least
        or plan.backend is not Backend.CUDA
        or any(not card.capability or card.capability >= least for card in cards)
    ):
        return None
    best = max(cards, key=lambda card: card.capability)
    why = _(
        "{recipe} needs a card with compute capability {least} or higher, and {card} has {own}.",
        recipe=case.recipe.name,
        least=case.recipe.capability,
        card=best.name,
        own=".".join(map(str, best.capability)),
    )
    return reject(plan.backend, "recipe-card-too-old", why, variant=plan.variant)


def _finished(plan: Plan, case: Case) -> Plan:
    """Add to a plan what the recipe knows: its pages of wheels, variables, memory, needs and how it is started."""
    recipe, link = case.recipe, case.recipe.links.get(_build(plan, case), "")
    needs = describe_needs(recipe.name, recipe.needs, case.target.os, plan.backend)
    reasons = [*plan.reasons, *_start(plan, case), *(sentences((need.text, need.help)) for need in needs)]
    warnings = [*plan.warnings, *filter(None, (memory_warning(recipe, plan, case.machine),))]
    if plan.backend in recipe.untested:
        text = _("Whether {recipe} works with {backend} is not known.", recipe=recipe.name, backend=plan.backend.title)
        warnings.append(text)
    return replace(
        plan,
        reasons=tuple(reasons),
        warnings=tuple(warnings),
        env={**plan.env, **recipe.env.get(plan.backend, {})},
        links=_joined(plan.links, filter(None, (link,))),
        asked=_joined(plan.asked, map(name_of, recipe.also.get(plan.backend, ()))),
        recipe=recipe.key,
    )


def _start(plan: Plan, case: Case) -> Iterator[Message]:
    """Say how the application is started on the plan's backend."""
    recipe = case.recipe
    command = recipe.start.get(plan.backend.value, recipe.start.get(ANY, ""))
    started = _("{recipe} is started with `{command}`.", recipe=recipe.name)
    if command:
        yield started.format(command=command)
    launcher = next((one for one in launchers() if one.key == recipe.launcher), None)
    arguments = launcher.backends.get(plan.backend, ()) if launcher else ()
    line = launch_line(launcher, arguments, case.target.os) if launcher and arguments else None
    if launcher and line:
        file = launcher.files.get(case.target.os, "")
        text = _("To start {recipe}, put the line `{command}` into {file}.") if file else started
        yield text.format(recipe=recipe.name, command=line, file=file)


def memory_warning(recipe: Recipe, plan: Plan, machine: Machine) -> Message | None:
    """Return the warning where the card has less memory than the smallest use takes, or where that is not known."""
    least, (card, has) = recipe.least, largest_card(machine, plan.backend)
    if least is None or plan.backend is Backend.CPU or (has is not None and holds(has, least.gb)):
        return None
    if has is None:
        text = _("{recipe} needs at least {need:g} GB of the card's memory ({use}); how much {card} has is not known.")
    else:
        text = _("{recipe} needs at least {need:g} GB of the card's memory ({use}), and {card} has {has:g} GB.")
    return text.format(recipe=recipe.name, need=least.gb, use=_(least.use), card=card, has=round(has or 0, 1))
