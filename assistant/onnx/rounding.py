"""Writes a model for ONNX Runtime as a GPU computes it in FP16: each FP16 value is rounded where it is made."""

from __future__ import annotations

from onnx import GraphProto, ModelProto, NodeProto, helper

from assistant.onnx.fp16_policy import OPERATORS
from assistant.onnx.graph import subgraphs, unique_name
from assistant.onnx.program import FLOAT, HALF, Scope, Value, program

# They hand FP16 on as it is, or make it themselves; every other operator computes in FP32 here, as ONNX Runtime has no
# FP16 kernel for most of them on the CPU, and drops the casts that it puts around those it lacks.
PASSES = OPERATORS.moves | OPERATORS.follows | OPERATORS.chooses_type | {
    "CastLike", "Constant", "If", "Loop", "Range", "Scan", "SequenceAt", "SequenceConstruct",
}  # fmt: skip


def rounded(model: ModelProto) -> ModelProto:
    """Return a model that computes in FP32 and rounds each value that `model` has in FP16."""
    source = program(model)
    result = source.filled()
    taken = {name for scope in source.scopes() for name in scope.values}
    _round(source.main, result.graph, taken)
    return result


def _round(scope: Scope, graph: GraphProto, taken: set[str]) -> None:
    wide: dict[Value, str] = {}
    nodes: list[NodeProto] = []
    for step, node in zip(scope.steps, list(graph.node), strict=True):
        for inner, below in zip(step.inner, subgraphs(node), strict=True):
            _round(inner, below, taken)
        if step.op in PASSES:
            nodes.append(node)
            continue
        for index, value in enumerate(step.inputs):
            if value is not None and value.kind == HALF:
                if value not in wide:
                    wide[value] = unique_name(f"{value.name}_wide", taken)
                    nodes.append(helper.make_node("Cast", [value.name], [wide[value]], to=FLOAT))
                node.input[index] = wide[value]
        casts = []
        for index, value in enumerate(step.outputs):
            if value is not None and value.kind == HALF:
                node.output[index] = unique_name(f"{value.name}_exact", taken)
                casts.append(helper.make_node("Cast", [node.output[index]], [value.name], to=HALF))
        nodes += [node, *casts]
    del graph.node[:]
    graph.node.extend(nodes)
    del graph.value_info[:]
