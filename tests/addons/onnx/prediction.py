"""Holds what `check` predicts against what ONNX Runtime does, on the node tests of the installed onnx.

As a program it asks ONNX Runtime, a line of JSON for each model: prediction.py FOLDER.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path

from onnx import ModelProto
from onnx.backend.test.case.node import collect_testcases

from assistant_addons.onnx.check import examine
from assistant_addons.onnx.graph import nested, subgraphs


def node_tests() -> dict[str, ModelProto]:
    """Make onnx's own test models, most of them of one node."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the cases overflow and divide by zero on purpose
        return {case.name: case.model for case in collect_testcases(None) if case.model is not None}


def disagreements(models: dict[str, ModelProto], folder: Path) -> dict[str, str]:
    """Give the models that ONNX Runtime places otherwise than predicted, each with both answers."""
    for name, model in models.items():
        (folder / f"{name}.onnx").write_bytes(model.SerializeToString())
    command = [sys.executable, __file__, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    real = {answer.pop("name"): answer for answer in map(json.loads, done.stdout.splitlines())}
    found = {name: predicted(model) for name, model in models.items()}
    return {
        name: f"predicted {found[name]}, was {real[name]}"
        for name in models
        if found[name] != real[name].get("ops") and not (found[name] is None and "error" in real[name])
    }


def predicted(model: ModelProto) -> list[str] | None:
    """Give the operators that the CPU provider is said to run; None for a model that is refused."""
    exam = examine(model, "cpu")
    if exam.obstacle or any(node.device == "none" for node in exam.nodes):
        return None
    in_pieces = [node for node in exam.nodes if node.ran and node.op not in node.ran]
    graphs = (body for node in in_pieces for inner in subgraphs(node.proto) for body in nested(inner))
    inside = {node.name for body in graphs for node in body.node}  # they are among the pieces
    parts = (node.ran if node in in_pieces else (node.op,) for node in exam.nodes if node.proto.name not in inside)
    return sorted(op for part in parts for op in part if op != "Constant")


def places(model: Path) -> dict[str, object]:
    """Give the operators that ONNX Runtime itself runs on its CPU provider, unoptimised, or why it refuses a model."""
    import onnxruntime  # noqa: PLC0415 - only the program needs it

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    try:
        session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001 - onnxruntime raises many kinds, all of them a refusal
        return {"error": str(error)}
    parts = session.get_provider_graph_assignment_info()
    return {"ops": sorted(node.op_type for part in parts for node in part.get_nodes())}


if __name__ == "__main__":
    for path in sorted(Path(sys.argv[1]).glob("*.onnx")):
        sys.stdout.write(json.dumps({"name": path.stem, **places(path)}) + "\n")
