"""What goes beside torch: bundles of packages, recipes, the larger ones that an add-on brings, and ONNX Runtimes.

The reader `recipes` of an add-on is a module: its `recipes()` lists bundles, `with_recipe(request)` writes what one of
them asks for into the request that names it, and `make_plans(machine, catalog, request)` plans for such a request.
"""

from __future__ import annotations

import re
from collections.abc import Container
from functools import cache, lru_cache
from itertools import chain
from typing import Any

from packaging.specifiers import SpecifierSet

from assistant import addons
from assistant.catalog.rows import Trial
from assistant.catalog.tables import Row, load_table, rows
from assistant.i18n import Message, _
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.plan import Backend
from assistant.model.record import Record
from assistant.model.requirement import name_of, requirement

MINIMAL = "minimal"  # the bundle without packages, which a request that names none means
_SHORTEST = 3  # chosen: letters that say which key was meant


class Bundle(Record, frozen=True):
    """A purpose: its packages, a title and a sentence for people (English, translated by gettext).

    `mb` is what its packages and theirs add to a download, in MB of 10**6 bytes; None is unknown. Of a recipe,
    `requirements` are PEP 508 lines, of which `also` holds more by backend; `links` are pages of wheels by torch's
    build, and `trial` shows that it works.
    """

    key: str
    title: str
    lead: str
    requirements: tuple[str, ...] = ()
    mb: int | None = 0
    also: dict[Backend, tuple[str, ...]] = {}
    links: dict[str, str] = {}
    trial: Trial | None = None

    @property
    def name(self) -> Message:
        """The title in the language of whoever reads it."""
        return _(self.title)


@cache
def bundles() -> tuple[Bundle, ...]:
    """List the bundles, the smallest first."""
    return load_table("bundles.bundles", Bundle).rows


def bundle_packages() -> tuple[Row, ...]:
    """List the packages of bundles other than torch's own family.

    `pythons` are the Python tags for which a package and all that it needs have wheels, by platform; its "any" holds
    for platforms that are not named.
    """
    return rows("bundles.packages")


def largest_bundle_in(packages: Container[str]) -> str:
    """Return the key of the bundle with the most packages that are all among `packages`; "" for none."""
    there = [row for row in bundles() if row.requirements and all(name in packages for name in row.requirements)]
    return max(there, key=lambda row: len(row.requirements)).key if there else ""


def is_recipe(key: str) -> bool:
    """Return whether a key is neither empty nor a bundle's, and so meant as a recipe's; the recipe may not exist."""
    name = key.strip().lower()
    return bool(name) and all(bundle.key != name for bundle in bundles())


def load_recipe_reader() -> Any:  # noqa: ANN401 - the module that is described above
    """Import the add-on module that reads recipes (see above); raise `WorkFailed` naming the extra that is missing."""
    return addons.load_from_extra(addons.READERS, "recipes", extra="projects")


def find_bundle(key: str) -> Bundle:
    """Return a bundle or a recipe by its key, "" for the one without packages.

    Recipes are read only for a key that no bundle has. Raises `BadInput`, with similar keys, for a key that is none,
    and `WorkFailed` if the add-on with the recipes is missing.
    """
    spelt = key.strip().lower() or MINIMAL
    listed = {bundle.key: bundle for bundle in bundles()}
    if spelt not in listed:
        listed |= {recipe.key: recipe for recipe in load_recipe_reader().recipes()}
    if found := listed.get(spelt):
        return found
    near = similar_keys(spelt, list(listed))
    hint = _("Choose one of: {names}.", names=", ".join(near), option="--for")
    raise BadInput(_("There is no bundle called '{name}'.", name=key), hint=hint)


def similar_keys(typed: str, keys: list[str]) -> list[str]:
    """Return the keys that contain what was typed (three letters or more), else those spelt like it, else all."""
    from difflib import get_close_matches  # noqa: PLC0415 - every command would pay for it

    within = [key for key in keys if len(typed) >= _SHORTEST and typed in key]
    return within or get_close_matches(typed, keys) or keys


def recipe_trial(key: str) -> Trial | None:
    """Return the lines of Python that try a recipe; None for a key that is no recipe's, or a recipe without any.

    Raises `WorkFailed` for a key that may be a recipe's if their add-on is missing.
    """
    recipes: tuple[Bundle, ...] = load_recipe_reader().recipes() if is_recipe(key) else ()
    return next((recipe.trial for recipe in recipes if recipe.key == key), None)


def recipe_packages() -> set[str]:
    """Return the names of the packages that recipes require; none if their add-on is missing."""
    return {
        name_of(line) for recipe in installed_recipes() for line in chain(recipe.requirements, *recipe.also.values())
    }


def installed_recipes() -> tuple[Bundle, ...]:
    """Return the recipes; () if their add-on is missing."""
    try:
        return tuple(load_recipe_reader().recipes())
    except WorkFailed:
        return ()


CLASH = "onnxruntime-packages-conflict"


@cache
def runtime_builds() -> dict[str, Row]:
    """Return the distributions that own the module onnxruntime, by name, so that only one of them may be installed.

    `requirement` says which of its versions; `platforms`, `python` are those of its newest wheels; `ended` is the last
    version of a line that goes no further, and `successor` what follows it. `windows_build` is the first that it
    supports.
    """
    return {name_of(row.requirement): row for row in rows("onnxruntimes.builds")}


@cache
def runtime_plugins() -> dict[str, Row]:
    """Return the plug-ins that a program itself registers with an ONNX Runtime, by the names of their distributions.

    `runtime` are the versions that a plug-in goes with, `platforms` those where it computes. A `plain` one requires the
    distribution onnxruntime and no other build. It drives hardware of its `makers` whose lower-case name matches the
    pattern `names`, with the compute capability `capability` or a higher one.
    """
    return {name_of(row.requirement): row for row in rows("onnxruntimes.plugins")}


def provider_catalogs() -> tuple[Row, ...]:
    """Return bindings that find and download providers of a system, from `windows_build` on, beside `runtime`."""
    return rows("onnxruntimes.catalogs")


def is_build(name: str, versions: SpecifierSet) -> bool:
    """Return whether these versions of a distribution (in PyPI's spelling) own the module onnxruntime."""
    newer = runtime_plugins().get(name)  # the same name may be a plug-in by now
    both = requirement(newer.requirement).specifier & versions if newer else versions
    return name in runtime_builds() and (newer is None or both.is_unsatisfiable())


@lru_cache(maxsize=8192)  # as many as kinds of cards are kept
def maker_by_name(name: str) -> str:
    """Return the maker that an adapter's name matches, of those that are not in `Vendor`; "" for none."""
    return next((row.maker for row in rows("onnxruntimes.makers") if re.search(row.names, name.lower())), "")


def has_wheel(row: Row, platform: str, python: str) -> bool:
    """Return whether a plug-in computes on a platform such as "windows_arm64" and has a wheel for a Python ("3.12")."""
    return platform in row.platforms and SpecifierSet(row.python).contains(python.rstrip("t"))
