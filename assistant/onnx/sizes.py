"""Solves the sizes that a model leaves open: what its weights, its operators and given sizes tell of them."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping

import onnx
from onnx import ModelProto, TensorShapeProto, TypeProto

from assistant.onnx.fp16_policy import OPERATORS
from assistant.onnx.graph import bodies, given_inputs
from assistant.onnx.program import Program, Step, Value, attribute, constant_input

Dim = int | str | None  # a size, the name of an open one, or one that nothing tells
NAMELESS = "?"  # what Paddle writes for any size that is open: two of them need not be equal
RECURRENT = frozenset({"GRU", "LSTM", "RNN"})


def solved(program: Program) -> tuple[dict[str, list[Dim]], dict[str, int]]:
    """Return each input's sizes as far as the weights tell them, and the least that an open one may be.

    ONNX's own shape inference carries the names of open sizes to where they meet those of weights.
    """
    names = dims_by_input(program.model)
    if all(isinstance(dim, int) for sizes in names.values() for dim in sizes):
        return names, {}
    dims = _inferred(_named(program.model))
    equal: dict[str, Dim] = {}
    least: dict[str, int] = {}

    def root(dim: Dim) -> Dim:
        while isinstance(dim, str) and dim in equal:
            dim = equal[dim]
        return dim

    for step in program.steps():
        known = [_dims(value, dims) for value in step.inputs]
        with contextlib.suppress(IndexError, TypeError):
            for one, other in _equations(step, known):
                first, second = root(one), root(other)
                if isinstance(first, str) and second is not None and first != second:
                    equal[first] = second
                elif isinstance(second, str) and first is not None and first != second:
                    equal[second] = first
            for dim, length in _windows(step, known):
                least[dim] = max(length, least.get(dim, 0))
    found = {name: [root(dim) for dim in sizes] for name, sizes in names.items()}
    return found, {str(root(name)): length for name, length in least.items()}


def _equations(step: Step, known: list[list[Dim] | None]) -> Iterator[tuple[Dim, Dim]]:  # noqa: C901, PLR0912 - a case per operator
    first, second = (*known, None, None)[:2]
    if first is None:
        return
    group = attribute(step.node, "group", 1)
    if step.op == "MatMul" and second:
        yield first[-1], second[-2 if len(second) > 1 else -1]
    elif step.op == "Gemm" and second:
        yield (
            first[0 if attribute(step.node, "transA", 0) else 1],
            second[1 if attribute(step.node, "transB", 0) else 0],
        )
    elif step.op == "Conv" and second and isinstance(second[1], int) and isinstance(group, int):
        yield first[1], second[1] * group
    elif step.op in {"BatchNormalization", "ConvTranspose", "InstanceNormalization"} and second:
        yield first[1], second[0]
    elif step.op in {"LayerNormalization", "RMSNormalization"} and second:
        yield from zip(reversed(first), reversed(second), strict=False)
    elif step.op in RECURRENT and second:
        yield first[2], second[2]
        for state in filter(None, known[5:7]):
            yield from ((state[0], second[0]), (state[1], first[1]), (state[2], known[2][2] if known[2] else None))
    elif step.op == "Concat":
        axis = attribute(step.node, "axis", 0)
        kept = [at for at in range(len(first)) if axis not in {at, at - len(first)}]
        for other in filter(None, known[1:]):
            yield from ((first[at], other[at]) for at in kept)
    elif step.op == "Reshape" and (target := constant_input(step, 1)) and min(target) > 0:
        left = [dim for dim in first[1:] if not isinstance(dim, int)]  # a batch is one of one
        if len(left) == 1:
            yield left[0], math.prod(target) // math.prod(dim for dim in first if isinstance(dim, int))
    elif step.op in OPERATORS.arithmetic and second:
        pairs = zip(reversed(first), reversed(second), strict=False)
        yield from (pair for pair in pairs if 1 not in pair)


def _windows(step: Step, known: list[list[Dim] | None]) -> Iterator[tuple[str, int]]:
    """Yield the open sizes that a window moves over, with its length."""
    window = attribute(step.node, "kernel_shape")
    if step.op == "Conv" and window is None and len(known) > 1 and known[1]:
        window = known[1][2:]
    for dim, length in zip((known[0] or [])[2:], window if isinstance(window, list) else (), strict=False):
        if isinstance(dim, str) and isinstance(length, int):
            yield dim, length


def dims_by_input(model: ModelProto) -> dict[str, list[Dim]]:
    """Return the sizes of those inputs that are tensors; each open one has a name.

    One without is called after its input and axis: "x#1".
    """
    return {
        info.name: [
            dim.dim_value if dim.dim_value > 0 else _name(dim, info.name, axis)
            for axis, dim in enumerate(info.type.tensor_type.shape.dim)
        ]
        for info in given_inputs(model.graph)
        if info.type.WhichOneof("value") == "tensor_type"
    }


def _name(dim: TensorShapeProto.Dimension, name: str, axis: int) -> str:
    return f"{name}#{axis}" if dim.dim_param in {"", NAMELESS} else dim.dim_param


def _named(given: ModelProto) -> ModelProto:
    """Return a copy in which each open size of the inputs has its name."""
    model = ModelProto()
    model.CopyFrom(given)
    for info in given_inputs(model.graph):
        for axis, dim in enumerate(info.type.tensor_type.shape.dim):
            if dim.dim_value <= 0:
                dim.dim_param = _name(dim, info.name, axis)
    return model


def _inferred(model: ModelProto) -> dict[str, list[Dim]]:
    """Infer shapes with names in them, by the names of values; one that two subgraphs share is left out."""
    for body in bodies(model):
        del body.value_info[:]
    with contextlib.suppress(onnx.shape_inference.InferenceError, RuntimeError, ValueError):
        model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    found: dict[str, list[Dim]] = {}
    count: Counter[str] = Counter()
    for body in bodies(model):
        for info in (*body.value_info, *getattr(body, "input", ()), *getattr(body, "output", ())):
            if not isinstance(info, str) and info.type.tensor_type.HasField("shape"):
                found[info.name] = dims_of(info.type)
                count[info.name] += 1
    return {name: dims for name, dims in found.items() if count[name] == 1}


def _dims(value: Value | None, dims: Mapping[str, list[Dim]]) -> list[Dim] | None:
    if value is None:
        return None
    return list(value.tensor.dims) if value.tensor is not None else dims.get(value.name)


def dims_of(kind: TypeProto) -> list[Dim]:
    """Return the sizes that a type names; 0 and -1, which some exporters write, are open."""
    dims = kind.tensor_type.shape.dim
    return [dim.dim_value if dim.dim_value > 0 else dim.dim_param or None for dim in dims]
