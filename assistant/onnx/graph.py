"""Walks ONNX models: nodes with their subgraphs and local functions, the order of nodes, the opsets in force."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto

__all__ = [
    "bodies",
    "consumed",
    "graphs",
    "initializers",
    "missing",
    "opsets",
    "ordered",
    "plain_domain",
    "subgraphs",
    "tensors",
]


def plain_domain(domain: str) -> str:
    """Give "ai.onnx", ONNX's own domain, its short name ""."""
    return "" if domain == "ai.onnx" else domain


def opsets(holder: ModelProto | FunctionProto) -> dict[str, int]:
    """Give the imported version of each domain; a model older than imports (IR 1 and 2) uses opset 1."""
    found = {plain_domain(entry.domain): entry.version for entry in holder.opset_import}
    return found or {"": 1}


def subgraphs(node: NodeProto) -> Iterator[GraphProto]:
    """Give the graphs that a node holds in its attributes: branches and bodies of loops."""
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.g
        elif attribute.type == AttributeProto.GRAPHS:
            yield from attribute.graphs


def bodies(model: ModelProto) -> Iterator[GraphProto | FunctionProto]:
    """Give everything that holds nodes: the main graph, the local functions, and the graphs inside their nodes."""
    yield from graphs(model.graph)
    for function in model.functions:
        yield function
        for node in function.node:
            for graph in subgraphs(node):
                yield from graphs(graph)


def graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """Give a graph, and all graphs inside its nodes, however deep."""
    yield graph
    for node in graph.node:
        for inner in subgraphs(node):
            yield from graphs(inner)


def initializers(graph: GraphProto) -> Iterator[tuple[str, TensorProto]]:
    """Give a graph's own weights by name; a sparse one by its values."""
    for tensor in graph.initializer:
        yield tensor.name, tensor
    for sparse in graph.sparse_initializer:
        yield sparse.values.name, sparse.values


def tensors(model: ModelProto) -> Iterator[TensorProto]:
    """Give every tensor that a model stores: weights of all graphs, and tensors in attributes."""
    for body in bodies(model):
        if isinstance(body, GraphProto):
            yield from body.initializer
            for sparse in body.sparse_initializer:
                yield from (sparse.values, sparse.indices)
        for node in body.node:
            for attribute in node.attribute:
                yield from _tensors_of(attribute)


def consumed(node: NodeProto) -> set[str]:
    """Give the names that a node takes: its inputs, and what its subgraphs take from outside themselves."""
    names = {name for name in node.input if name}
    for graph in subgraphs(node):
        names |= _outer(graph)
    return names


def ordered(nodes: Sequence[NodeProto], known: Iterable[str] = ()) -> list[NodeProto] | None:
    """Sort nodes so that each stands after the nodes whose outputs it takes; None where they form a cycle.

    Nodes that are in order stay as they are. `known` are names that need no node: inputs and weights.
    """
    given = set(known)
    makers = {name: index for index, node in enumerate(nodes) for name in node.output if name and name not in given}
    needs = [{makers[name] for name in consumed(node) if name in makers} for node in nodes]
    if all(not need or max(need) < index for index, need in enumerate(needs)):
        return list(nodes)
    takers: list[list[int]] = [[] for _node in nodes]
    for index, need in enumerate(needs):
        for maker in need:
            takers[maker].append(index)
    waiting = [len(need) for need in needs]
    ready = deque(index for index, count in enumerate(waiting) if not count)
    order = []
    while ready:
        order.append(ready.popleft())
        for taker in takers[order[-1]]:
            waiting[taker] -= 1
            if not waiting[taker]:
                ready.append(taker)
    return [nodes[index] for index in order] if len(order) == len(nodes) else None


def missing(body: GraphProto | FunctionProto) -> set[str]:
    """Give the names that a body uses and neither takes as inputs nor makes itself."""
    if isinstance(body, GraphProto):
        return _outer(body)
    taken = set(body.output).union(*(consumed(node) for node in body.node))
    return taken - set(body.input) - {name for node in body.node for name in node.output}


def _outer(graph: GraphProto) -> set[str]:
    inside = {value.name for value in graph.input} | {name for name, _tensor in initializers(graph)}
    taken = {value.name for value in graph.output}
    for node in graph.node:
        taken |= consumed(node)
        inside.update(node.output)
    return taken - inside - {""}


def _tensors_of(attribute: AttributeProto) -> Iterator[TensorProto]:
    if attribute.type == AttributeProto.TENSOR:
        yield attribute.t
    yield from attribute.tensors
    single = [attribute.sparse_tensor] if attribute.type == AttributeProto.SPARSE_TENSOR else []
    for sparse in (*single, *attribute.sparse_tensors):
        yield from (sparse.values, sparse.indices)
