"""A model under examination: what was read, where its nodes were placed, and what follows for the advice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from onnx import ModelProto

from assistant.onnx.answers import Provider
from assistant.onnx.defects import Defect, Part, met
from assistant.onnx.graph import opsets, plain_domain
from assistant.onnx.operators import Release
from assistant.onnx.placement import Node
from assistant.onnx.program import Program
from assistant.onnx.sizes import dims_by_input


@dataclass
class Examination:
    """A model as it was read, analysed and placed, with the runtime's limits and the file's name."""

    model: ModelProto
    program: Program
    nodes: Sequence[Node]
    provider: Provider
    release: Release
    file: str

    @property
    def opset(self) -> int:
        """The version of ONNX's own operators."""
        return opsets(self.model).get("", 1)

    @cached_property
    def computing(self) -> list[Node]:
        """The nodes without constants, which are weights once the model is loaded."""
        return [node for node in self.nodes if node.op != "Constant"]

    @cached_property
    def copies(self) -> int:
        """The values that are copied between device and CPU in every run, once each way, without inputs and outputs."""
        owners = {id(node.step): node for node in self.nodes}
        return sum(_copied(node, owners) for node in self.nodes)

    @cached_property
    def on_device(self) -> list[Node]:
        """The nodes that the device takes."""
        return [node for node in self.computing if node.device == self.provider]

    @cached_property
    def defects(self) -> list[tuple[Defect, list[Part]]]:
        """What this release of the runtime is known to do wrong with the model, each with the parts concerned."""
        return list(met(self.program, self.provider, self.release.version))

    @cached_property
    def open_sizes(self) -> tuple[str, ...]:
        """The names of the sizes that the inputs leave open."""
        dims = dims_by_input(self.program.model).values()
        return tuple(dict.fromkeys(dim for one in dims for dim in one if isinstance(dim, str)))

    def ops(self, *names: str) -> list[Node]:
        """Return the nodes with one of these operators of ONNX's own."""
        return [node for node in self.computing if node.op in names and not plain_domain(node.step.node.domain)]


def _copied(node: Node, owners: dict[int, Node]) -> int:
    """Count the outputs of a node that are taken elsewhere than where they lie."""
    found: set[int] = set()
    on_host = node.device == "cpu" or node.op in {"Shape", "Size"} or (node.kernel is not None and node.kernel.host)
    for index, value in enumerate(node.step.outputs):
        for taker in value.takers if value is not None else ():
            other = owners.get(id(taker))
            if other is None or node.op == "Constant" or "none" in {node.device, other.device}:
                continue
            kernel = other.kernel if other.device != "cpu" else None
            places = (place for place, taken in enumerate(taker.inputs) if taken is value)
            on_device = kernel is not None and not kernel.host and any(one not in kernel.cpu_inputs for one in places)
            if on_device == on_host:
                found.add(index)
    return len(found)
