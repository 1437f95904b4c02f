"""What an environment is for: bundles of packages beside torch, and recipes, which know more of an application."""

from __future__ import annotations

import itertools
from collections.abc import Container
from functools import cache

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from assistant.catalog.rows import SystemNeed, Trial
from assistant.catalog.tables import Table, read_tables
from assistant.i18n import Message, _
from assistant.model.errors import BadInput
from assistant.model.plan import Backend
from assistant.model.record import Record

MINIMAL = "minimal"  # the bundle without packages, which a request that names none means


class Bundle(Record, frozen=True):
    """A purpose: its packages, a title and a sentence for people (English, translated by gettext).

    `mb` is what its packages and theirs add to a download, in MB of 10**6 bytes; None is unknown.
    """

    key: str
    title: str
    lead: str
    requirements: tuple[str, ...] = ()
    mb: int | None = 0

    @property
    def name(self) -> Message:
        """The title in the language of whoever reads it."""
        return _(self.title)


class BundlePackage(Record, frozen=True):
    """A package of a bundle: the Python tags for which it and all that it needs have wheels, by platform.

    `pythons["any"]` holds for platforms that are not named.
    """

    package: str
    pythons: dict[str, tuple[str, ...]]


class BundleTables(Record, frozen=True):
    """The bundles, and their packages other than torch's own family."""

    bundles: Table[Bundle]
    packages: Table[BundlePackage]


@cache
def load_bundles() -> BundleTables:
    """Read the tables, once."""
    return read_tables("bundles", BundleTables)


def bundles() -> tuple[Bundle, ...]:
    """List the bundles, the smallest first."""
    return load_bundles().bundles.rows


def bundle_within(packages: Container[str]) -> str:
    """Return the key of the largest bundle of which nothing lacks in some packages; "" for none."""
    held = [one for one in bundles() if one.requirements and all(name in packages for name in one.requirements)]
    return max(held, key=lambda one: len(one.requirements)).key if held else ""


_SHORTEST = 3  # chosen: letters that say which key was meant
ANY = "any"  # the key of what holds wherever nothing else is named


class Application(Record, frozen=True):
    """Where an application that is on no index keeps its requirements, and the commit whose lines a recipe holds."""

    repository: str
    file: str
    commit: str
    date: str
    branch: str = ""


class Use(Record, frozen=True):
    """The memory of the card, in GB as its makers count (1024**3 bytes), that a use takes at least."""

    gb: float
    use: str


class Source(Record, frozen=True):
    """What was read where, and how old that is; `url` holds one address or several, or names a distribution on PyPI."""

    of: str
    url: str
    date: str


class Recipe(Bundle, frozen=True, kw_only=True):
    """A bundle with what the metadata of its packages does not tell; texts are English, translated by gettext.

    `requirements` are PEP 508 lines, for an application those of its own file; `also` holds more of them by backend.
    `torch` are specifiers by backend or system ("any" for all), `pythons` is one. `backends` works on these, of which
    each may be bound to systems; it is not known of those in `untested`, and `against` says more about others.
    `builds` are beginnings of the torch builds (such as cu13) that fit, `links` are pages of wheels by build, of which
    each plan needs one. `capability` is the least of a CUDA card. `needs` are those of the system
    that its packages do not have themselves. `launcher` is the application's key in launchers.json; `start` are
    commands by backend, `group` is a key, too.
    """

    group: str
    requirements: tuple[str, ...]
    pythons: str
    backends: dict[Backend, tuple[str, ...]]
    trial: Trial
    sources: tuple[Source, ...]
    also: dict[Backend, tuple[str, ...]] = {}
    constraints: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    application: Application | None = None
    torch: dict[str, str] = {}
    systems: tuple[str, ...] = ("linux", "windows", "macos")
    archs: tuple[str, ...] = ()
    untested: tuple[Backend, ...] = ()
    against: dict[Backend, str] = {}
    builds: dict[Backend, tuple[str, ...]] = {}
    links: dict[str, str] = {}
    capability: str = ""
    needs: tuple[SystemNeed, ...] = ()
    memory: tuple[Use, ...] = ()
    launcher: str = ""
    start: dict[str, str] = {}
    env: dict[Backend, dict[str, str]] = {}
    notes: tuple[str, ...] = ()
    mb: int | None = None

    @property
    def least(self) -> Use | None:
        """The use that is content with the smallest card; None where nobody states one."""
        return min(self.memory, key=lambda row: row.gb, default=None)


class Group(Record, frozen=True):
    """A few recipes that belong together."""

    key: str
    title: str


class RecipeTables(Record, frozen=True):
    """The file of recipes."""

    recipes: Table[Recipe]
    groups: Table[Group]


def recipes() -> tuple[Recipe, ...]:
    """List the recipes."""
    return _tables().recipes.rows


def bundle_of(key: str) -> Bundle:
    """Find a bundle or a recipe by its key, "" for the one without packages; raise `BadInput` for a name that is none.

    Recipes are read only for a key that no bundle has.
    """
    wanted = key.strip().lower() or MINIMAL
    found: Bundle | None = next((bundle for bundle in bundles() if bundle.key == wanted), None)
    if found := found or _by_key().get(wanted):
        return found
    near = _near(wanted, [*(bundle.key for bundle in bundles()), *_by_key()])
    hint = _("Choose one of: {names}.", names=", ".join(near), option="--for")
    raise BadInput(_("There is no bundle called '{name}'.", name=key), hint=hint)


def recipe_of(key: str) -> Recipe:
    """Find a recipe by its key; raise `BadInput` for a name that is none."""
    found = _by_key().get(key.strip().lower())
    if found is None:
        near = ", ".join(_near(key.strip().lower(), list(_by_key())))
        raise BadInput(
            _("There is no recipe called '{name}'.", name=key), hint=_("Choose one of: {names}.", names=near)
        )
    return found


def recipe_trial(key: str) -> Trial | None:
    """Return what shows that a bundle works beyond its imports; None where the key is that of no recipe."""
    found = _by_key().get(key)
    return found.trial if found else None


def packages_of_recipes() -> set[str]:
    """Name the packages that recipes ask for by name."""
    lines = (line for one in recipes() for line in itertools.chain(one.requirements, *one.also.values()))
    return {canonicalize_name(Requirement(line).name) for line in lines}


def groups() -> tuple[tuple[Message, tuple[Recipe, ...]], ...]:
    """Return the recipes in their groups, each with its title."""
    rows = _tables().groups.rows
    return tuple((_(row.title), tuple(one for one in recipes() if one.group == row.key)) for row in rows)


def _near(wanted: str, keys: list[str]) -> list[str]:
    from difflib import get_close_matches  # noqa: PLC0415 - every command would pay for it

    within = [key for key in keys if len(wanted) >= _SHORTEST and wanted in key]
    return within or get_close_matches(wanted, keys) or keys


@cache
def _by_key() -> dict[str, Recipe]:
    return {recipe.key: recipe for recipe in recipes()}


def _tables() -> RecipeTables:
    return read_tables("recipes", RecipeTables)
