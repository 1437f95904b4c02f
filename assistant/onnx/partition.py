"""Cuts a placed model into segments that run in one place, and counts what is copied between them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter

from assistant.onnx.placement import Node
from assistant.onnx.program import Step, Value


@dataclass(slots=True)
class Segment:
    """Nodes that run one after another in one place, and how many values are copied there for them."""

    device: str
    nodes: list[Node]
    copies: int = 0


def copies(nodes: Sequence[Node]) -> int:
    """Count the values that are copied between device and CPU, once each way; inputs and weights are not counted."""
    owners = {id(node.step): node for node in nodes}
    return sum(len(_moves(node, owners)) for node in nodes)


def segments(nodes: Sequence[Node]) -> list[Segment]:
    """Order the nodes of one graph so that few segments result: a node follows where its device is in turn."""
    owners = {id(step): node for node in nodes for step in node.step.within()}
    sorter = TopologicalSorter[Node](dict.fromkeys(nodes, ()))
    for node in nodes:
        followers = (owners.get(id(taker)) for _index, _value, taker in _takers(node))
        for follower in {id(one): one for one in followers if one is not None}.values():
            sorter.add(follower, node)
    sorter.prepare()
    ready: dict[str, deque[Node]] = {}
    found: list[Segment] = []
    while sorter.is_active():
        for node in sorter.get_ready():
            ready.setdefault(node.device, deque()).append(node)
        device = found[-1].device if found and ready[found[-1].device] else max(ready, key=lambda one: len(ready[one]))
        if not found or found[-1].device != device:
            found.append(Segment(device, []))
        found[-1].nodes.append(ready[device].popleft())
        sorter.done(found[-1].nodes[-1])
    homes = {id(node): place for place, segment in enumerate(found) for node in segment.nodes}
    for node in nodes:
        for takers in _moves(node, owners).values():
            found[min(homes[id(taker)] for taker in takers)].copies += 1
    return found


def _takers(node: Node) -> Iterator[tuple[int, Value, Step]]:
    for index, value in enumerate(node.step.outputs):
        for taker in value.takers if value is not None else ():
            yield index, value, taker  # type: ignore[misc]


def _moves(node: Node, owners: dict[int, Node]) -> dict[tuple[int, bool], list[Node]]:
    """Return the outputs that are wanted elsewhere than where they lie (True: on the device), with who wants them."""
    found: dict[tuple[int, bool], list[Node]] = {}
    on_host = node.device == "cpu" or node.op in {"Shape", "Size"} or (node.kernel is not None and node.kernel.host)
    for index, value, taker in _takers(node):
        other = owners.get(id(taker))
        if other is None or node.op == "Constant" or "none" in {node.device, other.device}:
            continue
        kernel = other.kernel if other.device != "cpu" else None
        places = (place for place, taken in enumerate(taker.inputs) if taken is value)
        wanted = kernel is not None and not kernel.host and any(place not in kernel.cpu_inputs for place in places)
        if wanted == on_host:
            found.setdefault((index, wanted), []).append(other)
    return found
