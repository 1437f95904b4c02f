"""Cuts a placed model into stretches that run in one place, and counts what is copied between them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter

from assistant.onnx.operators import Kernel
from assistant.onnx.placement import Node
from assistant.onnx.values import Step, Value


@dataclass(slots=True)
class Stretch:
    """Nodes that run one after another in one place, and how many values are copied there for them."""

    device: str
    nodes: list[Node]
    copies: int = 0


def copies(nodes: Sequence[Node]) -> int:
    """Count the values that are copied between device and CPU, once each way; inputs and weights are not counted."""
    owners = {id(node.step): node for node in nodes}
    return sum(len(_moves(node, owners)) for node in nodes)


def stretches(nodes: Sequence[Node]) -> list[Stretch]:
    """Order the nodes of one graph so that few stretches result: a node follows where its device is in turn."""
    owners = {id(step): node for node in nodes for step in node.step.within()}
    sorter = TopologicalSorter[Node](dict.fromkeys(nodes, ()))
    for node in nodes:
        for follower in _followers(node, owners):
            sorter.add(follower, node)
    sorter.prepare()
    ready: dict[str, deque[Node]] = {}
    found: list[Stretch] = []
    while sorter.is_active():
        for node in sorter.get_ready():
            ready.setdefault(node.device, deque()).append(node)
        device = found[-1].device if found and ready[found[-1].device] else max(ready, key=lambda one: len(ready[one]))
        if not found or found[-1].device != device:
            found.append(Stretch(device, []))
        found[-1].nodes.append(ready[device].popleft())
        sorter.done(found[-1].nodes[-1])
    _count_copies(found, owners)
    return found


def _count_copies(found: Sequence[Stretch], owners: dict[int, Node]) -> None:
    homes = {id(node): place for place, stretch in enumerate(found) for node in stretch.nodes}
    for stretch in found:
        for node in stretch.nodes:
            for takers in _moves(node, owners).values():
                found[min(homes[id(taker)] for taker in takers)].copies += 1


def _takers(node: Node) -> Iterator[tuple[int, Value, Step]]:
    for index, value in enumerate(node.step.outputs):
        for taker in value.takers if value is not None else ():
            yield index, value, taker  # type: ignore[misc]


def _followers(node: Node, owners: dict[int, Node]) -> list[Node]:
    """Give the nodes that take what a node makes, themselves or in their subgraphs."""
    found = {id(owners[id(taker)]): owners[id(taker)] for _index, _value, taker in _takers(node) if id(taker) in owners}
    return list(found.values())


def _moves(node: Node, owners: dict[int, Node]) -> dict[tuple[int, bool], list[Node]]:
    """Give the outputs that are wanted elsewhere than where they lie (True: on the device), with who wants them."""
    found: dict[tuple[int, bool], list[Node]] = {}
    on_host = node.device == "cpu" or node.op in {"Shape", "Size"} or (node.kernel is not None and node.kernel.host)
    for index, value, taker in _takers(node):
        other = owners.get(id(taker))
        if other is None or node.op == "Constant" or "none" in {node.device, other.device}:
            continue
        wanted = other.device == "dml" and other.kernel is not None and _reads_on_device(taker, value, other.kernel)
        if wanted == on_host:
            found.setdefault((index, wanted), []).append(other)
    return found


def _reads_on_device(step: Step, value: Value, kernel: Kernel) -> bool:
    places = (place for place, taken in enumerate(step.inputs) if taken is value)
    return not kernel.host and any(place not in kernel.cpu_inputs for place in places)
