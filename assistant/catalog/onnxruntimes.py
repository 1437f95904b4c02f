"""The distributions of ONNX Runtime and what plugs into it: providers, systems, what has ended and what follows."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from packaging.specifiers import SpecifierSet

from assistant.catalog.tables import Row, rows
from assistant.model.requirement import name_of, requirement

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
    """Return the providers with a folder of their own that a program registers with an ONNX Runtime, by distribution.

    `runtime` are the versions that they go with, `platforms` those where they compute. A `plain` one requires the
    distribution onnxruntime and no other build. Of its makers' hardware it drives what is called as `names` (a
    lower-case pattern) says, from `capability` on.
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
def maker_of(name: str) -> str:
    """Return a maker that has no member of its own in `Vendor`, by an adapter's name; "" where it names none."""
    return next((row.maker for row in rows("onnxruntimes.makers") if re.search(row.names, name.lower())), "")


def has_wheel(row: Row, platform: str, python: str) -> bool:
    """Return whether a plug-in computes on a platform such as "windows_arm64" and has a wheel for a Python ("3.12")."""
    return platform in row.platforms and SpecifierSet(row.python).contains(python.rstrip("t"))
