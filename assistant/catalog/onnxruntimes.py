"""The distributions of ONNX Runtime and what plugs into it: providers, systems, what has ended and what follows."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from assistant.catalog.tables import Table, read_tables
from assistant.model.record import Record

CLASH = "onnxruntime-packages-conflict"


class RuntimeBuild(Record, frozen=True):
    """A distribution that owns the module onnxruntime, so that only one may be installed; `requirement` says which.

    `platforms`, `python` are those of its newest wheels; `ended` is the last version of a line that goes no further,
    and `successor` what follows it. `windows_build` is the first that it supports.
    """

    requirement: str
    providers: tuple[str, ...]
    platforms: tuple[str, ...]
    python: str
    makers: tuple[str, ...] = ()
    windows_build: int = 0
    windows_name: str = ""
    ended: str = ""
    ended_on: str = ""
    successor: str = ""
    note: str = ""

    @property
    def package(self) -> str:
        """The name of the distribution."""
        return Requirement(self.requirement).name


class RuntimePlugin(Record, frozen=True):
    """A provider with a folder of its own that a program registers with an ONNX Runtime of the versions `runtime`.

    `platforms` are those where it computes. A `plain` one requires the distribution onnxruntime and no other build.
    Of its makers' hardware it drives what is called as `names` (a lower-case pattern) says, from `capability` on.
    """

    requirement: str
    module: str
    provider: str
    makers: tuple[str, ...]
    platforms: tuple[str, ...]
    python: str
    runtime: str
    plain: bool = False
    names: str = ""
    capability: str = ""
    note: str = ""

    @property
    def package(self) -> str:
        """The name of the distribution."""
        return Requirement(self.requirement).name


class ProviderCatalog(Record, frozen=True):
    """Bindings that find and download providers of a system, from `windows_build` on, beside the build `runtime`."""

    requirement: str
    module: str
    providers: tuple[str, ...]
    platforms: tuple[str, ...]
    python: str
    runtime: str
    windows_build: int
    windows_name: str
    note: str = ""


class Maker(Record, frozen=True):
    """A maker of hardware that is told by the names of its adapters alone (a lower-case pattern)."""

    maker: str
    names: str


class OnnxRuntimeTables(Record, frozen=True):
    """The file of ONNX Runtimes."""

    builds: Table[RuntimeBuild]
    plugins: Table[RuntimePlugin]
    catalogs: Table[ProviderCatalog]
    makers: Table[Maker]


def load_onnxruntimes() -> OnnxRuntimeTables:
    """Read the tables, once."""
    return read_tables("onnxruntimes", OnnxRuntimeTables)


@cache
def runtime_builds() -> dict[str, RuntimeBuild]:
    """Return the builds by the names of their distributions."""
    return {row.package: row for row in load_onnxruntimes().builds.rows}


@cache
def runtime_plugins() -> dict[str, RuntimePlugin]:
    """Return the plug-ins by the names of their distributions."""
    return {row.package: row for row in load_onnxruntimes().plugins.rows}


def is_build(name: str, versions: SpecifierSet) -> bool:
    """Return whether these versions of a distribution (in PyPI's spelling) own the module onnxruntime."""
    newer = runtime_plugins().get(name)  # the same name may be a plug-in by now
    wanted = Requirement(newer.requirement).specifier & versions if newer else versions
    return name in runtime_builds() and (newer is None or wanted.is_unsatisfiable())


@lru_cache(maxsize=8192)  # as many as kinds of cards are kept
def maker_of(name: str) -> str:
    """Return a maker that has no member of its own in `Vendor`, by an adapter's name; "" where it names none."""
    rows = load_onnxruntimes().makers.rows
    return next((row.maker for row in rows if re.search(row.names, name.lower())), "")


def has_wheel(row: RuntimePlugin | ProviderCatalog, platform: str, python: str) -> bool:
    """Return whether a plug-in computes on a platform such as "windows_arm64" and has a wheel for a Python ("3.12")."""
    return platform in row.platforms and SpecifierSet(row.python).contains(python.rstrip("t"))
