"""Models for the tests of the ONNX room."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import ModelProto, numpy_helper, parser


@pytest.fixture
def written() -> Callable[..., ModelProto]:
    """Give a function that makes a model of ONNX's text form: its graph, then opset, IR version, other imports."""

    def make(graph: str, opset: int = 17, ir: int = 8, imports: str = "", functions: str = "") -> ModelProto:
        head = f'<ir_version: {ir}, opset_import: ["" : {opset}{imports}]>'
        return parser.parse_model(f"{head}\n{graph}\n{functions}")

    return make


@pytest.fixture
def saved(written: Callable[..., ModelProto], tmp_path: Path) -> Callable[..., Path]:
    """Give a function that writes such a model, with weights by name, into a file and answers its path."""

    def save(graph: str, weights: dict[str, Any] | None = None, **more: object) -> Path:
        path, model = tmp_path / "model.onnx", written(graph, **more)
        model.graph.initializer.extend(
            numpy_helper.from_array(content, name) for name, content in (weights or {}).items()
        )
        onnx.save(model, path)
        return path

    return save
