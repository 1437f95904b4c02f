"""ONNX's definitions of operators, as the conversion reads them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from onnx import FunctionProto, NodeProto, TypeProto
from onnx.defs import OpSchema

from assistant.api import Record
from assistant_addons.onnx.operators import FLAVOURS, described, table


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


@cache
def signature(domain: str, op: str, version: int) -> Signature:
    """Return the arguments of an operator's version; none where it is not described."""
    schema = described(domain, op, version)
    if schema is None:
        own = (table(provider).signatures.get(domain, {}).get(op) for provider in FLAVOURS)
        return next(
            (Signature(inputs=one.inputs, outputs=one.outputs) for one in own if one), Signature(inputs=(), outputs=())
        )
    inputs, outputs = (tuple((one.name, one.type_str) for one in side) for side in (schema.inputs, schema.outputs))
    halves = {one.type_param_str for one in schema.type_constraints if "tensor(float16)" in one.allowed_type_strs}
    return Signature(inputs=inputs, outputs=outputs, halves=frozenset(halves), since=schema.since_version)
