"""A model under examination: what was read, where its nodes were placed, and what follows for the advice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from onnx import ModelProto

from assistant.onnx.answers import FixedSize
from assistant.onnx.defects import Defect, Part, met
from assistant.onnx.fixed_shapes import open_sizes
from assistant.onnx.graph import opsets, plain_domain
from assistant.onnx.operators import Release
from assistant.onnx.partition import copies
from assistant.onnx.placement import Node
from assistant.onnx.program import Program


@dataclass
class Examination:
    """A model as it was read, analysed and placed, with the runtime's limits and the file's name.

    `given` are its open sizes where inputs tell what they are.
    """

    model: ModelProto
    program: Program
    nodes: Sequence[Node]
    provider: str
    release: Release
    file: str
    given: tuple[FixedSize, ...] | None = None

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
        """The values that are copied between device and CPU in every run, apart from inputs and outputs."""
        return copies(self.nodes)

    @cached_property
    def on_device(self) -> list[Node]:
        """The nodes that DirectML takes."""
        return [node for node in self.computing if node.device == "dml"]

    @cached_property
    def defects(self) -> list[tuple[Defect, list[Part]]]:
        """What this release of the runtime is known to do wrong with the model, each with the parts concerned."""
        return list(met(self.program, self.provider, self.release.version))

    @cached_property
    def open_sizes(self) -> tuple[FixedSize, ...]:
        """The sizes that the inputs leave open, with what `fix_shapes` would put in their place."""
        return open_sizes(self.program) if self.given is None else self.given

    def ops(self, *names: str) -> list[Node]:
        """Return the nodes with one of these operators of ONNX's own."""
        return [node for node in self.computing if node.op in names and not plain_domain(node.step.node.domain)]
