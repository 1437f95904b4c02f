"""ONNX Runtime's kernel tables, its rule for which kernel takes a node, and libraries that bring other operators."""

from __future__ import annotations

import importlib.metadata
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

import onnx
from onnx import FunctionProto, ModelProto, NodeProto, TypeProto
from onnx.defs import OpSchema
from packaging.version import Version

from assistant.api import Message, Record, Text, _
from assistant.api.records import from_json, from_plain
from assistant_addons.onnx.answers import TITLES, Provider
from assistant_addons.onnx.graph import bodies, plain_domain

Types = tuple[str | None, ...]  # "" for an argument that is left out, None for a type that is not known
ELEMENTS: dict[int, str] = {number: name.lower() for name, number in onnx.TensorProto.DataType.items()}
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
    """The arguments of an operator: names with type variables or types; the last one may repeat.

    `halves` are the type variables that may be FP16, `since` is the version in which ONNX last changed it.
    """

    inputs: tuple[tuple[str, str], ...]
    outputs: tuple[tuple[str, str], ...]
    halves: frozenset[str] = frozenset()
    since: int = 1

    def input(self, index: int) -> str:
        """Return the type of one input."""
        return self.inputs[min(index, len(self.inputs) - 1)][1]

    def output(self, index: int) -> str:
        """Return the type of one output."""
        return self.outputs[min(index, len(self.outputs) - 1)][1]


class Table(Record, frozen=True):
    """All kernels of one provider, by domain and operator, with source and date."""

    provider: str
    source: str
    as_of: str
    holds_for: str
    about: str
    type_sets: tuple[frozenset[str], ...]
    operators: dict[str, dict[str, tuple[Kernel, ...]]]
    signatures: dict[str, dict[str, Signature]]


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

    `domains` are those whose operators it brings along; any other needs a library of its own. `late` names the
    operators of ONNX's own that changed in an opset which was out already.
    """

    source: str
    as_of: str
    last_directml: str
    best_opsets: tuple[int, int]
    domains: frozenset[str]
    releases: tuple[Release, ...]
    late: dict[str, Late] = {}


@cache
def table(provider: Provider) -> Table:
    """Read the table of a provider."""
    return from_json((files(__package__) / "data" / f"{provider}.json").read_bytes(), Table, provider)


@cache
def runtimes() -> Runtimes:
    """Read what each release of ONNX Runtime loads."""
    return from_json((files(__package__) / "data" / "runtimes.json").read_bytes(), Runtimes, "runtimes")


def runtime(provider: Provider) -> Release:
    """Return the limits of the installed ONNX Runtime, or of the last release where none is installed.

    Only packages that bring the provider count. A release that is not listed has the limits of the one before it.
    """
    known = runtimes()
    version = next(_installed(FLAVOURS[provider]), None)
    version = version or (known.last_directml if provider == "dml" else known.releases[-1].version)
    older = [release for release in known.releases if Version(release.version) <= Version(version)]
    limits = older[-1] if older else known.releases[0]
    return Release(version=version, ir=limits.ir, opset=limits.opset)


def _installed(flavours: Sequence[str]) -> Iterator[str]:
    for name in flavours:
        try:
            yield importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue


def tensor_type(kind: int, form: str = "tensor") -> str:
    """Return the type of a tensor as ONNX Runtime's tables write it, such as "tensor(float)" for FP32."""
    return f"{form}({ELEMENTS.get(kind, 'undefined')})"


@cache
def since(domain: str, op: str, opset: int) -> int | None:
    """Return the version at which an operator last changed at or before an opset; None for one that is not known."""
    schema = described(domain, op, opset)
    if schema is None:
        return 1 if any(op in table(provider).signatures.get(domain, {}) for provider in FLAVOURS) else None
    return None if schema.deprecated else int(schema.since_version)


@cache
def described(domain: str, op: str, opset: int) -> OpSchema | None:
    """Return ONNX's definition of an operator at an opset; None where it has none."""
    try:
        return onnx.defs.get_schema(op, opset, domain)
    except onnx.defs.SchemaError:
        return None


def is_function(schema: OpSchema) -> bool:
    """Return whether an operator is defined by simpler ones."""
    return bool(schema.has_function or schema.has_context_dependent_function)  # type: ignore[attr-defined]


def definition(
    node: NodeProto,
    schema: Any,  # noqa: ANN401 - onnx's types lack what it has
    opset: int,
    types: Sequence[TypeProto],
) -> FunctionProto | None:
    """Return a node's operator in simpler ones, for the types of its inputs; None where ONNX does not define it so."""
    body = FunctionProto()
    versions = [one for one in schema.function_opset_versions if one <= opset]
    dependent = [one for one in schema.context_dependent_function_opset_versions if one <= opset]
    if dependent:
        given = [kind.SerializeToString() for kind in types]
        content = schema.get_context_dependent_function_with_opset_version(
            dependent[-1], node.SerializeToString(), given
        )
        body.ParseFromString(content)
    elif versions:
        body.ParseFromString(schema.get_function_with_opset_version(versions[-1]))
    for entry in body.opset_import:
        entry.version = opset if entry.domain == "" else entry.version
    return body if body.node else None


def make_call(node: NodeProto, schema: OpSchema, body: FunctionProto, names: tuple[str, str]) -> None:
    """Turn a node into a call of its operator's definition, under a domain and a name of its own.

    What it leaves to the operator's defaults is written out, as a definition has none.
    """
    node.domain, node.op_type = body.domain, body.name = names
    given = {entry.name: entry for entry in node.attribute}
    defaults = {name: schema.attributes[name].default_value for name in body.attribute if name in schema.attributes}
    kept = [given.get(name, defaults.get(name)) for name in body.attribute]
    del node.attribute[:]
    node.attribute.extend(entry for entry in kept if entry is not None and entry.name)


def holds(schema: Any, body: FunctionProto, opset: int) -> bool:  # noqa: ANN401 - likewise
    """Return whether ONNX Runtime uses a definition at an opset: not where it was written for older operators."""
    if schema.has_context_dependent_function:
        return True
    written = max(version for version in schema.function_opset_versions if version <= opset)
    ops = {node.op_type for node in body.node if node.domain == ""}
    return all(since("", op, written) == since("", op, opset) for op in ops)


@cache
def signature(domain: str, op: str, version: int) -> Signature:
    """Return the arguments of an operator's version; none where it is not described."""
    schema = described(domain, op, version)
    if schema is None:
        own = (table(provider).signatures.get(domain, {}).get(op) for provider in FLAVOURS)
        return next(filter(None, own), Signature(inputs=(), outputs=()))
    inputs, outputs = (tuple((one.name, one.type_str) for one in side) for side in (schema.inputs, schema.outputs))
    halves = {one.type_param_str for one in schema.type_constraints if "tensor(float16)" in one.allowed_type_strs}
    return Signature(inputs=inputs, outputs=outputs, halves=frozenset(halves), since=schema.since_version)


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
    bound = _bound(signature(domain, op, version), inputs, outputs)
    why: Text = ""
    for row in fitting:
        kinds = [(bound.get(name), known.type_sets[number]) for name, number in row.types.items()]
        wrong = [kind for kind, allowed in kinds if kind and kind not in allowed]
        if not wrong:
            return row, ""
        why = _("{provider} has no kernel of {op} for {type}.", provider=named, op=op, type=wrong[0])
    return None, why


def _bound(form: Signature, inputs: Types, outputs: Types) -> dict[str, str | None]:
    """Return the type of each type variable and argument: that of the first argument which is there."""
    bound: dict[str, str | None] = {}
    for formals, types in ((form.inputs, inputs), (form.outputs, outputs)):
        for index, kind in enumerate(types):
            if formals and kind != "":
                for name in formals[min(index, len(formals) - 1)]:
                    bound.setdefault(name, kind)
    return bound


class Library(Record, frozen=True):
    """A library with the domains that it defines; `data/libraries.toml` says what the fields mean."""

    name: str
    domains: tuple[str, ...]
    source: str
    package: str = ""
    provider: str = ""
    lines: tuple[str, ...] = ()


class Libraries(Record, frozen=True):
    """All that are known, as of a date."""

    as_of: str
    library: tuple[Library, ...]


@cache
def libraries() -> Libraries:
    """Read the table."""
    text = (files(__package__) / "data" / "libraries.toml").read_text(encoding="utf-8")
    return from_plain(tomllib.loads(text), Libraries, "libraries.toml")


def library_of(domain: str) -> Library | None:
    """Return the library that brings a domain; None where none is known."""
    return next((one for one in libraries().library if domain in one.domains), None)


def is_foreign(domain: str) -> bool:
    """Return whether ONNX Runtime brings no operators of a domain."""
    return plain_domain(domain) not in runtimes().domains


def foreign_domains(model: ModelProto) -> tuple[str, ...]:
    """Return the domains of a model that neither ONNX Runtime nor the model itself defines, in order."""
    local = {(function.domain, function.name) for function in model.functions}
    nodes = (node for body in bodies(model) for node in body.node if (node.domain, node.op_type) not in local)
    return tuple(dict.fromkeys(node.domain for node in nodes if is_foreign(node.domain)))


def unknown(domain: str) -> Message:
    """Return why no operator of a domain runs, with the library that brings it where one is known."""
    library = library_of(domain)
    if library is None:
        return _("ONNX Runtime does not know the domain {domain}.", domain=domain)
    return _(
        "ONNX Runtime does not know the domain {domain}, which {library} brings.", domain=domain, library=library.name
    )


def remedy(domain: str) -> tuple[Message, tuple[str, ...]]:
    """Return what to do about a foreign domain, and the commands for it."""
    library = library_of(domain)
    if library is None:
        return _("They need the library that defines them; export the model without them."), ()
    commands = (f"python -m pip install {library.package}",) if library.package else ()
    if library.lines:
        message = _("Install {library}, and register it with the SessionOptions of each session: {lines}")
        return message.format(library=library.name, lines="; ".join(library.lines)), commands
    if library.provider:
        message = _("Only {library} runs them: create the session with {provider}, with its plugins loaded.")
        return message.format(library=library.name, provider=library.provider), commands
    return _("ONNX Runtime cannot run them; {library} can.", library=library.name), commands
