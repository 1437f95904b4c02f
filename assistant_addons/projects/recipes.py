"""Recipes: what people run on torch, each with what the metadata of its packages does not say."""

from __future__ import annotations

from assistant.api import BadInput, Record, _
from assistant.api.planning import Bundle, SystemNeed, Trial, similar_keys
from assistant.api.records import Backend
from assistant_addons.projects.tables import load

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
    `links` are pages of wheels by build of torch, of which each plan needs one. `capability` is the least of a CUDA
    card. `needs` are those of the system that its packages do not have themselves. `launcher` is the application's key
    in launchers.json; `start` are commands by backend, `group` is a key, too.
    """

    group: str
    requirements: tuple[str, ...]
    pythons: str
    backends: dict[Backend, tuple[str, ...]]
    trial: Trial
    sources: tuple[Source, ...]
    constraints: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    application: Application | None = None
    torch: dict[str, str] = {}
    systems: tuple[str, ...] = ("linux", "windows", "macos")
    archs: tuple[str, ...] = ()
    untested: tuple[Backend, ...] = ()
    against: dict[Backend, str] = {}
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
    """A few recipes that belong together: `bundle` has the libraries for them, `sign` is the wizard's picture."""

    key: str
    title: str
    sign: str
    bundle: str = ""


def recipes() -> tuple[Recipe, ...]:
    """List the recipes."""
    return load("recipes.recipes", Recipe)


def recipe_of(key: str) -> Recipe:
    """Find a recipe by its key; raise `BadInput` for a name that is none."""
    wanted = key.strip().lower()
    for recipe in recipes():
        if recipe.key == wanted:
            return recipe
    near = ", ".join(similar_keys(wanted, [recipe.key for recipe in recipes()]))
    raise BadInput(_("There is no recipe called '{name}'.", name=key), hint=_("Choose one of: {names}.", names=near))


def groups() -> tuple[Group, ...]:
    """Return the groups, as people are offered them."""
    return load("recipes.groups", Group)
