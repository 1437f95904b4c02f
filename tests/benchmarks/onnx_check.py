"""How often ONNX Runtime places nodes as `onnx check` predicts: `python tests/benchmarks/onnx_check.py`."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from onnx import helper, numpy_helper, save

sys.path.insert(0, str(Path(__file__).parents[1]))

from addons.onnx.prediction import disagreements, node_tests

from assistant_addons.onnx import check_model

NODES = 100_000


def chain(path: Path) -> None:
    """Write a model of very many nodes in a row."""
    kinds = (("Relu", ()), ("Conv", ("w",)), ("Mul", ("x",)), ("Add", ("x",)))
    nodes = [
        helper.make_node(kinds[place % 4][0], [f"v{place}", *kinds[place % 4][1]], [f"v{place + 1}"])
        for place in range(NODES)
    ]
    nodes.insert(0, helper.make_node("Relu", ["x"], ["v0"]))
    infos = [helper.make_tensor_value_info(name, 1, [1, 4, 8, 8]) for name in ("x", f"v{NODES}")]
    weight = numpy_helper.from_array(np.ones((4, 4, 1, 1), np.float32), "w")
    graph = helper.make_graph(nodes, "chain", infos[:1], infos[1:], [weight])
    save(helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)]), path)


def main() -> None:
    """Print the share of node tests that agree, those that do not, and the seconds for a huge model."""
    models = node_tests()
    with tempfile.TemporaryDirectory() as folder:
        wrong = disagreements(models, Path(folder))
        chain(Path(folder) / "huge.onnx")
        start = time.perf_counter()
        check_model(Path(folder) / "huge.onnx")
        seconds = time.perf_counter() - start
    for name, told in sorted(wrong.items()):
        print(f"{name}: {told[:160]}")
    print(f"{len(models) - len(wrong)} of {len(models)} node tests agree ({1 - len(wrong) / len(models):.2%})")
    print(f"{NODES:,} nodes checked in {seconds:.1f} s")


if __name__ == "__main__":
    main()
