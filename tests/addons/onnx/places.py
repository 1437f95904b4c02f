"""Asks ONNX Runtime itself which nodes it runs on its CPU provider, a line of JSON for each model: places.py FOLDER."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import onnxruntime


def places(model: Path) -> dict[str, object]:
    """Give the operators of all nodes that are placed, or why the model is refused; nothing is optimised."""
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
