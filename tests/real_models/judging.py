"""Judges one converted model step by step, as far as it comes: `judging.py SOURCE MODEL FEEDS [STEP…]`.

`check` asks onnx's checker, `load` opens and runs the model in ONNX Runtime with its default options on the CPU,
`strict` runs it with every FP16 value rounded where it is made, and `share` counts what computes in FP16.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from children import limit_memory, tell
from feeds import apart, inputs_of
from onnx import GraphProto, NodeProto, TensorProto

from assistant.onnx.load import load_model
from assistant.onnx.runtime import opened, rounded

FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16
PLUMBING = {"Cast", "CastLike", "Constant", "Identity", "If", "Loop", "Scan"}  # what computes nothing


def check(_source: Path, model: Path, _feeds: Path) -> None:
    """Tell whether onnx's checker, in full, takes the model."""
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:  # noqa: BLE001 - the checker raises many kinds
        tell(checked=False, check_error=f"{error}"[:300])
    else:
        tell(checked=True)


def types(source: Path, model: Path, _feeds: Path) -> None:
    """Tell whether inputs and outputs have their names and types still."""

    def told(path: Path) -> list[tuple[str, int]]:
        read = onnx.load(path, load_external_data=False)
        return [(info.name, info.type.tensor_type.elem_type) for info in (*inputs_of(read), *read.graph.output)]

    tell(io=told(source) == told(model))


def load(_source: Path, model: Path, feeds: Path) -> None:
    """Tell whether ONNX Runtime opens the model as it is, and how far its results lie from the source's."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    tell(loads=True)
    tell(errors=list(_errors(session, feeds)))


def strict(_source: Path, model: Path, feeds: Path) -> None:
    """Tell how far the results lie from the source's where every FP16 value is rounded."""
    tell(strict_errors=list(_errors(opened(rounded(load_model(model))), feeds)))


def _errors(session: Any, feeds: Path) -> Iterator[float]:
    names = json.loads((feeds / "names.json").read_text("utf-8"))
    wanted = {info.name: info.type for info in session.get_inputs()}
    for number in range(len(list(feeds.glob("given*.npz")))):
        with np.load(feeds / f"given{number}.npz") as given, np.load(feeds / f"made{number}.npz") as made:
            fed = {
                name: given[str(at)].astype(np.float16) if wanted[name] == "tensor(float16)" else given[str(at)]
                for at, name in enumerate(names)
                if name in wanted
            }
            found = session.run(None, fed)
            pairs = [(made[str(at)], array) for at, array in enumerate(found)]
            yield min(max((apart(one, other) for one, other in pairs), default=0.0), 1e9)


def share(_source: Path, model: Path, _feeds: Path) -> None:
    """Tell how many operations compute in FP16, of those that operate on FP32 or FP16 and may do so in FP16."""
    read = onnx.load(model)
    if read.functions:
        read = onnx.inliner.inline_local_functions(read)
    read = onnx.shape_inference.infer_shapes(read)
    opsets = {one.domain or "ai.onnx": one.version for one in read.opset_import}
    able = half = 0
    for kinds in _operations(read.graph, {}, opsets):
        able += 1
        half += HALF in kinds
    tell(half=half, able=able)


def _operations(graph: GraphProto, outer: dict[str, int], opsets: dict[str, int]) -> Iterator[set[int]]:
    known = {**outer, **{tensor.name: tensor.data_type for tensor in graph.initializer}}
    known |= {info.name: info.type.tensor_type.elem_type for info in (*graph.input, *graph.value_info, *graph.output)}
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _operations(attribute.g, known, opsets)
        kinds = set(_kinds(node, known, opsets)) if node.op_type not in PLUMBING else set()
        if kinds & {FLOAT, HALF}:
            yield kinds


def _kinds(node: NodeProto, known: dict[str, int], opsets: dict[str, int]) -> Iterator[int]:
    """Yield the types at those places of a node where its definition allows FP32 and FP16 alike."""
    domain = node.domain or "ai.onnx"
    try:
        schema = onnx.defs.get_schema(node.op_type, opsets.get(domain, 1), node.domain)
    except onnx.defs.SchemaError:
        return
    free = {
        one.type_param_str
        for one in schema.type_constraints
        if {"tensor(float)", "tensor(float16)"} <= set(one.allowed_type_strs)
    }
    for formals, names in ((schema.inputs, node.input), (schema.outputs, node.output)):
        for at, name in enumerate(names):
            if formals and formals[min(at, len(formals) - 1)].type_str in free and name in known:
                yield known[name]


STEPS = {step.__name__: step for step in (types, check, share, load, strict)}


def main(source: Path, model: Path, feeds: Path, steps: Iterable[str]) -> None:
    """Take one step after the other; one that fails says so, one that crashes ends them."""
    limit_memory()
    for name in steps:
        tell(step=name)
        try:
            STEPS[name](source, model, feeds)
        except Exception as error:  # noqa: BLE001 - the runtime's errors share no base
            tell(**{f"{name}_error": f"{type(error).__name__}: {error}"[:300]})
    tell(step="")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:] or STEPS)
