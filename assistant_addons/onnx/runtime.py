"""Runs models in ONNX Runtime on the CPU, as they are or rounded as a GPU would, and compares their results."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, helper

from assistant_addons.onnx.fp16_policy import OPERATORS
from assistant_addons.onnx.graph import KNOWN_IR, subgraphs, unique_name
from assistant_addons.onnx.inputs import Feeds
from assistant_addons.onnx.program import FLOAT, HALF, Scope, Value, program

# They hand FP16 on as it is, or make it themselves; every other operator computes in FP32 here, as ONNX Runtime has no
# FP16 kernel for most of them on the CPU, and drops the casts that it puts around those it lacks.
PASSES = OPERATORS.moves | OPERATORS.follows | OPERATORS.chooses_type | {
    "CastLike", "Constant", "If", "Loop", "Range", "Scan", "SequenceAt", "SequenceConstruct",
}  # fmt: skip
# Chosen on the models of tests/addons/onnx/traps.py and on onnx's own test models.
CLOSE = 4e-3  # of the largest number: what an output may differ by
SMALLEST_SCALE = 1e-3  # outputs that are all smaller count as this large: their last digits are noise
MOST_CHANGED = 0.005  # of integers and truths, which change as a whole


def opened(model: ModelProto, *, in_order: bool = False) -> Any:  # noqa: ANN401 - the library has no types
    """Open a model in ONNX Runtime on the CPU, unoptimised, so that no value is left out.

    With `in_order` the nodes run as they stand, so that what only looks at a value does so before it is needed no more.
    """
    import onnxruntime  # noqa: PLC0415 - a tenth of a second, and optional

    if model.ir_version > KNOWN_IR:
        known = ModelProto()
        known.CopyFrom(model)
        known.ir_version = KNOWN_IR
        model = known
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    # Threads that wait in circles for the next run would take the processor from whoever prepares it.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.enable_cpu_mem_arena = False
    if in_order:
        options.execution_order = onnxruntime.ExecutionOrder.PRIORITY_BASED
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(session: Any, given: Feeds, names: list[str] | None = None) -> list[Any]:  # noqa: ANN401 - likewise
    """Return the values of these names, of the outputs without any.

    Inputs that nothing in the model takes, and the session lacks, are left out.
    """
    wanted = {info.name for info in (*session.get_inputs(), *session.get_overridable_initializers())}
    return list(session.run(names, {name: content for name, content in given.items() if name in wanted}))


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


def distance(expected: Any, found: Any) -> float:  # noqa: ANN401 - arrays, and numbers
    """Return how far an array is from the one that was expected.

    Of floats it is the largest difference, relative to the largest number expected or to `SMALLEST_SCALE`; of
    other types the share that changed. It is infinite where the shapes, or the places of NaN or infinity, are others.
    """
    one, other = np.asarray(expected), np.asarray(found)
    if one.shape != other.shape:
        return math.inf
    if not _are_floats(one, other):
        return float(np.mean(one != other)) if one.size else 0.0
    one, other = one.astype(np.float64), other.astype(np.float64)
    if (np.isnan(one) != np.isnan(other)).any() or (np.isinf(one) != np.isinf(other)).any():
        return math.inf
    finite = np.isfinite(one)
    one, other = one[finite], other[finite]
    return float(np.abs(one - other).max(initial=0)) / max(SMALLEST_SCALE, float(np.abs(one).max(initial=0)))


def differs(expected: Any, found: Any, limit: float = CLOSE) -> bool:  # noqa: ANN401 - arrays, lists
    """Return whether two results lie further apart than `limit`, or `MOST_CHANGED` where they are no floats."""
    if isinstance(expected, list) and isinstance(found, list):
        pairs = zip(expected, found, strict=False)
        return len(expected) != len(found) or any(differs(one, other, limit) for one, other in pairs)
    if expected is None or found is None or isinstance(expected, dict):
        return False
    return distance(expected, found) > (limit if _are_floats(expected, found) else MOST_CHANGED)


def _are_floats(*arrays: object) -> bool:
    return all(np.asarray(array).dtype.kind in "fc" for array in arrays)
