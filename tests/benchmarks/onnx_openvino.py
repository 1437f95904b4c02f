"""How often OpenVINO's provider takes the nodes that its table says: real models, real sessions on the CPU.

`python tests/benchmarks/onnx_openvino.py PYTHON FOLDER…`, where PYTHON has onnxruntime-openvino and OpenVINO and the
folders hold models. Sessions are opened without optimisation, so that nodes keep their names.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import onnx

from assistant.model.errors import AssistantError
from assistant.onnx.graph import bodies
from assistant.onnx.load import load_model
from assistant.onnx.placement import Node, named, placed

TARGET = "openvino-cpu"
LEAST = 0.97  # chosen: of nodes that are placed as predicted
SECONDS = 120
# Opens a model, and prints which provider has each node of the main graph.
OPEN = """
import json, sys, onnxruntime as ort
options = ort.SessionOptions()
options.log_severity_level = 4
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
providers = [("OpenVINOExecutionProvider", {"device_type": "CPU"}), "CPUExecutionProvider"]
session = ort.InferenceSession(sys.argv[1], options, providers=providers)
parts = session.get_provider_graph_assignment_info()
print(json.dumps({node.name: part.ep_name for part in parts for node in part.get_nodes()}))
"""


def really(python: str, path: Path) -> dict[str, str] | None:
    """Return the provider of each node by its name; None where the model does not load."""
    try:
        done = subprocess.run([python, "-c", OPEN, path], capture_output=True, text=True, check=True, timeout=SECONDS)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return None
    return json.loads(done.stdout.splitlines()[-1])


def with_names(path: Path, folder: Path) -> tuple[Path, list[Node]]:
    """Write a model with a name for every node; return it with the prediction for its main graph."""
    model = load_model(path)
    for number, body in enumerate(bodies(model)):
        for index, node in enumerate(body.node):
            node.name = f"{number}_{index}"
    whole = named(model)
    copy = folder / path.name
    onnx.save(model, copy)
    return copy, [node for node in placed(whole, TARGET) if node.step.scope is whole.main and node.op != "Constant"]


def compared(python: str, path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield operator, predicted and real device of each node of the main graph that the session tells."""
    with tempfile.TemporaryDirectory() as folder:
        copy, nodes = with_names(path, Path(folder))
        found = really(python, copy)
    if found is None:
        print(f"{path.name}: does not load")
    for node in nodes if found else ():
        if node.name in found:
            yield node.op, node.device, TARGET if found[node.name].startswith("OpenVINO") else "cpu"


def main() -> None:
    """Print for each model how many nodes are placed as predicted, and what is not; end with 1 below the limit."""
    python, files = sys.argv[1], [file for folder in sys.argv[2:] for file in sorted(Path(folder).glob("*.onnx"))]
    wrong: Counter[tuple[str, str, str]] = Counter()
    whole = right = models = 0
    for file in files:
        try:
            found = list(compared(python, file))
        except AssistantError as error:
            print(f"{file.name}: {error}")
            continue
        agreed = sum(predicted == real for _op, predicted, real in found)
        wrong.update(one for one in found if one[1] != one[2])
        whole, right, models = whole + len(found), right + agreed, models + bool(found)
        print(f"{file.name}: {agreed} of {len(found)}")
    for (op, predicted, real), count in wrong.most_common(20):
        print(f"  {op}: predicted {predicted}, really {real}: {count}")
    print(f"{right} of {whole} nodes of {models} models are placed as predicted ({right / max(whole, 1):.2%})")
    sys.exit(right < whole * LEAST)


if __name__ == "__main__":
    main()
