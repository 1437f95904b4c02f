"""Walks over ONNX models: graphs with their subgraphs, stored tensors, the order of nodes, the opsets in force."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import chain, count

from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
    ValueInfoProto,
)

# From here on a weight need not be listed among the inputs: https://github.com/onnx/onnx/blob/main/docs/IR.md
FIRST_FREE_IR = 4
KNOWN_IR = 10  # every release of ONNX Runtime from 1.20 on reads it


def plain_domain(domain: str) -> str:
    """Normalise the default domain: "ai.onnx" becomes ""."""
    return "" if domain == "ai.onnx" else domain


def opsets(holder: ModelProto | FunctionProto) -> dict[str, int]:
    """Return the imported version of each domain; a model older than imports (IR 1 and 2) uses opset 1."""
    found = {plain_domain(entry.domain): entry.version for entry in holder.opset_import}
    return found or {"": 1}


def subgraphs(node: NodeProto) -> Iterator[GraphProto]:
    """Yield the graphs in a node's attributes: branches and bodies of loops."""
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.g
        elif attribute.type == AttributeProto.GRAPHS:
            yield from attribute.graphs


def bodies(model: ModelProto) -> Iterator[GraphProto | FunctionProto]:
    """Yield everything that holds nodes: the main graph, the local functions, and the graphs inside their nodes."""
    for body in (model.graph, *model.functions):
        yield from nested(body)


def nested(body: GraphProto | FunctionProto) -> Iterator[GraphProto | FunctionProto]:
    """Yield a graph or function, and the graphs inside its nodes, however deep."""
    yield body
    for node in body.node:
        for inner in subgraphs(node):
            yield from nested(inner)


def given_inputs(graph: GraphProto) -> list[ValueInfoProto]:
    """Return the inputs that a caller must provide; older models list their weights among the inputs, too."""
    weights = {tensor.name for tensor in graph.initializer}
    return [info for info in graph.input if info.name not in weights]


def unique_name(name: str, taken: set[str]) -> str:
    """Return `name`, with a number behind it where it is taken, and add it to `taken`."""
    found = next(one for one in chain([name], (f"{name}_{number}" for number in count(2))) if one not in taken)
    taken.add(found)
    return found


def tensors(model: ModelProto) -> Iterator[TensorProto]:
    """Yield every tensor that a model stores, also the two that a sparse tensor consists of."""
    for one in stored(model):
        yield from (one.values, one.indices) if isinstance(one, SparseTensorProto) else (one,)


def stored(model: ModelProto) -> Iterator[TensorProto | SparseTensorProto]:
    """Yield everything with numbers that a model stores: weights of all graphs, and tensors in attributes."""
    for body in bodies(model):
        if isinstance(body, GraphProto):
            yield from body.initializer
            yield from body.sparse_initializer
        for attribute in (entry for node in body.node for entry in node.attribute):
            if attribute.type == AttributeProto.TENSOR:
                yield attribute.t
            elif attribute.type == AttributeProto.SPARSE_TENSOR:
                yield attribute.sparse_tensor
            yield from attribute.tensors
            yield from attribute.sparse_tensors


def consumed(node: NodeProto) -> set[str]:
    """Return the names that a node reads: its inputs, and what its subgraphs take from outside themselves."""
    names = {name for name in node.input if name}
    for graph in subgraphs(node):
        names |= undefined(graph)
    return names


def ordered(nodes: Sequence[NodeProto]) -> list[NodeProto] | None:
    """Sort nodes topologically, or return None where they form a cycle; nodes that are in order stay as they are."""
    makers = {name: index for index, node in enumerate(nodes) for name in node.output if name}
    needs = [{makers[name] for name in consumed(node) if name in makers} for node in nodes]
    if all(not need or max(need) < index for index, need in enumerate(needs)):
        return list(nodes)
    sorter = TopologicalSorter(dict.fromkeys(range(len(nodes)), ()))  # all at first, which makes the order stable
    for index, need in enumerate(needs):
        sorter.add(index, *need)
    try:
        return [nodes[index] for index in sorter.static_order()]
    except CycleError:
        return None


def undefined(body: GraphProto | FunctionProto) -> set[str]:
    """Return the names that a body uses and neither takes as inputs nor makes itself."""
    if isinstance(body, GraphProto):
        inside, taken = ({value.name for value in side} for side in (body.input, body.output))
        inside |= {tensor.name for tensor in body.initializer}
        inside |= {sparse.values.name for sparse in body.sparse_initializer}
    else:
        inside, taken = set(body.input), set(body.output)
    for node in body.node:
        taken |= consumed(node)
        inside.update(node.output)
    return taken - inside - {""}
