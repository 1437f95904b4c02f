"""The catalogue: every table that planning rests on, and the few questions that are asked of them.

What goes beside torch are bundles of packages, recipes, the larger ones that an add-on brings, and ONNX Runtimes. The
reader `recipes` of an add-on is a module: its `recipes()` lists bundles, `with_recipe(request)` writes what one of them
asks for into the request that names it, and `make_plans(machine, catalog, request)` plans for such a request. Two
more tables are read here: how each image application is started on a backend, and where tools and applications keep
environments.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from functools import cache, cached_property, lru_cache
from itertools import chain
from typing import Any, NamedTuple

from packaging.specifiers import SpecifierSet

from assistant import addons
from assistant.catalog.tables import (
    CORE,
    AmdRelease,
    BuildCode,
    Driver,
    R,
    Row,
    Table,
    TorchRelease,
    Trial,
    UserTables,
    load_table,
    rows,
    user_tables,
)
from assistant.i18n import Message, Text, _
from assistant.model.errors import BadInput, WorkFailed
from assistant.model.plan import Backend, name_of, requirement
from assistant.model.record import Record

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


Number = tuple[int, ...]
AMD_INDEX = "amd-index"
AMD_NIGHTLY = "nightly/amd-index"
JETSON_INDEX = "jetson-index"
_DIGITS = re.compile(r"\d+")


@lru_cache(maxsize=4096)
def number(version: str | None) -> Number:
    """Turn "580.95.05" or "2.14.1+cu126" into comparable numbers; () for None or text without any."""
    return tuple(map(int, _DIGITS.findall((version or "").partition("+")[0])))


def python_range(tags: Iterable[str]) -> str:
    """Write the Python versions of wheel tags as a range: "3.8–3.12"; free-threaded builds are left out."""
    versions = sorted({(int(tag[0]), int(tag[1:])) for tag in tags if tag.isdigit()})
    return "–".join(f"{major}.{minor}" for major, minor in (versions[0], versions[-1])) if versions else ""


class TorchWheel(NamedTuple):
    """One published build: a release for a variant on a platform.

    `sm` is the machine code of a CUDA build and `ptx` what a driver can compile on (90 for 9.0), `gfx` the GPU targets
    that work with a ROCm build. `confirmed` is False where no index has been seen to hold the build; `assumed` is True
    where no row describes its code, which then is that of its predecessor.
    """

    release: TorchRelease
    number: Number
    variant: str
    platform: str
    glibc: Number
    confirmed: bool
    sm: tuple[int, ...] = ()
    ptx: int | None = None
    gfx: tuple[str, ...] = ()
    assumed: bool = False

    @property
    def version(self) -> str:
        """The release, such as "2.14.1"."""
        return self.release.version

    @property
    def minor(self) -> Number:
        """The release line, such as (2, 14)."""
        return self.number[:2]

    @property
    def pythons(self) -> tuple[str, ...]:
        """The tags of the Pythons that the build exists for, such as "312"."""
        return self.release.pythons.get(self.platform, self.release.pythons["any"])


@lru_cache(maxsize=4096)  # a fleet asks for the same cards and builds over and over
def has_code(codes: tuple[int, ...], ptx: int | None, capability: Number, *, alone: bool) -> bool:
    """Return whether a CUDA build with machine code for `codes` (90 for 9.0), and perhaps PTX, runs on a `capability`.

    Machine code serves its own major with an equal or higher minor; PTX of the newest of `codes`, and no other, serves
    all capabilities above its own. With `alone`, only code for this very capability counts. The rules: "Binary
    Compatibility" and "PTX Compatibility" in https://docs.nvidia.com/cuda/cuda-c-programming-guide/
    """
    major, minor = capability[0], capability[1]
    own = major * 10 + minor
    if own in codes:
        return True
    if alone:
        return False
    if any(code // 10 == major and code % 10 <= minor for code in codes):
        return True
    return ptx is not None and ptx == max(codes) and own > ptx


def _code_row(builds: Iterable[BuildCode], variant: str, minor: Number) -> BuildCode | None:
    """Return the row for a release line of a variant, or its predecessor's if the rows end before it; None without one.

    The predecessor is the variant's own last line, else the last line of the next lower variant: cu132's for cu134.
    """
    older = [row for row in builds if number(row.variant) <= number(variant) and number(row.first) <= minor]
    return max(older, key=lambda row: (number(row.variant), number(row.first)), default=None)


class DriverFloor(NamedTuple):
    """The oldest driver that runs a variant, and the one that came with its toolkit; () where it is not known."""

    least: Number
    own: Number


class Catalog:
    """What is known of wheels, drivers and systems; read once, asked often."""

    def __init__(self, tables: Mapping[str, Table[Any]]) -> None:
        """Take `tables`, by their names, in place of the package's own."""
        self.tables = tables

    def table(self, name: str, kind: type[R]) -> Table[R]:
        """Return a table whose rows are read by field."""
        return self.tables.get(name) or load_table(name, kind)  # type: ignore[arg-type]  # a class is hashable

    def rows(self, name: str) -> tuple[Row, ...]:
        """Return the rows of a table that is only looked up, such as "rocm.families"."""
        return self.tables[name].rows if name in self.tables else rows(name)

    @cache  # noqa: B019 - a process has one catalogue, which lives as long as it does
    def by(self, name: str, *fields: str) -> dict[Any, Row]:
        """Return the rows of a table that is only looked up, by the value of one of its fields, or of several."""
        return {tuple(row[field] for field in fields) if fields[1:] else row[fields[0]]: row for row in self.rows(name)}

    @property
    def remark(self) -> Text:
        """Why the tables that the user refreshed are not used; "" if they are used, or there are none."""
        return user_tables().remark

    @cached_property
    def releases(self) -> tuple[TorchRelease, ...]:
        """Every torch release, newest first."""
        listed = self.table("torch.releases", TorchRelease).rows
        return tuple(sorted(listed, key=lambda row: number(row.version), reverse=True))

    @property
    def as_of(self) -> str:
        """The day (YYYY-MM-DD) of the table of releases."""
        return self.table("torch.releases", TorchRelease).as_of

    @property
    def newest_torch(self) -> str:
        """The newest torch release that the catalogue knows."""
        return self.releases[0].version

    @cached_property
    def cuda_code(self) -> tuple[BuildCode, ...]:
        """The code in CUDA builds."""
        return self.table("cuda.code", BuildCode).rows

    @cached_property
    def rocm_code(self) -> tuple[BuildCode, ...]:
        """The code in ROCm builds for Linux."""
        return self.table("rocm.code", BuildCode).rows

    @cached_property
    def packages(self) -> frozenset[str]:
        """Name every package that a plan of these tables can ask for, and the kernel that each environment gets."""
        beside = {row.package for row in self.rows("torch.basics")}
        beside |= {row.package for row in bundle_packages()} | recipe_packages() | {*runtime_plugins()}
        return frozenset(beside | CORE | {"torch-directml", "ipykernel"})

    def build_of(self, torch: str, variant: str, platform: str) -> str:
        """Return the tag of the build that a variant of a release is, such as "cu130"; "" if unknown.

        What plain PyPI serves differs by release and platform; if the tables name none, it is the one for the CPU.
        """
        if variant != "pypi":
            return variant.removeprefix("nightly/")
        release = self.release(torch)
        return release.pypi.get(platform, "cpu") if release else ""

    def release(self, version: str) -> TorchRelease | None:
        """Return the release of a version, whose local tag does not matter; None if it is unknown."""
        return next((row for row in self.releases if number(row.version) == number(version)), None)

    @cache  # noqa: B019 - as above
    def has_companion(self, name: str, version: str, torch: str, build: tuple[str, str, str]) -> bool:
        """Return whether a torchvision or torchaudio has a build (variant, platform, Python's tag) beside a torch.

        One that came out with an earlier torch has the builds and the Pythons of that release, or those that the table
        `torch.later` lists for it. True is assumed for one that came out with this torch, or of which nothing is known.
        """
        variant, platform, tag = build
        later = next((row for row in self.rows("torch.later") if (row.package, row.version) == (name, version)), None)
        own = next((row for row in reversed(self.releases) if version in getattr(row, name)), None)
        if later:
            variants, pythons = later.variants.get(platform, ()), later.pythons
        elif own is None or own.version == torch:
            return True
        else:
            variants, pythons = own.variants.get(platform, ()), own.pythons.get(platform, own.pythons["any"])
        return variant in variants and (not tag or not pythons or tag in pythons)

    @cache  # noqa: B019 - as above
    def wheels(self, platform: str, python: str | None, family: str = "") -> tuple[TorchWheel, ...]:
        """Return the builds of a variant family for a platform and Python tag, newest first.

        Platforms are named like "linux_x86_64", tags like "312" (None: any), families by the variants' first letters
        ("": all).
        """
        return tuple(
            wheel
            for wheel in self._builds(platform)
            if (python is None or python in wheel.pythons) and wheel.variant.startswith(family)
        )

    @cache  # noqa: B019 - as above
    def pythons(self, platform: str) -> frozenset[str]:
        """Every Python tag for which the platform has some build."""
        return frozenset(tag for wheel in self._builds(platform) for tag in wheel.pythons)

    def pythons_of(self, variant: str) -> frozenset[str]:
        """Every Python tag for which some platform has a build of a variant."""
        platforms = {platform for row in self.releases for platform in row.variants}
        wheels = (wheel for platform in platforms for wheel in self._builds(platform))
        return frozenset(tag for wheel in wheels if wheel.variant == variant for tag in wheel.pythons)

    @cache  # noqa: B019 - as above
    def _builds(self, platform: str) -> tuple[TorchWheel, ...]:
        """Every build for a platform, newest first, with what its variant's code serves."""
        return tuple(self._wheel(row, platform, tag) for row in self.releases for tag in row.variants.get(platform, ()))

    def _wheel(self, row: TorchRelease, platform: str, variant: str) -> TorchWheel:
        """Return a release's build with its oldest glibc and the code that it holds."""
        minor = number(row.version)[:2]
        cuda = [code for code in self.cuda_code if code.platform == platform] if variant.startswith("cu") else []
        rocm = self.rocm_code if variant.startswith("rocm") else ()
        sm, gfx = _code_row(cuda, variant, minor), _code_row(rocm, variant, minor)
        code = sm or gfx
        glibc = row.glibc.get(f"{platform}/{variant}") or row.glibc.get(platform) or row.glibc.get("linux")
        return TorchWheel(
            row,
            number(row.version),
            variant,
            platform,
            number(glibc),
            confirmed=variant not in row.unconfirmed.get(platform, ()),
            sm=sm.sm if sm else (),
            ptx=sm.ptx if sm else None,
            gfx=gfx.gfx if gfx else (),
            assumed=code is not None and (code.variant != variant or number(code.last) < minor),
        )

    def driver(self, variant: str) -> Driver | None:
        """Return the driver row of a CUDA build; one without a row takes that of its major's newest, without `full_*`.

        Returns None for a major without rows. A driver runs every minor of the CUDA majors it knows:
        https://docs.nvidia.com/deploy/cuda-compatibility/
        """
        rows = {number(row.variant): row for row in self.table("cuda.drivers", Driver).rows}
        if own := rows.get(number(variant)):
            return own
        alike = max((cuda for cuda in rows if cuda[0] // 10 == number(variant)[0] // 10), default=None)
        row = alike and rows[alike]
        return Driver(variant=variant, linux=row.linux, windows=row.windows) if row else None

    @cached_property
    def drivers(self) -> dict[tuple[str, bool], DriverFloor]:
        """Driver floors of every CUDA build by variant and by whether the driver is Windows's.

        Both are () for a CUDA major that no row knows.
        """
        published = {build for row in self.releases for builds in row.variants.values() for build in builds}
        variants = {build for build in published if build.startswith("cu")}
        variants |= {row.variant for row in self.table("cuda.drivers", Driver).rows}
        floors = {}
        for variant in sorted(variants):
            row = self.driver(variant)
            floors[variant, False] = DriverFloor(number(row and row.linux), number(row and row.full_linux))
            floors[variant, True] = DriverFloor(number(row and row.windows), number(row and row.full_windows))
        return floors

    @cached_property
    def oldest_driver(self) -> Number:
        """The oldest driver branch that runs some CUDA build of the newest torch release that has one, such as (525,).

        () if no floor is known.
        """
        for release in self.releases:
            builds = {build for builds in release.variants.values() for build in builds}
            floors = [
                floor.least[:1] for (build, _on), floor in self.drivers.items() if build in builds and floor.least
            ]
            if floors:
                return min(floors)
        return ()

    @cached_property
    def amd_targets(self) -> dict[str, Row]:
        """AMD's own indexes by GPU target."""
        return {row.gfx: row for row in self.rows("rocm.amd_targets")}

    @cached_property
    def amd_indexes(self) -> dict[str, str]:
        """The addresses of AMD's own indexes by their keys."""
        return {row.key: row.url for row in self.rows("rocm.amd_indexes")}

    @cached_property
    def amd_releases(self) -> tuple[AmdRelease, ...]:
        """Torch releases of AMD's own indexes, newest first, and of one release the build for the newest ROCm first."""
        releases = self.table("rocm.amd_releases", AmdRelease).rows
        return tuple(sorted(releases, key=lambda row: (number(row.torch), number(row.rocm)), reverse=True))

    def index_url(self, variant: str, torch: str = "") -> str | None:
        """Return the address of the index that a variant's torch comes from; None is the installer's default, PyPI.

        AMD has an index for each ROCm: that of `torch` is returned ("2.13.0" or "2.13.0+rocm10.0.0"), or the newest if
        it is unknown.
        """
        if variant in {"pypi", "directml"}:
            return None
        if variant == AMD_NIGHTLY:
            return self.amd_indexes["nightly"]
        if variant == JETSON_INDEX:
            return str(next(row.index for row in self.rows("cuda.jetson") if row.index))
        if variant == AMD_INDEX:
            named = (row for row in self.amd_releases if torch in (row.torch, f"{row.torch}+rocm{row.rocm}"))
            release = next(named, self.amd_releases[0])
            return self.amd_indexes[release.index]
        kind = "nightly/…" if variant.startswith("nightly/") else ""
        urls = (row.url for row in rows("indexes.indexes") if row.variant == kind or not kind)
        return str(next(urls)).format(variant=variant)

    @property
    def mirrors(self) -> tuple[Row, ...]:
        """Mirrors of PyPI and of torch's index."""
        return rows("indexes.mirrors")


def load_catalog() -> Catalog:
    """Read the catalogue, once."""
    return _catalog(user_tables())


@cache
def _catalog(refreshed: UserTables) -> Catalog:
    return Catalog(refreshed.tables)


_PYPI = re.compile(r"https?://pypi\.org/simple/?")


def is_known_index(url: str, catalog: Catalog, own: Iterable[str] = ()) -> bool:
    """Return whether an address lies below an index of torch in the catalogue or a mirror of it, or is among `own`.

    `own` are the user's indexes. Mirrors of PyPI alone do not count, and an address with ".." or "%" lies below none.
    """
    if url.rstrip("/") in {address.rstrip("/") for address in own if address}:
        return True
    listed = [catalog.index_url(variant) or "" for variant in ("cpu", "nightly/cpu")]
    listed += catalog.amd_indexes.values()
    listed += [mirror.url.replace("{variant}", "cpu") for mirror in catalog.mirrors if mirror.serves != "pypi"]
    # The folder above a variant's own, with scheme and server: https://download.pytorch.org/whl/
    folders = (index.rstrip("/").removesuffix("/cpu").removesuffix("/nightly") + "/" for index in listed)
    return f"{url}/".startswith(tuple(folders)) and ".." not in url and "%" not in url


def is_pypi(url: str) -> bool:
    """Return whether an address is that of PyPI's own index."""
    return _PYPI.fullmatch(url) is not None


def is_pypi_mirror(url: str, catalog: Catalog) -> bool:
    """Return whether an index is a mirror of PyPI that the catalogue lists."""
    return url.rstrip("/") in {mirror.url.rstrip("/") for mirror in catalog.mirrors if mirror.serves == "pypi"}


class Launcher(Record, frozen=True):
    """One application: `marks` name it in a log, `choosing` are its arguments that choose a backend.

    `files` and `lines` tell by system where the arguments stand and how; without a file they are typed. `backends`
    gives the arguments that each backend needs; one that is not listed is not offered by the application.
    """

    key: str
    name: str
    marks: tuple[str, ...]
    files: dict[str, str]
    lines: dict[str, str]
    choosing: tuple[str, ...]
    backends: dict[Backend, tuple[str, ...]]


def launchers() -> tuple[Launcher, ...]:
    """Return the applications that are known."""
    return load_table("launchers.launchers", Launcher).rows


def correct_arguments(launcher: Launcher, arguments: tuple[str, ...], backend: Backend) -> tuple[str, ...] | None:
    """Return the arguments with those that choose a backend, and their values, replaced by what `backend` needs.

    All others are kept, before the new ones; if nothing but the order would change, `arguments` as they are. None if
    the application does not offer the backend.
    """
    added = launcher.backends.get(backend)
    if added is None:
        return None
    others, dropping = [], False
    for word in arguments:
        dropping = re.split("[=:]", word)[0] in launcher.choosing or (dropping and not word.startswith("-"))
        if not dropping:
            others.append(word)
    result = (*others, *(word for word in added if word not in others))
    return arguments if sorted(result) == sorted(arguments) else result


def launch_line(launcher: Launcher, arguments: tuple[str, ...], system: str) -> str | None:
    """Return the line that gives an application its arguments on a system ("linux", "windows", "macos").

    It is a command, or the line of its file of settings; None if the table has none for the system. Words with spaces
    are quoted as that line needs it.
    """
    line = launcher.lines.get(system)
    if line is None:
        return None
    mark = '\\"' if '="' in line else '"'  # inside the quotes of an assignment
    own = line.split()  # --windows-standalone-build
    quoted = (f"{mark}{word}{mark}" if " " in word else word for word in arguments if word not in own)
    return line.format(arguments=" ".join(quoted)).rstrip()


def environment_places() -> tuple[Row, ...]:
    """Return where tools and applications keep environments; `kind` is "venv", "conda" or "application".

    `paths` begin with "~" or a variable, and "*" stands for any one folder. `lists` are files that name an environment
    in each line. `settings` are JSON files whose `key` names a folder, and `below` are paths in that folder.
    """
    return rows("places.places")
