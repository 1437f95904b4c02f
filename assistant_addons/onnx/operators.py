"""ONNX Runtime's kernel tables, its rule for which kernel takes a node, and what its releases load."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import files

import onnx
from onnx.defs import OpSchema
from packaging.version import Version

from assistant.api import Record, Text, _
from assistant.api.records import from_json
from assistant_addons.onnx.answers import TITLES, Provider
from assistant_addons.onnx.graph import plain_domain

Types = tuple[str | None, ...]  # "" for an argument that is left out, None for a type that is not known
Formals = tuple[tuple[str, str], ...]  # names and type variables, or types
# Distributions that bring the package onnxruntime with a provider.
FLAVOURS: dict[Provider, tuple[str, ...]] = {
    "dml": ("onnxruntime-directml", "onnxruntime-windowsml"),
    "cpu": ("onnxruntime", "onnxruntime-gpu", "onnxruntime-directml", "onnxruntime-windowsml"),
}


class Kernel(Record, frozen=True):
    """A row of a table: the versions of an operator that it takes, and its types.

    `until` is None for a row that takes its own version only; `types` gives for each type variable a number in the
    table's `type_sets`. `came` is the first release that has the row, `gone` the first one that has it no more; either
    is empty where none is known. `query` names a further condition (see `placement`), `cpu_inputs` are read on the
    CPU. `host` says that it runs on the CPU although it is DirectML's.
    """

    since: int
    until: int | None = None
    types: dict[str, int] = {}
    came: str = ""
    gone: str = ""
    query: str = ""
    cpu_inputs: tuple[int, ...] = ()
    host: bool = False

    def takes(self, version: int) -> bool:
        """Return whether it takes an operator as it was changed in `version`.

        An open-ended row takes its own version only: `VerifyVersion` in onnxruntime/core/framework/kernel_registry.cc.
        """
        return self.since == version or (self.until is not None and self.since <= version <= self.until)

    def is_in(self, release: str) -> bool:
        """Return whether a release of ONNX Runtime has it; "" is the newest that is known."""
        if not release:
            return not self.gone
        return _reaches(release, self.came or release) and not (self.gone and _reaches(release, self.gone))


class Signature(Record, frozen=True):
    """The arguments of an operator; the last one of each side may repeat."""

    inputs: Formals = ()
    outputs: Formals = ()

    def bind(self, inputs: Types, outputs: Types) -> dict[str, str | None]:
        """Return the type of each type variable and argument: that of the first argument which is there."""
        bound: dict[str, str | None] = {}
        for formals, types in ((self.inputs, inputs), (self.outputs, outputs)):
            for index, kind in enumerate(types):
                if formals and kind != "":
                    for name in formals[min(index, len(formals) - 1)]:
                        bound.setdefault(name, kind)
        return bound


class Release(Record, frozen=True):
    """The newest IR version and opset that a release of ONNX Runtime loads."""

    version: str
    ir: int
    opset: int

    @property
    def is_newer(self) -> bool:
        """Whether it is newer than all that are known, so that it may do more than is known."""
        return not _reaches(runtimes().releases[-1].version, self.version)


class Late(Record, frozen=True):
    """A version of an operator that onnx put into an opset which releases before `release` load without it.

    They take the version before it in its place, and refuse the new `attributes`.
    """

    since: int
    release: str
    attributes: frozenset[str]


class Runtimes(Record, frozen=True):
    """What releases of ONNX Runtime load, oldest first; DirectML is best served within `best_opsets`.

    `domains` are those whose operators it brings along; `libraries` are the packages that bring others, by domain.
    `late` names the operators of ONNX's own that changed in an opset which was out already.
    """

    source: str
    as_of: str
    last_directml: str
    best_opsets: tuple[int, int]
    domains: frozenset[str]
    late: dict[str, Late]
    libraries: dict[str, str]
    releases: tuple[Release, ...]


class Table(Record, frozen=True):
    """All kernels of one provider, by domain and operator, with source and date; the CPU's says what releases load."""

    provider: str
    source: str
    as_of: str
    holds_for: str
    about: str
    type_sets: tuple[frozenset[str], ...]
    operators: dict[str, dict[str, tuple[Kernel, ...]]]
    signatures: dict[str, dict[str, Signature]]
    runtimes: Runtimes | None = None


@cache
def table(provider: Provider) -> Table:
    """Read the table of a provider."""
    return from_json((files(__package__) / "data" / f"{provider}.json").read_bytes(), Table, provider)


def runtimes() -> Runtimes:
    """Return what each release of ONNX Runtime loads. Raises `LookupError` where the CPU's table lacks it."""
    if (found := table("cpu").runtimes) is None:
        raise LookupError
    return found


def runtime(provider: Provider) -> Release:
    """Return the limits of the installed ONNX Runtime, or of the last release where none is installed.

    Only packages that bring the provider count. A release that is not listed has the limits of the one before it.
    """
    known = runtimes()
    last = known.last_directml if provider == "dml" else known.releases[-1].version
    version = installed_version(FLAVOURS[provider]) or last
    older = [release for release in known.releases if Version(release.version) <= Version(version)]
    limits = older[-1] if older else known.releases[0]
    return Release(version=version, ir=limits.ir, opset=limits.opset)


def installed_version(flavours: Sequence[str]) -> str:
    """Return the version of the first of these distributions that is installed; "" for none."""
    for name in flavours:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return ""


@cache
def described(domain: str, op: str, opset: int) -> OpSchema | None:
    """Return ONNX's definition of an operator at an opset; None where it has none."""
    try:
        return onnx.defs.get_schema(op, opset, domain)
    except onnx.defs.SchemaError:
        return None


@cache
def since(domain: str, op: str, opset: int) -> int | None:
    """Return the version at which an operator last changed at or before an opset; None for one that is not known."""
    schema = described(domain, op, opset)
    if schema is None:
        return 1 if any(op in table(provider).signatures.get(domain, {}) for provider in FLAVOURS) else None
    return None if schema.deprecated else int(schema.since_version)


@cache
def signature(domain: str, op: str, version: int) -> Signature:
    """Return the arguments of an operator's version; none where it is not described."""
    if schema := described(domain, op, version):
        inputs, outputs = (tuple((one.name, one.type_str) for one in side) for side in (schema.inputs, schema.outputs))
        return Signature(inputs=inputs, outputs=outputs)
    own = (table(provider).signatures.get(domain, {}).get(op) for provider in FLAVOURS)
    return next(filter(None, own), Signature())


def late(domain: str, op: str, release: str) -> Late | None:
    """Return the late version of an operator that a release does not know yet; None where there is none."""
    found = runtimes().late.get(op) if domain == "" else None
    return found if found and not _reaches(release, found.release) else None


@lru_cache(maxsize=2**12)
def _reaches(release: str, other: str) -> bool:
    return Version(release) >= Version(other)


@lru_cache(maxsize=2**16)
def match(
    provider: Provider, domain: str, op: str, version: int, inputs: Types, outputs: Types, release: str = ""
) -> tuple[Kernel | None, Text]:
    """Return the kernel of a release ("" for the newest) that takes a node, or None and the reason.

    A type that is not known denies no kernel.
    """
    known, named = table(provider), TITLES[provider]
    rows = [row for row in known.operators.get(domain, {}).get(op, ()) if row.is_in(release)]
    if not rows:
        return None, _("{provider} has no kernel for {op}.", provider=named, op=op)
    fitting = [row for row in rows if row.takes(version)]
    if not fitting:
        message = _("{op} changed in opset {since}; {provider} has kernels for the versions of {versions} only.")
        versions = ", ".join(str(row.since) for row in sorted(rows, key=lambda row: row.since))
        return None, message.format(op=op, since=version, provider=named, versions=versions)
    bound = signature(domain, op, version).bind(inputs, outputs)
    why: Text = ""
    for row in fitting:
        kinds = [(bound.get(name), known.type_sets[number]) for name, number in row.types.items()]
        wrong = [kind for kind, allowed in kinds if kind and kind not in allowed]
        if not wrong:
            return row, ""
        why = _("{provider} has no kernel of {op} for {type}.", provider=named, op=op, type=wrong[0])
    return None, why


def is_foreign(domain: str) -> bool:
    """Return whether ONNX Runtime brings no operators of a domain."""
    return plain_domain(domain) not in runtimes().domains


def unknown_domain(domain: str) -> Text:
    """Return why no operator of a domain runs, with the package that brings it where one is known."""
    package = runtimes().libraries.get(domain)
    if package is None:
        return _("ONNX Runtime does not know the domain {domain}.", domain=domain)
    return _("ONNX Runtime does not know the domain {domain}, which {library} brings.", domain=domain, library=package)


def domain_remedy(domain: str) -> tuple[Text, tuple[str, ...]]:
    """Return what to do about a domain that ONNX Runtime does not know, and the commands for it."""
    package = runtimes().libraries.get(domain)
    if package is None:
        return _("They need the library that defines them; export the model without them."), ()
    message = _(
        "Install {library}, and register its operators with each session: SessionOptions.register_custom_ops_library."
    )
    return message.format(library=package), (f"python -m pip install {package}",)
