"""ONNX Runtime's kernel tables, its rule for which kernel takes a node, and what its releases load."""

from __future__ import annotations

import importlib.metadata
import json
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from packaging.version import Version

from assistant.api import Message, Text, _
from assistant_addons.onnx.answers import TITLES, Provider
from assistant_addons.onnx.prepare import definition

Types = tuple[str | None, ...]  # "" for an argument that is left out, None for a type that is not known
Formals = tuple[tuple[str, str], ...]  # names and type variables, or types; the last one may repeat
# A row of a table: the version of an operator that it takes, or all from "since" to "until"; for each type variable a
# number in the table's "type_sets"; the first release that has it ("came") and the first that has it no more ("gone");
# a further condition ("query", see `placement`); inputs that are read on the CPU; whether it is DirectML's but runs on
# the CPU ("host").
Kernel = dict[str, Any]
# Distributions that bring the package onnxruntime with a provider.
FLAVOURS: dict[Provider, tuple[str, ...]] = {
    "dml": ("onnxruntime-directml", "onnxruntime-windowsml"),
    "cpu": ("onnxruntime", "onnxruntime-gpu", "onnxruntime-directml", "onnxruntime-windowsml"),
}


class Release(NamedTuple):
    """The newest IR version and opset that a release of ONNX Runtime loads; `newest` is the last that is known here."""

    version: str
    ir: int
    opset: int
    newest: str

    @property
    def is_newer(self) -> bool:
        """Whether it is newer than all that are known, so that it may do more than is known."""
        return not _reaches(self.newest, self.version)


@cache
def table(provider: Provider) -> dict[str, Any]:
    """Read the table of a provider; the CPU's says what releases of ONNX Runtime load ("runtimes"), too."""
    content: dict[str, Any] = json.loads((files(__package__) / "data" / f"{provider}.json").read_bytes())
    return content


def runtimes() -> dict[str, Any]:
    """Return what the releases load, oldest first; which domains they know, and which packages bring others."""
    found: dict[str, Any] = table("cpu")["runtimes"]
    return found


def runtime(provider: Provider) -> Release:
    """Return the limits of the installed ONNX Runtime, or of the last release where none is installed.

    Only packages that bring the provider count. A release that is not listed has the limits of the one before it.
    """
    releases = runtimes()["releases"]
    newest = releases[-1]["version"]
    version = installed_version(provider) or (runtimes()["last_directml"] if provider == "dml" else newest)
    limits = [release for release in releases if _reaches(version, release["version"])] or releases
    return Release(version, limits[-1]["ir"], limits[-1]["opset"], newest)


def installed_version(provider: Provider) -> str:
    """Return the version of the installed distribution that brings a provider; "" for none."""
    for name in FLAVOURS[provider]:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return ""


@cache
def since(domain: str, op: str, opset: int) -> int | None:
    """Return the version at which an operator last changed at or before an opset; None for one that is not known."""
    schema = definition(domain, op, opset)
    if schema is None:
        return 1 if any(signature(domain, op, opset)) else None
    return None if schema.deprecated else int(schema.since_version)


@cache
def signature(domain: str, op: str, version: int) -> tuple[Formals, Formals]:
    """Return the inputs and outputs of an operator's version; none where neither ONNX nor a table describes it."""
    if schema := definition(domain, op, version):
        sides = [tuple((one.name, one.type_str) for one in side) for side in (schema.inputs, schema.outputs)]
        return sides[0], sides[1]
    own = (table(provider)["signatures"].get(domain, {}).get(op) for provider in FLAVOURS)
    found = next(filter(None, own), {"inputs": (), "outputs": ()})
    return tuple(map(tuple, found["inputs"])), tuple(map(tuple, found["outputs"]))


@lru_cache(maxsize=2**12)
def _reaches(release: str, other: str) -> bool:
    return Version(release) >= Version(other)


def is_in(row: Kernel, release: str) -> bool:
    """Return whether a release of ONNX Runtime has a kernel; "" is the newest that is known."""
    if not release:
        return "gone" not in row
    return _reaches(release, row.get("came", release)) and not ("gone" in row and _reaches(release, row["gone"]))


def takes(row: Kernel, version: int) -> bool:
    """Return whether a kernel takes an operator as it was changed in `version`.

    An open-ended row takes its own version only: `VerifyVersion` in onnxruntime/core/framework/kernel_registry.cc.
    """
    return bool(row["since"] <= version <= (row.get("until") or row["since"]))


@lru_cache(maxsize=2**16)
def match(
    provider: Provider, domain: str, op: str, version: int, inputs: Types, outputs: Types, release: str = ""
) -> tuple[Kernel | None, Text]:
    """Return the kernel of a release ("" for the newest) that takes a node, or None and the reason.

    A type that is not known denies no kernel.
    """
    known, named = table(provider), TITLES[provider]
    rows = [row for row in known["operators"].get(domain, {}).get(op, ()) if is_in(row, release)]
    if not rows:
        return None, _("{provider} has no kernel for {op}.", provider=named, op=op)
    why: Text = ""
    bound: dict[str, str | None] = {}  # the type of each type variable and argument: that of the first which is there
    for formals, types in zip(signature(domain, op, version), (inputs, outputs), strict=True):
        for index, kind in enumerate(types if formals else ()):
            for name in formals[min(index, len(formals) - 1)] if kind != "" else ():
                bound.setdefault(name, kind)
    for row in (row for row in rows if takes(row, version)):
        kinds = [(bound.get(name), known["type_sets"][number]) for name, number in row["types"].items()]
        wrong = [kind for kind, allowed in kinds if kind and kind not in allowed]
        if not wrong:
            return row, ""
        why = _("{provider} has no kernel of {op} for {type}.", provider=named, op=op, type=wrong[0])
    if not why:
        message = _("{op} changed in opset {since}; {provider} has kernels for the versions of {versions} only.")
        versions = ", ".join(map(str, sorted(row["since"] for row in rows)))
        why = message.format(op=op, since=version, provider=named, versions=versions)
    return None, why


def late(domain: str, op: str, release: str) -> dict[str, Any] | None:
    """Return the version of an operator that onnx put into an opset which this release loads without it.

    The release takes the version before it in its place, and refuses the new "attributes". None where there is none.
    """
    found: dict[str, Any] | None = runtimes()["late"].get(op) if domain == "" else None
    return found if found and not _reaches(release, found["release"]) else None


def is_foreign(domain: str) -> bool:
    """Return whether ONNX Runtime brings no operators of a domain."""
    return domain not in (*runtimes()["domains"], "ai.onnx")


def unknown_domain(domain: str) -> tuple[Message, Message, tuple[str, ...]]:
    """Return why no operator of a foreign domain runs, what to do about it, and the commands for that."""
    package = runtimes()["libraries"].get(domain)
    if package is None:
        advice = _("They need the library that defines them; export the model without them.")
        return _("ONNX Runtime does not know the domain {domain}.", domain=domain), advice, ()
    why = _("ONNX Runtime does not know the domain {domain}, which {library} brings.", domain=domain, library=package)
    advice = _(
        "Install {library}, and register its operators with each session: SessionOptions.register_custom_ops_library."
    )
    return why, advice.format(library=package), (f"python -m pip install {package}",)
