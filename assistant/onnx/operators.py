"""ONNX Runtime's kernel tables, and its rule for which kernel takes which node."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from importlib.resources import files

import onnx
from packaging.version import Version

from assistant.i18n import _
from assistant.model.record import Record, from_json

__all__ = [
    "Kernel",
    "Release",
    "Runtimes",
    "Signature",
    "Table",
    "Types",
    "described",
    "is_function",
    "match",
    "provider_name",
    "runtime",
    "runtimes",
    "signature",
    "since",
    "table",
    "tensor_type",
]

Types = tuple[str | None, ...]  # "" for an argument that is left out, None for a type that is not known
ELEMENTS: dict[int, str] = {number: name.lower() for name, number in onnx.TensorProto.DataType.items()}
FLAVOURS = ("onnxruntime", "onnxruntime-gpu", "onnxruntime-directml", "onnxruntime-windowsml")
PROVIDERS = ("dml", "cpu")


class Kernel(Record, frozen=True):
    """A row of a table: the versions of an operator that it takes, and its types.

    `until` is empty for a row that takes its own version only; `types` gives for each type variable a number in
    the table's `type_sets`. `query` names a further condition, `cpu_inputs` are read on the CPU, `fused` tells
    whether it may join a compiled DirectML graph (only with `fused_inputs` inputs), `host` that it runs on the CPU
    although it is DirectML's.
    """

    since: int
    until: int | None = None
    types: dict[str, int] = {}
    query: str = ""
    cpu_inputs: tuple[int, ...] = ()
    fused: bool = True
    fused_inputs: int | None = None
    host: bool = False

    def takes(self, version: int) -> bool:
        """Tell whether it takes an operator as it was changed in `version`."""
        return self.since == version or (self.until is not None and self.since <= version <= self.until)


class Signature(Record, frozen=True):
    """The arguments of an operator: names with type variables or types; the last one may repeat.

    `halves` are the type variables that may be FP16, `since` is the version in which ONNX last changed it.
    """

    inputs: tuple[tuple[str, str], ...]
    outputs: tuple[tuple[str, str], ...]
    halves: frozenset[str] = frozenset()
    since: int = 1

    def input(self, index: int) -> str:
        """Give the type of one input."""
        return self.inputs[min(index, len(self.inputs) - 1)][1]

    def output(self, index: int) -> str:
        """Give the type of one output."""
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


class Runtimes(Record, frozen=True):
    """What releases of ONNX Runtime load, oldest first; DirectML is best served within `best_opsets`.

    `domains` are those whose operators it brings along; any other needs a library of its own. `newer_attributes` were
    given by onnx to versions of operators that were out already, so that no release knows them.
    """

    source: str
    as_of: str
    last_directml: str
    best_opsets: tuple[int, int]
    domains: frozenset[str]
    releases: tuple[Release, ...]
    newer_attributes: dict[str, frozenset[str]] = {}


@cache
def table(provider: str) -> Table:
    """Read the kernel table of a provider: "dml" or "cpu"."""
    return from_json((files(__package__) / "data" / f"{provider}.json").read_bytes(), Table, provider)


def provider_name(provider: str) -> str:
    """Name a provider for people."""
    return {"dml": "DirectML", "cpu": _("ONNX Runtime's CPU provider")}[provider]


@cache
def runtimes() -> Runtimes:
    """Read what each release of ONNX Runtime loads."""
    return from_json((files(__package__) / "data" / "runtimes.json").read_bytes(), Runtimes, "runtimes")


def runtime(provider: str) -> Release:
    """Give the limits of the installed ONNX Runtime, or of the last release where none is installed.

    For DirectML only its own flavour counts. A release that is not listed has the limits of the one before it.
    """
    known = runtimes()
    version = next(_installed(FLAVOURS if provider == "cpu" else FLAVOURS[2:]), None)
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
    """Write the type of a tensor as ONNX Runtime's tables do: "tensor(float)" for FP32; `form` for its like."""
    return f"{form}({ELEMENTS.get(kind, 'undefined')})"


@cache
def since(domain: str, op: str, opset: int) -> int | None:
    """Give the version at which an operator last changed at or before an opset; None for one that is not known."""
    schema = described(domain, op, opset)
    if schema is None:
        return 1 if any(op in table(provider).signatures.get(domain, {}) for provider in PROVIDERS) else None
    return None if schema.deprecated else int(schema.since_version)


@cache
def described(domain: str, op: str, opset: int) -> onnx.defs.OpSchema | None:
    """Give ONNX's definition of an operator at an opset; None where it has none."""
    try:
        return onnx.defs.get_schema(op, opset, domain)
    except onnx.defs.SchemaError:
        return None


def is_function(schema: onnx.defs.OpSchema) -> bool:
    """Tell whether an operator is defined by simpler ones."""
    return bool(schema.has_function or schema.has_context_dependent_function)  # type: ignore[attr-defined]


@cache
def signature(domain: str, op: str, version: int) -> Signature:
    """Give the arguments of an operator's version; none where it is not described."""
    schema = described(domain, op, version)
    if schema is None:
        own = (table(provider).signatures.get(domain, {}).get(op) for provider in PROVIDERS)
        return next(filter(None, own), Signature(inputs=(), outputs=()))
    inputs, outputs = (tuple((one.name, one.type_str) for one in side) for side in (schema.inputs, schema.outputs))
    halves = {one.type_param_str for one in schema.type_constraints if "tensor(float16)" in one.allowed_type_strs}
    return Signature(inputs=inputs, outputs=outputs, halves=frozenset(halves), since=schema.since_version)


@lru_cache(maxsize=2**16)
def match(
    provider: str, domain: str, op: str, version: int, inputs: Types, outputs: Types
) -> tuple[Kernel | None, str]:
    """Find the kernel that takes a node, or say in a sentence why none does.

    A type that is not known denies no kernel.
    """
    known, provider = table(provider), provider_name(provider)
    rows = known.operators.get(domain, {}).get(op, ())
    if not rows:
        return None, _("{provider} has no kernel for {op}.").format(provider=provider, op=op)
    fitting = [row for row in rows if row.takes(version)]
    if not fitting:
        message = _("{op} changed in opset {since}; {provider} has kernels for the versions of {versions} only.")
        versions = ", ".join(str(row.since) for row in sorted(rows, key=lambda row: row.since))
        return None, message.format(op=op, since=version, provider=provider, versions=versions)
    bound = _bound(signature(domain, op, version), inputs, outputs)
    why = ""
    for row in fitting:
        kinds = [(bound.get(name), known.type_sets[number]) for name, number in row.types.items()]
        wrong = [kind for kind, allowed in kinds if kind and kind not in allowed]
        if not wrong:
            return row, ""
        why = _("{provider} has no kernel of {op} for {type}.").format(provider=provider, op=op, type=wrong[0])
    return None, why


def _bound(form: Signature, inputs: Types, outputs: Types) -> dict[str, str | None]:
    """Give the type of each type variable and argument: that of the first argument which is there."""
    bound: dict[str, str | None] = {}
    for formals, types in ((form.inputs, inputs), (form.outputs, outputs)):
        for index, kind in enumerate(types):
            if formals and kind != "":
                for name in formals[min(index, len(formals) - 1)]:
                    bound.setdefault(name, kind)
    return bound
